"""The frames between a client and a server: a header in JSON and a body, mostly an Arrow stream.

4 bytes  SSQ1, the version of the frames
8 bytes  the lengths of header and body, big-endian
header   a JSON object
body     bytes
"""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
from pathlib import Path
from typing import Any

from streamsql.errors import EngineFault
from streamsql.runtime.engine.unix_sockets import connect_to, listen_at

SOCKET = "server.sock"
"""The socket of a server: in its workspace, for its user only."""
MAGIC = b"SSQ1"
_LENGTHS = struct.Struct(">4sII")
MOST_HEADER = 64 * 1024 * 1024
MOST_BODY = 1024 * 1024 * 1024
"""The largest frame that a client takes; a row that needs more cannot be sent."""
MOST_OF_CLIENT = 64 * 1024 * 1024
"""The largest frame that a server takes: a statement, or the values of an INSERT."""
REST = 60.0
"""The seconds that a frame may pause, once it has begun."""


class Disconnected(Exception):
    """The other side has closed the connection, or it broke."""


class BadFrame(Exception):
    """What came is no frame, or a larger one than is taken."""


class FrameSocket:
    """Sends and receives frames. Any thread may send; one thread receives. most: the largest body that is
    taken.
    """

    def __init__(self, connection: socket.socket, most: int = MOST_BODY) -> None:
        self.connection = connection
        self.most = most
        self._sending = threading.Lock()

    def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Send a frame; waits for the other side to read. Raises Disconnected, EngineFault for a frame that
        is too large.
        """
        text = json.dumps(header, separators=(",", ":")).encode()
        if len(text) > MOST_HEADER or len(body) > MOST_BODY:
            size = max(len(text), len(body)) // (1024 * 1024)
            raise EngineFault(
                f"a message of {size} MB is larger than a frame can be",
                hint="select fewer columns, or a part of the value: substring(c, 1, 1000)",
                code="FRAME_TOO_LARGE",
            )
        with self._sending:
            try:
                self.connection.sendall(_LENGTHS.pack(MAGIC, len(text), len(body)) + text)
                if body:
                    self.connection.sendall(body)
            except OSError as error:
                raise Disconnected(str(error)) from None

    def receive(self, first: float | None = None, rest: float = REST) -> tuple[dict[str, Any], bytes]:
        """The next frame. first: the seconds until it begins; None for no limit; rest: those that it may
        pause once it has begun. Raises Disconnected, BadFrame.
        """
        head = self._read(_LENGTHS.size, first, rest)
        magic, header_size, body_size = _LENGTHS.unpack(head)
        if magic != MAGIC:
            raise BadFrame("this is no frame of streamsql")
        if header_size > min(MOST_HEADER, self.most) or body_size > self.most:
            size = max(header_size, body_size)
            raise BadFrame(f"a frame of {size} bytes is too large: at most {self.most} are taken")
        text = self._read(header_size, rest, rest)
        data = self._read(body_size, rest, rest) if body_size else b""
        try:
            header = json.loads(text)
        except (ValueError, RecursionError):
            raise BadFrame("the header of a frame is no JSON") from None
        if not isinstance(header, dict):
            raise BadFrame("the header of a frame is no JSON object")
        return header, data

    def _read(self, size: int, first: float | None, rest: float) -> bytes:
        """Bytes of that number. The first must come within `first` seconds, each of the others within `rest`
        of the one before. The socket itself has no time-out: one would hold for the threads that send, too.
        """
        data = bytearray()
        wait = select.poll()
        try:
            wait.register(self.connection, select.POLLIN)
            while len(data) < size:
                limit = rest if data else first
                if not wait.poll(None if limit is None else limit * 1000):
                    raise BadFrame(f"a frame has not come completely within {limit:g} s")
                part = self.connection.recv(min(size - len(data), 1024 * 1024))
                if not part:
                    raise BadFrame("the connection ended within a frame") if data else Disconnected("closed")
                data += part
        except (OSError, ValueError) as error:  # ValueError: another thread has closed it
            raise Disconnected(str(error)) from None
        return bytes(data)

    def close(self) -> None:
        """Close the connection; a thread that receives is woken."""
        for act in (lambda: self.connection.shutdown(socket.SHUT_RDWR), self.connection.close):
            try:
                act()
            except OSError:
                pass


def listen(workspace: Path) -> socket.socket:
    """A listening socket in a workspace that this process holds; a stale one is replaced. Raises OSError."""
    return listen_at(workspace / SOCKET)


def connect(workspace: Path, seconds: float = 5.0) -> socket.socket:
    """A connection to the server of a workspace. Raises OSError as connect_to does."""
    client = connect_to(workspace / SOCKET, seconds)
    client.settimeout(None)
    return client
