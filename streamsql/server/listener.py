"""The server of a workspace: accepts clients, and knows what is to be told of it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from streamsql import __version__
from streamsql.config.preferences import LAYERS, Preferences
from streamsql.errors import EngineFault, StreamsqlError
from streamsql.results import counted
from streamsql.runtime.engine.unix_sockets import user_of
from streamsql.runtime.session import Session
from streamsql.runtime.session_summary import spark_state
from streamsql.server.client_session import ClientSession
from streamsql.server.connection import ClientConnection
from streamsql.server.encoding import PROTOCOL, encode_error
from streamsql.server.running_servers import queries_by_state, register
from streamsql.server.socket_frames import MOST_OF_CLIENT, SOCKET, BadFrame, Disconnected, FrameSocket, listen

MOST_CLIENTS = 100
HELLO = 5.0
"""The seconds within which a client must begin its first frame, and that this may pause."""


class Server:
    """Shares a session with clients. workspace: its folder, which this process holds; say: writes a line of
    the log. ended: set by `stop`.
    """

    def __init__(self, session: Session, workspace: Path, say: Callable[[str], None]) -> None:
        """Raises OSError when the socket cannot be created."""
        self.session = session
        self.workspace = workspace
        self.say = say
        self.since = datetime.now().isoformat(" ", "seconds")
        self.ending = False
        self.ended = threading.Event()
        self._clients: set[ClientConnection] = set()
        self._changing = threading.Lock()
        self._socket = listen(workspace)
        self._file: Path | None = None
        try:
            self._file = register(workspace, self.since)
        except OSError as error:
            say(f"warning: streamsql ps will not list this server: {error}")
        session.parts.hosting.host = self
        threading.Thread(target=self._accept, daemon=True, name="accept-clients").start()

    def stop(self) -> None:
        """Begin to end the server: it takes no more statements, and whoever waits for `ended` closes it."""
        self.ending = True
        self.ended.set()

    def close(self) -> None:
        """Take no more clients, and leave those that there are. The session is closed before."""
        self.ending = True
        self.session.parts.hosting.host = None
        for path in (self.workspace / SOCKET, self._file):
            if path is not None:
                with suppress(OSError):
                    path.unlink()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for client in list(self._clients):
            client.close()

    # ---- clients --------------------------------------------------------------------------

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                if self.ending or self._socket.fileno() < 0:
                    return
                self.say(f"warning: a client could not be accepted: {error}")
                self.ended.wait(0.5)
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True, name="client").start()

    def _serve(self, connection: socket.socket) -> None:
        frames = FrameSocket(connection, MOST_OF_CLIENT)
        try:
            user = user_of(connection)
            if user not in (os.geteuid(), None):
                raise BadFrame(f"user {user} is not the user of the server")
            hello, _ = frames.receive(HELLO, HELLO)
            if hello.get("hello") != "streamsql":
                raise BadFrame("the first frame is no greeting")
            if hello.get("status"):
                frames.send(self.status())
                frames.close()
            elif hello.get("protocol") != PROTOCOL or hello.get("version") != __version__:
                frames.send(self._greeting())  # the client says which versions they are
                frames.close()
            else:
                self._attach(frames, hello)
        except (Disconnected, OSError):
            frames.close()
        except Exception as error:  # whatever values a greeting has: its sender must not wait for an answer
            self.say(f"a connection is refused: {error}")
            fault = EngineFault(f"the server refuses the connection: {error}", code="BAD_FRAME")
            self._refuse(frames, fault)

    def _refuse(self, frames: FrameSocket, fault: StreamsqlError) -> None:
        with suppress(Disconnected, StreamsqlError):
            frames.send({"id": 0, "error": encode_error(fault)})
        frames.close()

    def _attach(self, frames: FrameSocket, hello: dict[str, Any]) -> None:
        session = ClientSession(
            self.session.parts,
            interactive=bool(hello.get("interactive")),
            read_only=bool(hello.get("read_only")),
            preferences=_preferences(hello.get("preferences", {})),
            arrow=bool(hello.get("arrow")),
        )
        client = ClientConnection(frames, session, self.say)
        with self._changing:
            full = len(self._clients) >= MOST_CLIENTS
            if not full:
                self._clients.add(client)
        if full or self.ending:
            what = "is ending" if self.ending else f"has {MOST_CLIENTS} clients, as many as it may have"
            self._refuse(frames, EngineFault(f"the server {what}", code="TOO_MANY_CLIENTS"))
            self._clients.discard(client)
            return
        try:
            frames.send(self._greeting())
            client.serve()
        finally:
            with self._changing:
                self._clients.discard(client)

    # ---- what is told of it ---------------------------------------------------------------

    def _greeting(self) -> dict[str, Any]:
        summary = self.session.summary()
        words = f"it has run since {self.since}; {counted(summary.running, 'query')} running"
        if summary.failed:
            words += f", {summary.failed} FAILED: SHOW QUERIES;"
        return {
            "protocol": PROTOCOL,
            "version": __version__,
            "process": os.getpid(),
            "folder": os.getcwd(),
            "words": [words],
        }

    def status(self) -> dict[str, Any]:
        """The status for `streamsql ps` and health checks."""
        parts = self.session.parts
        queries = {q.name: _status(self.session, q.name) for q in parts.catalog.named(None)}
        return {
            "version": __version__,
            "process": os.getpid(),
            "workspace": str(self.workspace),
            "since": self.since,
            "status": "ending" if self.ending else "running",
            "spark": spark_state(parts),
            "clients": len(self._clients),
            "queries": queries,
            "updated": datetime.now().isoformat(" ", "seconds"),
        }

    def rows(self) -> list[tuple[str, str]]:
        """(property, value) for SHOW SERVER."""
        status = self.status()
        summary = self.session.summary()
        return [
            ("workspace", status["workspace"]),
            ("process", str(status["process"])),
            ("started", status["since"]),
            ("status", status["status"]),
            ("version", status["version"]),
            ("Spark", status["spark"]),
            ("queries", queries_by_state(status)),
            ("rows/s in", f"{summary.rate:,.0f}"),
            ("clients", str(status["clients"])),
            ("current folder", os.getcwd()),
            ("socket", str(self.workspace / SOCKET)),
        ]


def _status(session: Session, name: str) -> str:
    running = session.parts.queries.all.get(name.casefold())
    return running.status() if running is not None else session.parts.workspace.past(name).status


def _preferences(layers: Any) -> Preferences:
    """The preferences of a client. Raises faults for what is none, KeyError for an unknown layer."""
    preferences = Preferences()
    for layer, values in layers.items():
        if layer not in LAYERS:
            raise KeyError(layer)
        for key, value in values.items():
            preferences.set(str(key), str(value), layer)
    return preferences
