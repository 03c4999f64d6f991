"""The metrics endpoint: http://HOST:PORT/metrics, in the text format of Prometheus."""

from __future__ import annotations

import hmac
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from streamsql.cli.addresses import address_of, cannot_listen, is_loopback, shown_address
from streamsql.cli.command_line import CommandLine
from streamsql.errors import UsageFault
from streamsql.output.printer import Printer
from streamsql.runtime.parts import SessionParts

TOKEN = "STREAMSQL_METRICS_TOKEN"
"""The variable with the token that Prometheus sends as credentials; needed where other machines reach it."""

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True)
class Endpoint:
    """An open endpoint. url: of its page."""

    url: str
    server: Any

    def close(self) -> None:
        """End it."""
        self.server.shutdown()
        self.server.server_close()


def serve_metrics(line: CommandLine, parts: SessionParts, printer: Printer) -> None:
    """Serve the metrics of a session if --metrics asks for it. Raises UsageFault."""
    address = line.flags["metrics"]
    if not address:
        return
    printer.say(f"metrics: {open_endpoint(parts, address).url}")
    if not is_loopback(address_of(address, "--metrics", 9464)[0]):
        printer.warn("other machines reach the metrics, and they are not encrypted")


def open_endpoint(parts: SessionParts, address: str) -> Endpoint:
    """Serve the metrics of a session, on a thread of its own. Raises UsageFault."""
    from prometheus_client import CollectorRegistry, start_wsgi_server

    from streamsql.features.metrics.query_metrics import QueryMetrics

    host, port = address_of(address, "--metrics", 9464)
    token = os.environ.get(TOKEN, "")
    if not (token or is_loopback(host)):
        raise UsageFault(
            f"other machines would reach the metrics on {host} without a secret",
            hint=f"export {TOKEN}=…, and give it to Prometheus as authorization, credentials",
            code="BAD_ADDRESS",
        )
    registry = CollectorRegistry(auto_describe=False)
    try:
        numeric = host if ":" in host else socket.gethostbyname(host)
        server, _ = start_wsgi_server(port, numeric, registry)
    except OSError as error:
        raise cannot_listen("--metrics", host, port, error) from None
    server.set_app(_guarded(server.get_app(), token))
    registry.register(QueryMetrics(parts))  # not before who asks needs the token
    return Endpoint(f"http://{shown_address(host, server.server_port)}/metrics", server)


def _guarded(app: App, token: str) -> App:
    """The application for who sends the token; for all if it is ""."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        given = str(environ.get("HTTP_AUTHORIZATION", ""))
        if token and not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            start("401 Unauthorized", [("WWW-Authenticate", "Bearer"), ("Content-Type", "text/plain")])
            return [b"the token of STREAMSQL_METRICS_TOKEN is missing or wrong\n"]
        return app(environ, start)

    return answer
