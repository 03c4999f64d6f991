"""Asks a server whether it speaks HTTP/2, with or without TLS, as a Spark Connect server does. The client of
PySpark would try for up to a minute, and tell it in words of its libraries.
"""

from __future__ import annotations

import os
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from streamsql.features.connect.server_address import ServerAddress, connected

ANSWERS = 3.0
"""The seconds within which a server answers; one that is slower is left to PySpark's client."""
ROOTS = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"
"""The environment variable of gRPC with the file of the certificates that it trusts."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""What a client of HTTP/2 sends first, and an empty frame of settings; the server answers with its own."""
_HEAD = 9
_SETTINGS = 4
_TLS = (b"\x15", b"\x16")
"""The first byte of a server that speaks TLS: an alert, or a handshake."""


@dataclass(frozen=True)
class Obstacle:
    """Why a server cannot be used. sure: PySpark's client need not try."""

    detail: str
    hint: str
    sure: bool = True


def obstacle(address: ServerAddress) -> Obstacle | None:
    """Why PySpark's client could not talk to the server of an address; None for no known reason. Raises
    StartFault when nothing listens there.
    """
    with connected(address) as connection:
        connection.settimeout(ANSWERS)
        try:
            if address.secure:
                return _with_tls(connection, address)
            answer = _answer(connection)
        except TimeoutError:
            return None
        except OSError:
            answer = b""
    if _is_http2(answer):
        return None
    if answer[:1] in _TLS or not answer and _speaks_tls(address):
        return Obstacle("it speaks TLS", f"--remote '{address.shown}/;use_ssl=true'")
    return _of_another_protocol(answer)


_OTHER_PORT = "is that port the one of a Spark Connect server?"


def _speaks_tls(address: ServerAddress) -> bool:
    """Whether a server that closes the connection wants TLS."""
    any_server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    any_server.check_hostname, any_server.verify_mode = False, ssl.CERT_NONE
    any_server.set_alpn_protocols(["h2"])
    with connected(address) as connection:
        connection.settimeout(ANSWERS)
        try:
            any_server.wrap_socket(connection).close()
        except OSError:
            return False
    return True


def _with_tls(connection: socket.socket, address: ServerAddress) -> Obstacle | None:
    trust = _context()
    try:
        with trust.wrap_socket(connection, server_hostname=address.host.strip("[]")) as secured:
            answer = _answer(secured)
    except ssl.SSLCertVerificationError as error:
        reason = error.verify_message.rstrip(".")
        hint = f"export {ROOTS}=/path/ca.pem, a file with the certificate of its authority"
        if "match" in reason.casefold():
            hint = "--remote with a host name that its certificate has"
        return Obstacle(f"its certificate is not trusted: {reason}", hint, sure=False)
    except TimeoutError:
        return None
    except ssl.SSLError:
        if "use_ssl" not in address.parameters:
            hint = "a token is sent over TLS only, except to the host name localhost"
            return Obstacle("it does not speak TLS", hint)
        return Obstacle("it does not speak TLS", f"--remote {address.shown}, without use_ssl")
    except OSError:
        return Obstacle("it closes the connection", _OTHER_PORT)
    return None if _is_http2(answer) else _of_another_protocol(answer)


def _is_http2(answer: bytes) -> bool:
    return len(answer) == _HEAD and answer[3] == _SETTINGS


def _context() -> ssl.SSLContext:
    """The trust of gRPC: the file that its variable names, or those of its package."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.verify_flags &= ~ssl.VERIFY_X509_STRICT
    trust.set_alpn_protocols(["h2"])
    package = find_spec("grpc")
    roots = os.environ.get(ROOTS)
    if package and package.origin and not roots:
        roots = str(Path(package.origin).parent / "_cython" / "_credentials" / "roots.pem")
    with suppress(OSError, ssl.SSLError):
        trust.load_verify_locations(roots)
    return trust


def _answer(connection: socket.socket) -> bytes:
    """The first bytes that a server of HTTP/2 sends."""
    connection.sendall(_PREFACE)
    received = b""
    while len(received) < _HEAD and (part := connection.recv(_HEAD - len(received))):
        received += part
        if received[:1] in _TLS:
            break
    return received


def _of_another_protocol(answer: bytes) -> Obstacle:
    if not answer:
        return Obstacle("it closes the connection", _OTHER_PORT)
    web = answer.startswith(b"HTTP/")
    return Obstacle("it is the server of a web page" if web else "it speaks another protocol", _OTHER_PORT)
