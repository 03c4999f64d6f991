"""The socket of a server: in its workspace, for its user only."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

from streamsql.runtime.engine.unix_sockets import connect_to, listen_at

SOCKET = "server.sock"


def has_socket(workspace: Path) -> bool:
    """Whether a workspace holds a socket, which may be a stale one."""
    try:
        return stat.S_ISSOCK(os.lstat(workspace / SOCKET).st_mode)
    except OSError:
        return False


def listen(workspace: Path) -> socket.socket:
    """A listening socket in a workspace that this process holds; a stale one is replaced. Raises OSError."""
    return listen_at(workspace / SOCKET)


def connect(workspace: Path, seconds: float = 5.0) -> socket.socket:
    """A connection to the server of a workspace. Raises OSError as connect_to does."""
    client = connect_to(workspace / SOCKET, seconds)
    client.settimeout(None)
    return client
