"""The process that builds the start-up cache of aot_cache.py: it runs typical work once."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamsql.runtime.engine import jvm
from streamsql.runtime.engine.aot_cache import BUILD_TIMEOUT, cache_file, complete, failed_file, size_file
from streamsql.runtime.engine.java import Java, find_java, spark_home
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.engine.typical_work import typical_work

KEEP = 2
"""The number of cache files to keep, about 200 MB each; more than one, for users of two Javas."""


def main(arguments: list[str]) -> int:
    """`python -m streamsql.runtime.engine.aot_build JAVA_HOME CACHE [--background]`: build the cache."""
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
            failed_file(file).write_text(f"{str(error) or type(error).__name__}\n", "utf-8")
            return 1
        failed_file(file).unlink(missing_ok=True)
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
        typical_work(spark, scratch)
        process.stdin.close()  # the JVM writes the file and ends
        process.wait(BUILD_TIMEOUT / 2)
        if not new.is_file():
            raise OSError(f"Java wrote no cache, see {log}")
        with new.open("rb") as stream:
            os.fsync(stream.fileno())
        size_file(file).write_text(str(new.stat().st_size), "ascii")
        new.replace(file)
    finally:
        if process is not None and process.poll() is None:
            process.kill()
        shutil.rmtree(scratch, ignore_errors=True)


def _discard_old(cache: Path) -> None:
    files = [*cache.glob("spark-java*.aot"), *cache.glob("spark-java*.jsa")]
    for file in sorted(files, key=lambda f: f.stat().st_mtime, reverse=True)[KEEP:]:
        file.unlink(missing_ok=True)
        size_file(file).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
