"""The socket of a server: in its workspace, for its user only."""

from __future__ import annotations

import socket
from pathlib import Path

from streamsql.runtime.engine.unix_sockets import connect_to, listen_at

SOCKET = "server.sock"


def listen(workspace: Path) -> socket.socket:
    """A listening socket in a workspace that this process holds; a stale one is replaced. Raises OSError."""
    return listen_at(workspace / SOCKET)


def connect(workspace: Path, seconds: float = 5.0) -> socket.socket:
    """A connection to the server of a workspace. Raises OSError as connect_to does."""
    client = connect_to(workspace / SOCKET, seconds)
    client.settimeout(None)
    return client
