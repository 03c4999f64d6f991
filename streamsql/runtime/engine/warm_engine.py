"""A warm engine: a Spark that has been started, and has run typical work, before a console needs it.

When a console ends, it starts a keeper in the background (warm_keeper.py): a process that starts a JVM and
Spark with the same settings, environment and folder, lets it run typical work, and waits on a Unix domain
socket. The next console takes the engine over: it connects to the JVM by py4j, as it would to one of its
own, and the keeper remains as the JVM's parent until that console ends. An engine serves one console, and
there is one keeper per user; it ends when no console comes within the time that the preference `warm` gives.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamsql.runtime.engine import aot_cache
from streamsql.runtime.engine.java import Java, spark_home
from streamsql.runtime.engine.java_command import needs_submit
from streamsql.runtime.engine.unix_sockets import connect_to

ANSWER_TIMEOUT = 2.0
"""The seconds that a keeper may take to answer; a console starts a Spark of its own after that."""

OF_THE_TERMINAL = (
    "_ SHLVL PWD OLDPWD COLUMNS LINES TERM COLORTERM TERM_PROGRAM TERM_PROGRAM_VERSION TERM_SESSION_ID "
    "WINDOWID TMUX TMUX_PANE STY WINDOW SSH_CLIENT SSH_CONNECTION SSH_TTY SSH_AUTH_SOCK GPG_TTY "
    "XDG_SESSION_ID DISPLAY PS1 PROMPT_COMMAND VTE_VERSION VIRTUAL_ENV_PROMPT NO_COLOR PYSPARK_PYTHON"
).split()
"""Environment variables that differ between two terminals and mean nothing to Spark; the workers' Python is
that of the console, which is part of the key."""

WAREHOUSE = "spark.sql.warehouse.dir"
"""The setting in which an engine may differ: a Spark session is given it, not the JVM."""


@dataclass(frozen=True)
class Wanted:
    """What an engine must have been started with. archive: the start-up cache of such a JVM, whether it
    exists or not; key: a digest of all of it.
    """

    conf: dict[str, str]
    environment: dict[str, str]
    folder: str
    java: Java
    cache: Path
    log: Path
    archive: Path
    key: str


def wanted_engine(conf: Mapping[str, str], log: Path, cache: Path, java: Java) -> Wanted:
    """The engine that a console in this process needs. Arguments as for jvm.start_session."""
    settings = {name: value for name, value in conf.items() if name != WAREHOUSE}
    environment = {n: v for n, v in os.environ.items() if n not in OF_THE_TERMINAL}
    folder = os.getcwd()
    archive = aot_cache.cache_file(java, cache, spark_home())
    parts = [
        sorted(settings.items()),
        sorted(environment.items()),
        folder,
        sys.executable,
        str(archive),
        str(log),
    ]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return Wanted(settings, dict(os.environ), folder, java, cache, log, archive, key)


def socket_path(cache: Path) -> Path:
    """Where a keeper listens; only its owner may connect."""
    return cache / "warm.sock"


class AdoptedProcess:
    """The JVM of a warm engine, with the part of subprocess.Popen that the engine uses. It is a child of the
    keeper, which tells of its end through the connection; when this process ends, so does the JVM.
    """

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self.pid = pid
        self._connection = connection
        self._code: int | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._await_end, daemon=True, name="warm-engine").start()

    def _await_end(self) -> None:
        try:
            self._code = int(read_message(self._connection)["code"])
        except (OSError, ValueError, KeyError):
            self._code = -9  # the keeper was killed, and the JVM ends with it
        self._ended.set()

    def poll(self) -> int | None:
        return self._code if self._ended.is_set() else None

    def wait(self, timeout: float | None = None) -> int:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("java", timeout or 0)
        assert self._code is not None
        return self._code

    def kill(self) -> None:
        try:
            send_message(self._connection, {"kill": True})
        except OSError:
            pass  # it has ended


@dataclass(frozen=True)
class WarmJvm:
    """A JVM with Spark that was taken over: where py4j connects to, and its process."""

    port: int
    secret: str
    process: AdoptedProcess


def take(wanted: Wanted) -> WarmJvm | None:
    """Take over the engine that waits, if there is one and it is the wanted one. Never waits for long."""
    if needs_submit(wanted.conf):
        return None
    connection = _connect(wanted.cache)
    if connection is None:
        return None
    try:
        send_message(connection, {"take": wanted.key})
        answer = read_message(connection)
        if "port" in answer:
            connection.settimeout(None)
            process = AdoptedProcess(connection, int(answer["pid"]))
            return WarmJvm(int(answer["port"]), str(answer["secret"]), process)
    except (OSError, ValueError, KeyError):
        pass
    connection.close()
    return None


def _connect(cache: Path) -> socket.socket | None:
    try:
        return connect_to(socket_path(cache), ANSWER_TIMEOUT)
    except OSError:
        return None  # none waits


def keep_at_exit(wanted: Wanted, seconds: Callable[[], float]) -> None:
    """Start the next engine after this process has ended. seconds: how long it waits; 0 for none."""
    if not needs_submit(wanted.conf):
        atexit.register(_start_keeper, wanted, seconds)


def _start_keeper(wanted: Wanted, seconds: Callable[[], float]) -> None:
    try:
        if not seconds() or aot_cache.wants_build(wanted.archive) or not aot_cache.has_room(wanted.cache):
            return
        order = {
            "conf": wanted.conf,
            "java": str(wanted.java.path.parent.parent),
            "cache": str(wanted.cache),
            "log": str(wanted.log),
            "key": wanted.key,
            "seconds": seconds(),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "streamsql.runtime.engine.warm_keeper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=wanted.environment,
            cwd=wanted.folder,
            start_new_session=True,
        )
        assert process.stdin
        process.stdin.write(json.dumps(order).encode())  # may hold secrets: not on the command line
        process.stdin.close()
    except OSError:
        pass  # the next console starts a Spark of its own


def warm_status(cache: Path) -> str:
    """One line for --info: whether an engine waits, its memory and its time."""
    connection = _connect(cache)
    if connection is None:
        return "none waits"
    with connection:
        try:
            send_message(connection, {"status": True})
            answer = read_message(connection)
        except (OSError, ValueError):
            return "does not answer"
    if not answer.get("ready"):
        return "starts"
    memory = f"{answer['megabytes']} MB of memory"
    return f"waits for {answer['seconds']:.0f} s more, {memory}, process {answer['pid']}"


def stop_keeper(cache: Path) -> bool:
    """End the engine that waits. Returns whether there was one."""
    connection = _connect(cache)
    if connection is None:
        return False
    with connection:
        try:
            send_message(connection, {"end": True})
            connection.recv(1)  # until it has closed
        except OSError:
            pass
    return True


def send_message(connection: socket.socket, message: Mapping[str, Any]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def read_message(connection: socket.socket) -> dict[str, Any]:
    """The next line of JSON. Raises OSError when the connection has ended, ValueError for anything else."""
    data = b""
    while not data.endswith(b"\n"):
        part = connection.recv(4096)
        if not part or len(data) > 65536:
            raise OSError("the connection has ended")
        data += part
    message = json.loads(data)
    if not isinstance(message, dict):
        raise ValueError("not a message")
    return message
