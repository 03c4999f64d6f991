"""Addresses on which the console listens, HOST:PORT of a flag, and their TLS."""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import TYPE_CHECKING

from streamsql.errors import InputFault, UsageFault, reason_of

if TYPE_CHECKING:
    from ssl import SSLContext

LOOPBACK = "127.0.0.1"


def address_of(text: str, flag: str, port: int) -> tuple[str, int]:
    """(host, port) of `PORT`, `HOST:PORT` or `[IPV6]:PORT`; the host is loopback unless it is given. flag,
    port: of the hint. Raises UsageFault.
    """
    match = re.fullmatch(r"(?:(\[[^\]]+\]|[^:\[\]]*):)?(\d{1,5})", text.strip())
    if match is None or int(match[2]) > 65535:
        raise UsageFault(
            f"{flag} takes an address, not {text}", hint=f"{flag} {LOOPBACK}:{port}", code="BAD_ADDRESS"
        )
    return (match[1] or LOOPBACK).strip("[]"), int(match[2])


def shown_address(host: str, port: int) -> str:
    """HOST:PORT as in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def cannot_listen(flag: str, host: str, port: int, error: OSError) -> UsageFault:
    """The error for an address on which the console cannot listen."""
    return UsageFault(
        f"{flag} cannot listen on {shown_address(host, port)}: {why_not(error)}",
        hint=f"{flag} HOST:PORT names another address",
        code="BAD_ADDRESS",
    )


def listening_socket(host: str, port: int, flag: str) -> socket.socket:
    """A socket that listens. Raises UsageFault."""
    try:
        return open_socket(host, port)
    except OSError as error:
        raise cannot_listen(flag, host, port, error) from None


def open_socket(host: str, port: int) -> socket.socket:
    """The same. Raises OSError."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OverflowError as error:
        raise OSError(str(error)) from None


def why_not(error: OSError) -> str:
    """Why the console cannot listen."""
    return reason_of(error).partition(" (while ")[0]


def tls_of(certificate: str, key: str, given: str, hint: str = "") -> SSLContext:
    """The TLS of a server, by two files in PEM. given, hint: of the error: what names the files. Raises
    InputFault.
    """
    import ssl  # not before the first prompt

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key or None)
    except OSError as error:
        is_text = isinstance(error, ssl.SSLError)
        reason = "they are no certificate and its key in PEM" if is_text else reason_of(error)
        raise InputFault(f"{given}: {reason}", hint=hint, code="FILE_NOT_READ") from None
    return context
