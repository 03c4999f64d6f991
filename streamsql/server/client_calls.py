"""The connection of a client: calls with numbers, and the answers to them."""

from __future__ import annotations

import itertools
import os
import queue
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamsql import __version__
from streamsql.errors import Cancelled, EngineFault, StreamsqlError, UsageFault
from streamsql.server.encoding import PROTOCOL, Message, decode, decode_error
from streamsql.server.socket_frames import BadFrame, Disconnected, FrameSocket, connect

HELLO = 10.0
"""The seconds within which a server answers the first frame."""


@dataclass(frozen=True)
class Server:
    """The server of a workspace, as it presents itself. folder: its current folder, to which relative paths
    refer; words: what it tells a client that attaches.
    """

    workspace: Path
    process: int = 0
    version: str = ""
    folder: str = ""
    words: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return f"server {self.process}"

    def greeting(self) -> list[str]:
        """What is told at a prompt that attaches."""
        lines = [f"attached to the server of {self.workspace} (process {self.process})", *self.words]
        with suppress(OSError):
            if os.getcwd() != self.folder:
                lines.append(f"note: relative paths in statements refer to {self.folder}")
        return lines

    def lost(self, *, sent: bool = True, reads: bool = False) -> EngineFault:
        """The error of a call that the server has not answered. sent: whether it may have received it; reads:
        whether it changes nothing.
        """
        unknown = "" if reads else "whether a statement that was running took effect is not known"
        return EngineFault(
            f"the server of {self.workspace} (process {self.process}) has ended",
            detail=unknown if sent else "the statement was not sent",
            hint=f"streamsql serve -w '{self.workspace}' starts it again and resumes its queries",
            code="SERVER_LOST",
        )


class Calls:
    """Calls functions of a server; any thread may call. Connects again, once the server is back. hello: what
    the client says of itself.
    """

    def __init__(self, workspace: Path, hello: dict[str, Any]) -> None:
        """Raises OSError when there is no server, UsageFault for one of another version."""
        self.workspace = workspace
        self._hello = hello
        self._numbers = itertools.count(1)
        self._connecting = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[Any]] = {}
        self._changes = set[int]()
        """The calls that may change something."""
        self._frames: FrameSocket | None = None
        self._closed = False
        self.server = Server(workspace)
        self._connect()

    def _connect(self) -> FrameSocket:
        frames = FrameSocket(connect(self.workspace))
        try:
            frames.send({"hello": "streamsql", "protocol": PROTOCOL, "version": __version__, **self._hello})
            answer, body = frames.receive(HELLO)
        except (BadFrame, Disconnected) as error:
            frames.close()
            raise ConnectionRefusedError(f"the server does not answer: {error}") from None
        self._check(answer, frames)
        facts = {key: answer[key] for key in ("process", "version", "folder")}
        self.server = Server(self.workspace, words=tuple(answer["words"]), **facts)
        self._frames = frames
        threading.Thread(target=self._receive, args=(frames,), daemon=True, name="answers").start()
        return frames

    def _check(self, answer: dict[str, Any], frames: FrameSocket) -> None:
        """Raise UsageFault for a server that this client does not understand, or that refuses it."""
        if "error" in answer:
            frames.close()
            raise decode_error(answer["error"])
        if answer.get("protocol") != PROTOCOL or answer.get("version") != __version__:
            frames.close()
            raise other_version(self.workspace, answer)

    def _receive(self, frames: FrameSocket) -> None:
        try:
            while True:
                header, body = frames.receive()
                waiting = self._waiting.get(header["id"])
                if waiting is not None:
                    waiting.put((header, body))
                elif header["id"] == 0:
                    break  # the server cuts this client off
        except (BadFrame, Disconnected, KeyError):
            pass
        frames.close()
        with self._connecting:
            if self._frames is frames:
                self._frames = None
            waiting_for = list(self._waiting.values())
        for queue_of_call in waiting_for:
            queue_of_call.put(None)

    def begin(self, name: str, arguments: Sequence[Any], *, reads: bool = True) -> int:
        """Begin a call; returns its number. Raises the error of a server that has ended."""
        number = next(self._numbers)
        message = Message(list(arguments))
        header = {"id": number, "call": name, "args": message.value, "reads": reads}
        with self._connecting:
            if self._closed:
                raise Cancelled("cancelled")
            if self._frames is None:
                try:
                    self._connect()
                except OSError:
                    raise self.server.lost(sent=False) from None
            frames = self._frames
            assert frames is not None
            self._waiting[number] = queue.SimpleQueue()
            if not reads:
                self._changes.add(number)
        try:
            frames.send(header, message.body)
        except Disconnected:
            self._waiting.pop(number, None)
            raise self.server.lost(reads=reads) from None
        return number

    def answer(self, number: int) -> Any:
        """The answer to a call. Raises what the call raised, or the error of a server that has ended."""
        waiting = self._waiting.get(number)
        received = waiting.get() if waiting is not None else None
        self._waiting.pop(number, None)
        reads = number not in self._changes
        self._changes.discard(number)
        if received is None and self._closed:
            raise Cancelled("cancelled")
        if received is None:
            raise self.server.lost(reads=reads)
        header, body = received
        if "error" in header:
            raise decode_error(header["error"])
        return decode(header["ok"], body)

    def call(self, name: str, arguments: Sequence[Any]) -> Any:
        """Call a function and wait for its answer."""
        return self.answer(self.begin(name, arguments))

    def tell(self, name: str, which: int) -> None:
        """Call a function that has no answer; nothing if the server has ended."""
        frames = self._frames
        if frames is not None:
            with suppress(Disconnected, StreamsqlError):
                frames.send({"id": next(self._numbers), "call": name, "args": [which]})

    def close(self) -> None:
        """Leave the server."""
        self._closed = True
        frames, self._frames = self._frames, None
        if frames is not None:
            frames.close()


def other_version(workspace: Path, answer: dict[str, Any]) -> UsageFault:
    """The error for a server of another version."""
    process, version = answer.get("process", ""), answer.get("version") or "unknown"
    other_build = f"both are {version}, but of different builds"
    return UsageFault(
        f"the server of {workspace} is of another version of streamsql",
        detail=f"it is {version}, this is {__version__}" if version != __version__ else other_build,
        hint=f"restart it: kill -TERM {process}; streamsql serve -w '{workspace}' --detach",
        code="SERVER_VERSION",
    )
