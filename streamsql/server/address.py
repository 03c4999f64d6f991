"""The socket of a server: in its workspace, for its user only."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

SOCKET = "server.sock"
_LONGEST = 100
"""The longest path of a socket, in bytes; the system takes 107."""
_PEER = struct.Struct("3i")


def has_socket(workspace: Path) -> bool:
    """Whether a workspace holds a socket, which may be a stale one."""
    try:
        return stat.S_ISSOCK(os.lstat(workspace / SOCKET).st_mode)
    except OSError:
        return False


def listen(workspace: Path) -> socket.socket:
    """A listening socket in a workspace that this process holds; a stale one is replaced. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        (workspace / SOCKET).unlink()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(workspace) as path:
            server.bind(path)
        (workspace / SOCKET).chmod(0o600)  # before `listen`: nobody can connect before
        server.listen(64)
    except BaseException:
        server.close()
        raise
    return server


def connect(workspace: Path, seconds: float = 5.0) -> socket.socket:
    """A connection to the server of a workspace. Raises OSError: FileNotFoundError without a socket,
    ConnectionRefusedError for one that no server listens on, PermissionError for one of another user.
    """
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.settimeout(seconds)
        with _short(workspace) as path:
            client.connect(path)
        if peer_of(client)[1] != os.geteuid():
            raise PermissionError(1, "the server belongs to another user")
        client.settimeout(None)
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
def _short(workspace: Path) -> Iterator[str]:
    """A path of the socket that is short enough: through an open folder, if need be."""
    path = str(workspace / SOCKET)
    if len(os.fsencode(path)) <= _LONGEST:
        yield path
        return
    folder = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{SOCKET}"
    finally:
        os.close(folder)
