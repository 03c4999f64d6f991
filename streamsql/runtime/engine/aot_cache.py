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
import time
from pathlib import Path
from typing import Any

from streamsql.runtime.engine.java import Java, spark_home
from streamsql.runtime.engine.spark_classes import JAR as SPARK_CLASSES

BUILD_TIMEOUT = 600.0
"""The longest time of a build in seconds, at low priority on a busy machine."""

RETRY_AFTER = 24 * 3600.0
"""The seconds between a failed build and the next attempt."""

ROOM = 2 * 2**30
"""The bytes of memory and of disk that a build needs."""


def cache_file(java: Java, cache: Path) -> Path:
    """The path of the cache for this Java and the installed Spark, whether it exists or not."""
    key = hashlib.sha256(f"4 {java.path.resolve()} {java.version}".encode())
    libraries = (java.path.resolve().parent.parent / "lib" / "server").glob("libjvm.*")  # .so, .dylib
    for file in [*libraries, *sorted((spark_home() / "jars").glob("*.jar")), SPARK_CLASSES]:
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
        return str(file.stat().st_size) == size_file(file).read_text("ascii")
    except (OSError, ValueError):
        return False


def use_cache(file: Path) -> tuple[str, ...]:
    """The options with which Java uses the cache; none for one that does not exist or is disabled."""
    if not enabled() or not complete(file):
        return ()
    return (f"-XX:{'AOTCache' if file.suffix == '.aot' else 'SharedArchiveFile'}={file}",)


def cache_status(java: Java, cache: Path) -> str:
    """One line for --info about the cache of this Java: its file and size, or why there is none."""
    file = cache_file(java, cache)
    if not enabled():
        return "off (STREAMSQL_NO_AOT is set)"
    if complete(file):
        return f"{file} ({file.stat().st_size / 2**20:.0f} MB)"
    if failed_file(file).is_file():
        return f"none: {failed_file(file).read_text('utf-8').strip()}"
    return "none yet; built in the background after a session"


def build_at_exit(java: Java, cache: Path, file: Path) -> None:
    """Build the cache after this process has ended, if it is missing.

    Costs a few milliseconds at exit. Skipped on a CI machine, which discards its files, within a day of a
    failure, and when memory or disk space is short.
    """
    if enabled() and not os.environ.get("CI") and not complete(file):
        atexit.register(_build_in_background, java, cache, file)


def _build_in_background(java: Java, cache: Path, file: Path) -> None:
    try:
        failed = failed_file(file)
        if failed.is_file() and time.time() - failed.stat().st_mtime < RETRY_AFTER:
            return
        if complete(file) or not os.access(cache, os.W_OK) or not has_room(cache):
            return
        command, quiet = builder(java, cache)
        subprocess.Popen(command, start_new_session=True, **quiet)
    except OSError:
        pass  # no cache is built


def builder(java: Java, cache: Path) -> tuple[list[str], dict[str, Any]]:
    """The command of a process that builds the cache (start_up_build.py), and how it is run: silently."""
    package = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    home = str(java.path.parent.parent)
    environment = {**os.environ, "PYTHONPATH": path, "STREAMSQL_NO_AOT": "1"}
    environment.pop("PYSPARK_SUBMIT_ARGS", None)
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    command = [sys.executable, "-m", "streamsql.runtime.start_up_build", home, str(cache)]
    return command, {"env": environment, "cwd": cache, **streams}


def has_room(cache: Path) -> bool:
    """Whether memory and disk have room for a build."""
    if shutil.disk_usage(cache).free < ROOM:
        return False
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024 >= ROOM
    except OSError:
        pass
    return True


def failed_file(file: Path) -> Path:
    """Where the reason stands why a cache could not be built."""
    return file.with_suffix(".failed")


def size_file(file: Path) -> Path:
    """Where the full size of a cache stands, in bytes."""
    return file.with_suffix(".size")
