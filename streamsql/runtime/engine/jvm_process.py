"""Starts the process of Spark's JVM; before the console has read a script, too, since both take some time."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streamsql.errors import StartFault
from streamsql.runtime.engine import aot_cache
from streamsql.runtime.engine.java import Java, find_java
from streamsql.runtime.engine.java_command import (
    class_path,
    environment,
    java_options,
    needs_submit,
    spark_defaults,
    submit_arguments,
)
from streamsql.runtime.engine.start_failures import size_of

MAIN_CLASS = "org.apache.spark.api.python.PythonGatewayServer"


@dataclass(frozen=True)
class StartingJvm:
    """A JVM that starts. folder: a private one, for its files until it has started; log_start: the size of
    its log before; connection: the file that it writes its port and secret to, by rename.
    """

    process: subprocess.Popen[bytes]
    command: list[str]
    environment: Mapping[str, str]
    folder: Path
    log_start: int

    @property
    def connection(self) -> Path:
        return self.folder / "connection"

    def close(self) -> None:
        """Remove its folder: it has started, or could not."""
        shutil.rmtree(self.folder, ignore_errors=True)
        _open.pop(self.folder, None)

    def discard(self) -> None:
        """End it and remove its folder."""
        self.process.kill()
        self.process.wait()
        self.close()


_early: StartingJvm | None = None
_open: dict[Path, StartingJvm] = {}
"""By their folders, the JVMs that have not started yet: they end with this process."""
_ending = False
_lock = threading.RLock()
"""Held for each change of these: a JVM may be started on another thread while this process ends."""


@atexit.register
def end_starting() -> None:
    """As the process ends: end the JVMs that have not started yet, and start no further one."""
    global _ending
    with _lock:
        _ending = True
        discard_starting()


def discard_starting() -> None:
    """End the JVMs that have not started yet, that of start_early among them."""
    global _early
    with _lock:
        _early = None
        for starting in list(_open.values()):
            starting.discard()


def start_jvm(conf: Mapping[str, str], log: Path, cache: Path, java: Java) -> StartingJvm:
    """Start a JVM, or take over the one that start_early has started, if it is the same.

    conf: all settings of Spark, with those of spark-defaults.conf. log, cache, java: as for jvm.launch.
    Raises StartFault.
    """
    with _lock:
        if _ending:
            raise StartFault("the console is ending", hint="start it again")
        return _start_jvm(conf, log, cache, java)


def _start_jvm(conf: Mapping[str, str], log: Path, cache: Path, java: Java) -> StartingJvm:
    global _early
    early, _early = _early, None
    folder = early.folder if early else Path(tempfile.mkdtemp(prefix="streamsql-"))
    try:
        options = java_options(conf, log, cache, folder)
        cached = cached_for(conf, aot_cache.cache_file(java, cache))
        command = [str(java.path), *options, *cached, "-cp", class_path(conf)]
        command += submit_arguments(conf, folder) if needs_submit(conf) else [MAIN_CLASS]
        variables = environment(conf, folder / "connection")
        if early is not None:
            if (early.command, early.environment) == (command, variables):
                return early
            early.discard()
            return _start_jvm(conf, log, cache, java)
        start = size_of(log)
        process = _spawn(command, log, variables)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    starting = StartingJvm(process, command, variables, folder, start)
    _open[folder] = starting
    return starting


def start_early(conf: Mapping[str, str], log: Path, cache: Path, java: str) -> None:
    """Start the JVM that a session of these settings would start; it ends if none takes it over. A fault is
    left to the session's own start. Arguments: conf as for jvm.launch; java: see find_java.
    """
    global _early
    conf = {**spark_defaults(), **conf}
    if needs_submit(conf):
        return
    try:
        _early = start_jvm(conf, log, cache, find_java(java))
    except (StartFault, OSError):
        pass


def cached_for(conf: Mapping[str, str], archive: Path) -> tuple[str, ...]:
    """The options with which a JVM of these settings uses the start-up cache."""
    own = conf.get("spark.driver.extraJavaOptions", "")
    if re.search(r"AOT|-Xshare|SharedArchive|ArchiveClasses", own):
        return ()  # the user, or a build of the cache, has options of that kind
    return aot_cache.use_cache(archive)


def _private(path: str, flags: int) -> int:
    """An opener for a file that only its owner may read."""
    return os.open(path, flags, 0o600)


def _spawn(command: list[str], log: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab", opener=_private) as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # the JVM ends when it closes, even if this process is killed
                stdout=output,
                stderr=output,
                env=env,
                start_new_session=True,  # not interrupted by the terminal's Ctrl-C and Ctrl-Z
            )
    except OSError as error:
        raise StartFault(f"cannot start Java: {error}", hint="see `streamsql --info`") from error
