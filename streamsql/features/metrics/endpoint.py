"""The metrics endpoint: http://HOST:PORT/metrics, in the text format of Prometheus."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from streamsql.cli.command_line import CommandLine
from streamsql.errors import UsageFault, reason_of
from streamsql.output.printer import Printer
from streamsql.runtime.parts import SessionParts

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Endpoint:
    """An open endpoint. url: of its page."""

    url: str
    server: Any

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def address_of(text: str) -> tuple[str, int]:
    """(host, port) of `PORT`, `HOST:PORT` or `[IPV6]:PORT`; the host is loopback unless it is given. Raises
    UsageFault.
    """
    match = re.fullmatch(r"(?:(\[[^\]]+\]|[^:\[\]]*):)?(\d{1,5})", text.strip())
    if match is None or int(match[2]) > 65535:
        raise UsageFault(
            f"--metrics takes an address, not {text}", hint=f"--metrics {LOOPBACK}:9464", code="BAD_ADDRESS"
        )
    return (match[1] or LOOPBACK).strip("[]"), int(match[2])


def serve_metrics(line: CommandLine, parts: SessionParts, printer: Printer) -> None:
    """Serve the metrics of a session if --metrics asks for it. Raises UsageFault."""
    if line.flags["metrics"]:
        printer.say(f"metrics: {open_endpoint(parts, line.flags['metrics']).url}")


def open_endpoint(parts: SessionParts, address: str) -> Endpoint:
    """Serve the metrics of a session, on a thread of its own. Raises UsageFault."""
    from prometheus_client import CollectorRegistry, start_http_server

    from streamsql.features.metrics.query_metrics import QueryMetrics

    host, port = address_of(address)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(QueryMetrics(parts))
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise UsageFault(
            f"the metrics endpoint {host}:{port} cannot be opened: {reason_of(error)}",
            hint="--metrics HOST:PORT names another address",
            code="BAD_ADDRESS",
        ) from None
    shown = f"[{host}]" if ":" in host else host
    return Endpoint(f"http://{shown}:{server.server_port}/metrics", server)
