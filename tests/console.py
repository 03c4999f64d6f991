"""`python tests/console.py …` is `python -m streamsql …` with Spark in a JVM that the tests keep (engines.py).

All is the console's own but for the start of the JVM, which takes 3 to 5 s. A console whose settings need another
JVM starts one of its own, as `python -m streamsql` does.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

CONSOLE = Path(__file__)
ENGINE = "STREAMSQL_TESTS_ENGINE"
"""The environment variable with the socket of the tests' engines; without it each console starts its own JVM."""
JVM_VARIABLES = (
    "TZ",
    "JDK_JAVA_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "HADOOP_CONF_DIR",
    "PYTHONPATH",
)
"""Environment variables that change a JVM, or the Python of its workers."""


def command(*arguments: str, cold: bool = False) -> list[str]:
    """The command of a console. cold: it starts its own JVM in any case."""
    return [sys.executable, *(("-m", "streamsql") if cold else (str(CONSOLE),)), *arguments]


class SharedJvm:
    """What the console sees of the JVM's process: it is there until the console ends."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self.pid = pid
        self._connection = connection
        self._ended = threading.Event()
        threading.Thread(target=self._await_end, daemon=True).start()

    def _await_end(self) -> None:
        try:
            while self._connection.recv(1024):
                pass
        except OSError:
            pass
        self._ended.set()

    def poll(self) -> int | None:
        return -9 if self._ended.is_set() else None

    def wait(self, timeout: float | None = None) -> int:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("java", timeout or 0)
        return -9

    def kill(self) -> None:
        try:
            self._connection.sendall(b"kill")
        except OSError:
            pass  # it has ended


def split(conf: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Settings of the JVM, and those of a session in it."""
    of_session = {k: v for k, v in conf.items() if k.startswith("spark.sql.")}
    return {k: v for k, v in conf.items() if k not in of_session}, of_session


def take(conf: dict[str, str], java: str) -> tuple[dict[str, Any], socket.socket] | None:
    """The engine for these settings: {port, secret, pid}, and the connection that holds it; None for none."""
    if os.environ.get(ENGINE) is None or any(
        k.startswith(("spark.sql.extensions", "spark.sql.catalog.")) for k in conf
    ):
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(os.environ[ENGINE])
        variables = {name: os.environ[name] for name in JVM_VARIABLES if name in os.environ}
        wanted = {"conf": split(conf)[0], "java": java, "folder": os.getcwd(), "variables": variables}
        connection.sendall(json.dumps(wanted).encode() + b"\n")
        answer = json.loads(connection.makefile().readline() or "{}")
    except OSError:
        answer = {}
    if "port" in answer:
        return answer, connection
    connection.close()
    return None


def use_shared_engine() -> None:
    """Replace the start of the JVM, here and at its one other place, which starts it early."""
    from streamsql.runtime.engine import cancel, jvm, jvm_process
    from streamsql.runtime.engine.java_command import spark_defaults

    # Spark remembers the job groups that were cancelled: those of each console have names of their own.
    cancel._NUMBERS = itertools.count(os.getpid() * 10_000)
    start_alone, start_early = jvm._start_session, jvm_process.start_early
    early: list[tuple[dict[str, Any], socket.socket]] = []

    def start_session(conf: Any, log: Any, cache: Any, java: Any) -> Any:
        conf = {**spark_defaults(), **conf}
        taken = early.pop() if early else take(conf, str(java.path))
        if taken is None:
            return start_alone(conf, log, cache, java)
        engine, connection = taken
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        jvm.import_pyspark()
        from pyspark import SparkContext

        gateway = jvm._connect(engine["port"], engine["secret"])
        gateway.proc = SharedJvm(connection, engine["pid"])
        with SparkContext._lock:
            SparkContext._gateway = SparkContext._jvm = None  # of an earlier JVM
        view = gateway.jvm
        context = view.JavaSparkContext(view.org.apache.spark.SparkContext.getOrCreate())
        session = jvm._new_session(SparkContext(gateway=gateway, jsc=context), split(conf)[1])
        session.stop = lambda: None  # the next console takes the engine
        return session

    jvm._start_session = start_session
    jvm_process.start_early = lambda *arguments: None if os.environ.get(ENGINE) else start_early(*arguments)


def main() -> int:
    use_shared_engine()
    from streamsql.__main__ import main

    return main()


if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # as for `python -m`
    sys.exit(main())
