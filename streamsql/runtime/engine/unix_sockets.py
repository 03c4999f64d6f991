"""Unix domain sockets for processes of one user."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

_LONGEST = 100
"""The longest path of a socket, in bytes; the system takes 107."""
_PEER = struct.Struct("3i")


def listen_at(path: Path) -> socket.socket:
    """A listening socket that only this user may connect to, in place of a stale one. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(path) as name:
            listener.bind(name)
        path.chmod(0o600)  # before `listen`: nobody can connect before
        listener.listen(64)
    except BaseException:
        listener.close()
        raise
    return listener


def connect_to(path: Path, seconds: float) -> socket.socket:
    """A connection with that time-out. Raises OSError: FileNotFoundError without a socket,
    ConnectionRefusedError for one on which nobody listens, PermissionError for one of another user.
    """
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.settimeout(seconds)
        with _short(path) as name:
            client.connect(name)
        if peer_of(client)[1] != os.geteuid():
            raise PermissionError(1, "the server belongs to another user")
    except BaseException:
        client.close()
        raise
    return client


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """(process, user) of the other side, as the kernel knows them."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    process, user, _ = _PEER.unpack(data)
    return process, user


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """A path of the socket that is short enough: through an open folder, if need be."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
