"""Finds a Java, starts Spark's JVM and returns a session, without any output on the terminal.

The JVM is started directly (no spark-submit, no launcher JVM), in its own process session so that Ctrl-C
does not interrupt it, and its output goes to a log file. It ends when its stdin closes, that is when this
process ends, even if it is killed.
"""

from __future__ import annotations

import logging
import os
import struct
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.errors import StartFault
from streamsql.guard import log_to
from streamsql.runtime.engine import aot_cache
from streamsql.runtime.engine.java import Java
from streamsql.runtime.engine.java_command import is_local, needs_submit, settings, spark_defaults
from streamsql.runtime.engine.jvm_process import StartingJvm, cached_for, start_jvm
from streamsql.runtime.engine.package_loader import use_in_threads
from streamsql.runtime.engine.pyspark_import import import_arrow, import_pyspark
from streamsql.runtime.engine.start_failures import Crash, size_of, start_failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_TIMEOUT = 120.0
"""The seconds that the JVM may take until it accepts a connection."""

SUBMIT_TIMEOUT = 900.0
"""The same when SparkSubmit runs first: it may download packages or wait for a cluster."""


# ---------------------------------------------------------------------------------------------
# The JVM


def launch(conf: Mapping[str, str], log: Path, cache: Path, java: Java) -> Any:
    """Start the JVM and connect to it. Returns py4j's gateway for SparkContext, with the process as proc.

    conf: all settings of Spark, with those of spark-defaults.conf. log: the file that the JVM's output is
    appended to. cache: the folder of the start-up cache; need not be writable. Raises StartFault.
    """
    submit = needs_submit(conf)
    starting = start_jvm(conf, log, cache, java)
    try:
        import_pyspark()  # while the JVM starts
        import_arrow()
        limit = SUBMIT_TIMEOUT if submit else START_TIMEOUT
        gateway = _connect(*_await_connection(starting, limit, log))
        gateway.proc = starting.process
        if not submit:  # as SparkSubmit does; not on the command line, where all can read it
            properties = gateway.jvm.System.getProperties()
            for key, value in settings(conf).items():
                properties.setProperty(key, value)
    except BaseException:
        starting.process.kill()
        raise
    finally:
        starting.close()
    return gateway


def _await_connection(starting: StartingJvm, limit: float, log: Path) -> tuple[int, str]:
    """The port and secret that the JVM writes once it accepts connections. limit: seconds."""
    deadline = time.monotonic() + limit
    while not starting.connection.exists():
        if starting.process.poll() is not None:
            raise start_failure(starting.process, log, starting.log_start)
        if time.monotonic() > deadline:
            raise StartFault(
                f"the JVM did not answer within {limit:.0f} s", hint=f"the JVM's output is in {log}"
            )
        time.sleep(0.005)
    data = starting.connection.read_bytes()
    port, length = struct.unpack(">ii", data[:8])
    return port, data[8 : 8 + length].decode()


def _connect(port: int, secret: str) -> Any:
    from pyspark.java_gateway import launch_gateway

    # PySpark's way to connect to a running JVM; it imports the needed classes.
    given = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(given)
    try:
        return launch_gateway()
    finally:
        for key in given:
            os.environ.pop(key, None)


# ---------------------------------------------------------------------------------------------
# The session


def start_session(conf: Mapping[str, str], log: Path, cache: Path, java: Java) -> SparkSession:
    """Start a JVM and a Spark session in it (classic, not Connect). Arguments as for launch; the settings of
    spark-defaults.conf are added.

    May be called on any thread; PySpark's SIGINT handler, which cancels every job, is never installed.
    Raises StartFault.
    """
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    log_to(log)
    if threading.current_thread() is not threading.main_thread():
        return _start_session(conf, log, cache, java)
    with ThreadPoolExecutor(1) as other_thread:
        return other_thread.submit(_start_session, conf, log, cache, java).result()


def forget_session() -> None:
    """Make PySpark forget a Spark whose JVM has ended, so that another one can start in this process."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with SparkContext._lock:
        gateway = SparkContext._gateway
        SparkContext._active_spark_context = None
        SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    if gateway is not None:
        try:
            gateway.shutdown()
        except Exception:
            pass  # the JVM has ended already


def _start_session(conf: Mapping[str, str], log: Path, cache: Path, java: Java) -> SparkSession:
    conf = {**spark_defaults(), **conf}
    archive = aot_cache.cache_file(java, cache)
    if is_local(conf):  # PySpark passes the workers' Python to the JVM
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cached = cached_for(conf, archive)
    try:
        session = _try_session(conf, log, cache, java)
    except Crash as crash:
        if not cached or not crash.own:
            raise
        archive.unlink(missing_ok=True)  # a damaged cache can cause that; it is built again
        session = _try_session(conf, log, cache, java)
    aot_cache.build_at_exit(java, cache, archive)
    return session


def _new_session(context: Any, options: dict[str, str]) -> SparkSession:
    """The first session of a JVM. options: static settings."""
    from pyspark.sql import SparkSession

    return SparkSession(context, options=options)


def _try_session(conf: Mapping[str, str], log: Path, cache: Path, java: Java) -> SparkSession:
    start = size_of(log)
    gateway = launch(conf, log, cache, java)
    from pyspark import SparkContext

    with SparkContext._lock:
        if SparkContext._active_spark_context is not None:
            gateway.proc.kill()
            raise StartFault("a Spark session runs in this process", hint="stop it first")
        SparkContext._gateway = SparkContext._jvm = None  # of an earlier JVM
    try:
        # No conf: the settings are the JVM's system properties, completed by SparkSubmit.
        session = _new_session(SparkContext(gateway=gateway), {})
        if not is_local(conf):
            use_in_threads(session)  # on one machine Spark does this itself
        return session
    except Exception as error:
        failure = start_failure(gateway.proc, log, start, error)
        gateway.proc.kill()
        with SparkContext._lock:
            SparkContext._active_spark_context = None
            SparkContext._gateway = SparkContext._jvm = None
        raise failure from None
