"""The address of a Spark Connect server: sc://HOST:PORT/;token=…;use_ssl=true."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from streamsql.errors import StartFault, UsageFault, reason_of
from streamsql.runtime.embedded.secret_references import filled

PORT = 15002
"""The port of a Connect server, unless the address has another."""
ANSWERS_WITHIN = 3.0
_FORM = re.compile(r"sc://(\[[0-9a-fA-F:]+\]|[^\s:/;@]+)(?::(\d{1,5}))?(?:/(;.*)?)?", re.DOTALL)
_PARAMETERS = ("token", "use_ssl", "user_id", "user_agent", "session_id")


@dataclass(frozen=True)
class ServerAddress:
    """url: with the parameters, which may be secret; shown: without them."""

    url: str = field(repr=False)
    host: str
    port: int
    parameters: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """sc://HOST:PORT, as messages and files have it."""
        return f"sc://{self.host}:{self.port}"

    @property
    def secure(self) -> bool:
        """Whether PySpark's client uses TLS: it sends a token without it to this machine only."""
        token = "token" in self.parameters or "SPARK_CONNECT_AUTHENTICATE_TOKEN" in os.environ
        return self.parameters.get("use_ssl", "").lower() == "true" or token and self.host != "localhost"

    def with_session(self, session: str, user: str) -> str:
        """The address of a session of a user, unless the address names others."""
        given = {"user_id": user} | self.parameters | {"session_id": session}
        return f"{self.shown}/;" + ";".join(f"{key}={quote(value)}" for key, value in given.items())


def read_address(url: str) -> ServerAddress:
    """The address of --remote. Raises UsageFault; the text, which may hold a token, is not shown."""
    match = _FORM.fullmatch(url)
    hint = "--remote sc://HOST:PORT, or sc://HOST:PORT/;token=…;use_ssl=true"
    if match is None:
        raise UsageFault("--remote takes the address of a Spark Connect server", hint=hint, code="NO_CONNECT")
    parameters: dict[str, str] = {}
    for pair in (match[3] or "").split(";"):
        key, equals, value = pair.partition("=")
        if not pair:
            continue
        if not equals or key not in _PARAMETERS and not key.startswith("x-"):
            raise UsageFault(
                f"--remote has an unknown parameter {key}",
                hint=f"parameters: {', '.join(_PARAMETERS)}",
                code="NO_CONNECT",
            )
        try:
            parameters[key] = filled(unquote(value))
        except ValueError as error:
            raise UsageFault(f"--remote: {error}", hint="export it first", code="NO_CONNECT") from None
    port = int(match[2] or PORT)
    if not 0 < port < 65536:
        raise UsageFault(f"--remote: {port} is not a port", hint=hint, code="NO_CONNECT")
    return ServerAddress(url, match[1], port, parameters)


def connected(address: ServerAddress) -> socket.socket:
    """A connection. Raises StartFault within a few seconds when nothing listens there; PySpark would try for
    minutes.
    """
    try:
        return socket.create_connection((address.host.strip("[]"), address.port), ANSWERS_WITHIN)
    except OSError as error:
        late = isinstance(error, TimeoutError)
        why = f"no answer within {ANSWERS_WITHIN:g} s" if late else reason_of(error)
        raise StartFault(
            f"no Spark Connect server answers at {address.shown}",
            detail=why,
            hint="to start one there: $SPARK_HOME/sbin/start-connect-server.sh "
            f"--conf spark.connect.grpc.binding.port={address.port}",
            code="NO_SERVER",
        ) from None
