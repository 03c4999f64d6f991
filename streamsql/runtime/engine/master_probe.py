"""Asks a server whether it is a master of Spark, in Spark's own protocol.

Spark itself waits a minute for the answer of a server that speaks another one, such as the master's web page.
"""

from __future__ import annotations

import socket
import struct

ANSWERS = 5.0
"""The seconds within which a master answers."""
_STREAM_REQUEST, _STREAM_RESPONSE, _STREAM_FAILURE = 6, 7, 8
"""The kinds of Spark's messages (org.apache.spark.network.protocol.Message.Type)."""
_TLS = (0x15, 0x16)
"""The first byte of a server that wants TLS, as a master may (spark.ssl.rpc.enabled)."""
_FRAME = struct.Struct(">qB")


def why_no_master(connection: socket.socket, seconds: float = ANSWERS) -> str:
    """Why the server of a connection is no master of Spark; empty if it is one. It is asked for a file that
    no master has, and tells so.
    """
    name = b"/files/streamsql"
    frame = _FRAME.pack(_FRAME.size + 4 + len(name), _STREAM_REQUEST) + struct.pack(">i", len(name)) + name
    known = b""
    connection.settimeout(seconds)
    try:
        connection.sendall(frame)
        while len(known) < _FRAME.size and (part := connection.recv(64)):
            known += part
            if known[0] in _TLS:
                return ""
    except TimeoutError:
        return f"it has not answered within {seconds:.0f} s"
    except OSError:
        pass
    if not known:
        return "it closes the connection"
    if len(known) >= _FRAME.size and _FRAME.unpack(known[: _FRAME.size])[1] in (
        _STREAM_RESPONSE,
        _STREAM_FAILURE,
    ):
        return ""
    return "it is the server of a web page" if known.startswith(b"HTTP/") else "it speaks another protocol"
