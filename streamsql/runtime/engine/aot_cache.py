"""A cache of Spark's classes that halves the start time of Java, built in the background.

Java 25 stores loaded and linked classes and profiles in an ahead-of-time cache (-XX:AOTCache), Java 17
and 21 store loaded classes in a class-data archive (-XX:SharedArchiveFile). A JVM that runs typical work
once writes either file when it ends. A separate process of low priority does this after the first session.

The JVM ignores a file that does not match; a start without one always works.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamsql.runtime.engine.java import Java, find_java, spark_home

BUILD_TIMEOUT = 600.0
"""The longest time of a build in seconds, at low priority on a busy machine."""

RETRY_AFTER = 24 * 3600.0
"""The seconds between a failed build and the next attempt."""

ROOM = 2 * 2**30
"""The bytes of memory and of disk that a build needs."""

KEEP = 2
"""The number of cache files to keep, about 200 MB each; more than one, for users of two Javas."""


def cache_file(java: Java, cache: Path, home: Path) -> Path:
    """The path of the cache for this Java and the Spark in `home`, whether it exists or not."""
    key = hashlib.sha256(f"1 {java.path.resolve()} {java.version}".encode())
    jvm = java.path.resolve().parent.parent / "lib" / "server" / "libjvm.so"
    for file in [jvm, *sorted((home / "jars").glob("*.jar"))]:
        try:
            stat = file.stat()
        except OSError:
            continue
        key.update(f"{file} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    kind = "aot" if java.major >= 25 else "jsa"
    return cache / f"spark-java{java.major}-{key.hexdigest()[:16]}.{kind}"


def enabled() -> bool:
    """Whether the environment allows the cache."""
    return os.environ.get("STREAMSQL_NO_AOT", "") in ("", "0")


def complete(file: Path) -> bool:
    """Whether the cache exists and has its full size: Java may crash on a truncated one."""
    try:
        return file.stat().st_size == int(_size_file(file).read_text("ascii"))
    except (OSError, ValueError):
        return False


def use_options(file: Path) -> list[str]:
    """The options with which Java uses the cache; none if it does not exist or is disabled."""
    if not enabled() or not complete(file):
        return []
    return [f"-XX:{'AOTCache' if file.suffix == '.aot' else 'SharedArchiveFile'}={file}"]


def cache_status(java: Java, cache: Path) -> str:
    """One line for --info about the cache of this Java: its file and size, or why there is none."""
    file = cache_file(java, cache, spark_home())
    if not enabled():
        return "off (STREAMSQL_NO_AOT is set)"
    if complete(file):
        return f"{file} ({file.stat().st_size / 2**20:.0f} MB)"
    if _failed(file).is_file():
        return f"none: {_failed(file).read_text('utf-8').strip()}"
    return "none yet; built in the background after a session"


def build_cache(java: Java, cache: Path) -> Path | None:
    """Build the cache now and wait for it (half a minute or more).

    Returns its path, or None if it could not be built; the reason is in cache_status. An
    existing file is kept until the new one is complete.
    """
    file = cache_file(java, cache, spark_home())
    before = file.stat().st_mtime_ns if complete(file) else None
    try:
        cache.mkdir(parents=True, exist_ok=True)
        command, environment = _builder(java, cache)
        subprocess.run(
            command,
            env=environment,
            cwd=cache,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=BUILD_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return file if complete(file) and file.stat().st_mtime_ns != before else None


def build_at_exit(java: Java, cache: Path, file: Path) -> None:
    """Build the cache after this process has ended, if it is missing.

    Costs a few milliseconds at exit. Skipped on a CI machine, which discards its files, within a day of a
    failure, and when memory or disk space is short.
    """
    if enabled() and not os.environ.get("CI") and not complete(file):
        atexit.register(_build_in_background, java, cache, file)


def _build_in_background(java: Java, cache: Path, file: Path) -> None:
    try:
        failed = _failed(file)
        if failed.is_file() and time.time() - failed.stat().st_mtime < RETRY_AFTER:
            return
        if complete(file) or not os.access(cache, os.W_OK) or not _room(cache):
            return
        command, environment = _builder(java, cache)
        subprocess.Popen(
            [*command, "--background"],
            env=environment,
            cwd=cache,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        pass  # no cache is built


def _builder(java: Java, cache: Path) -> tuple[list[str], dict[str, str]]:
    """The command and environment of a process that builds the cache (see main)."""
    package = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    home = str(java.path.parent.parent)
    environment = {**os.environ, "PYTHONPATH": path, "STREAMSQL_NO_AOT": "1"}
    environment.pop("PYSPARK_SUBMIT_ARGS", None)
    return [sys.executable, "-m", "streamsql.runtime.engine.aot_cache", home, str(cache)], environment


def _room(cache: Path) -> bool:
    if shutil.disk_usage(cache).free < ROOM:
        return False
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024 >= ROOM
    except OSError:
        pass
    return True


def _failed(file: Path) -> Path:
    return file.with_suffix(".failed")


def _size_file(file: Path) -> Path:
    return file.with_suffix(".size")


# ---------------------------------------------------------------------------------------------
# The process that builds


def main(arguments: list[str]) -> int:
    """`python -m streamsql.runtime.engine.aot_cache JAVA_HOME CACHE [--background]`: build the cache."""
    java, cache = find_java(arguments[0]), Path(arguments[1])
    if "--background" in arguments:
        os.nice(19)
    file = cache_file(java, cache, spark_home())
    with _lock(cache) as free:
        if not free or ("--background" in arguments and complete(file)):
            return 0
        try:
            _build(java, cache, file)
        except Exception as error:
            _failed(file).write_text(f"{str(error) or type(error).__name__}\n", "utf-8")
            return 1
        _failed(file).unlink(missing_ok=True)
        _discard_old(cache)
    return 0


@contextmanager
def _lock(cache: Path) -> Iterator[bool]:
    """Whether no other build runs. The system releases the lock even if this process is killed."""
    from filelock import FileLock, Timeout

    lock = FileLock(cache / "build.lock", timeout=0, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _build(java: Java, cache: Path, file: Path) -> None:
    from streamsql.runtime.engine import jvm
    from streamsql.runtime.engine.settings import Settings

    scratch = Path(tempfile.mkdtemp(prefix="build-", dir=cache))
    log = cache / "build.log"
    log.unlink(missing_ok=True)
    new = scratch / file.name
    flag = "AOTCacheOutput" if file.suffix == ".aot" else "ArchiveClassesAtExit"
    conf = Settings.make("local[2]", {}).start_conf() | {
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": f"-XX:{flag}={new}",
    }
    process: Any = None
    try:
        spark = jvm.start_session(conf, log, cache, java)
        process = spark.sparkContext._gateway.proc
        _typical_work(spark, scratch)
        process.stdin.close()  # the JVM writes the file and ends
        process.wait(BUILD_TIMEOUT / 2)
        if not new.is_file():
            raise OSError(f"Java wrote no cache, see {log}")
        with new.open("rb") as stream:
            os.fsync(stream.fileno())
        _size_file(file).write_text(str(new.stat().st_size), "ascii")
        new.replace(file)
    finally:
        if process is not None and process.poll() is None:
            process.kill()
        shutil.rmtree(scratch, ignore_errors=True)


def _typical_work(spark: Any, scratch: Path) -> None:
    """Run what a session usually runs, to load its classes: files read and written, streams."""
    folder = scratch / "in"
    folder.mkdir()
    for number in range(2):
        rows = [
            f'{{"ts": "2026-01-01T00:{i % 60:02d}:{number:02d}Z", "k": "k{i % 7}", "v": {i}}}\n'
            for i in range(300)
        ]
        (folder / f"{number}.json").write_text("".join(rows), "utf-8")
    schema = "ts timestamp, k string, v bigint"
    frame = spark.read.schema(schema).json(str(folder))
    for kind in ("parquet", "csv"):
        frame.write.format(kind).save(str(scratch / kind))
        spark.read.schema(schema).format(kind).load(str(scratch / kind)).show()
    spark.sql("SHOW TABLES").collect()
    spark.sql("SELECT 1 AS one, 'a' AS a, current_timestamp() AS now").toArrow()
    try:
        spark.sql("SELECT nothing FROM nowhere")
    except Exception:
        pass
    spark.readStream.schema(schema).json(str(folder)).createOrReplaceTempView("events")
    frame.createOrReplaceTempView("known")
    queries = {
        "windows": (
            "update",
            "SELECT window(ts, '1 minute') AS w, k, count(*) AS n, sum(v) AS s, avg(v) AS a"
            " FROM events GROUP BY window(ts, '1 minute'), k",
        ),
        "groups": ("complete", "SELECT k, count(*) AS n FROM events GROUP BY k ORDER BY n DESC"),
        "rows": ("append", "SELECT e.*, b.v AS u FROM events e JOIN known b USING (k) WHERE e.v>9"),
    }
    for name, (mode, query) in queries.items():
        stream = spark.sql(query).writeStream.outputMode(mode)
        active = stream.format("memory").queryName(name).start()
        active.processAllAvailable()
        spark.sql(f"SELECT * FROM {name} LIMIT 20").toArrow()
        spark.table(name).show()
        active.stop()
    _typical_sinks(spark, scratch)


def _typical_sinks(spark: Any, scratch: Path) -> None:
    late = spark.sql("SELECT * FROM events").withWatermark("ts", "1 minute")
    late.createOrReplaceTempView("late")
    closed = spark.sql(
        "SELECT window.start AS t, k, count(*) AS n FROM late GROUP BY window(ts, '5 minutes'), k"
    )
    for kind in ("parquet", "json"):
        target = scratch / f"out-{kind}"
        writer = closed.writeStream.format(kind).outputMode("append")
        active = writer.option("checkpointLocation", f"{target}-checkpoint").start(str(target))
        active.processAllAvailable()
        active.stop()
    writer = closed.writeStream.outputMode("update")
    active = writer.foreachBatch(lambda batch, _: batch.limit(20).toArrow()).start()
    active.processAllAvailable()
    active.stop()


def _discard_old(cache: Path) -> None:
    files = [*cache.glob("spark-java*.aot"), *cache.glob("spark-java*.jsa")]
    for file in sorted(files, key=lambda f: f.stat().st_mtime, reverse=True)[KEEP:]:
        file.unlink(missing_ok=True)
        _size_file(file).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
