"""Unix domain sockets for processes of one user."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

_LONGEST = 100
"""The longest path of a socket, in bytes; Linux takes 107, macOS 103."""
_SOL_LOCAL = 0
"""The level of a Unix domain socket's own options in macOS and FreeBSD (sys/un.h)."""


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
        if user_of(client) not in (os.geteuid(), None):
            raise PermissionError(1, "the server belongs to another user")
    except BaseException:
        client.close()
        raise
    return client


def user_of(connection: socket.socket) -> int | None:
    """The user of the other side, as the kernel knows it; None where the system does not tell. There, the
    rights of the socket's file alone hold others off.
    """
    if hasattr(socket, "SO_PEERCRED"):  # Linux: struct ucred, of process, user and group
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int(struct.unpack("=iII", data)[1])
    if hasattr(socket, "LOCAL_PEERCRED"):  # macOS, FreeBSD: struct xucred begins with version and user
        data = connection.getsockopt(_SOL_LOCAL, socket.LOCAL_PEERCRED, 128)
        return int(struct.unpack_from("=II", data)[1])
    return None


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """A path of the socket that is short enough: through a link to its folder, if need be."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="sql-") as folder:
        link = Path(folder, "s")
        link.symlink_to(path.parent.absolute())
        yield str(link / path.name)
