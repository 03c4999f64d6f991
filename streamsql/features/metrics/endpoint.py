"""The metrics endpoint: http://HOST:PORT/metrics, in the text format of Prometheus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.cli.addresses import address_of, cannot_listen, shown_address
from streamsql.cli.command_line import CommandLine
from streamsql.output.printer import Printer
from streamsql.runtime.parts import SessionParts


@dataclass(frozen=True)
class Endpoint:
    """An open endpoint. url: of its page."""

    url: str
    server: Any

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def serve_metrics(line: CommandLine, parts: SessionParts, printer: Printer) -> None:
    """Serve the metrics of a session if --metrics asks for it. Raises UsageFault."""
    if line.flags["metrics"]:
        printer.say(f"metrics: {open_endpoint(parts, line.flags['metrics']).url}")


def open_endpoint(parts: SessionParts, address: str) -> Endpoint:
    """Serve the metrics of a session, on a thread of its own. Raises UsageFault."""
    from prometheus_client import CollectorRegistry, start_http_server

    from streamsql.features.metrics.query_metrics import QueryMetrics

    host, port = address_of(address, "--metrics", 9464)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(QueryMetrics(parts))
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise cannot_listen("--metrics", host, port, error) from None
    return Endpoint(f"http://{shown_address(host, server.server_port)}/metrics", server)
