"""Whether the servers that a query is to talk to are there, found out before it is started.

Kafka's client goes on trying for minutes before it says that nobody answers.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable

from streamsql.catalog import Sink, Stream
from streamsql.connectors.registry import connector
from streamsql.errors import EngineFault
from streamsql.language.statements.base import Name

PATIENCE = 3.0
"""Seconds that a server has to take a connection."""


def check_servers(entries: Iterable[Stream | Sink]) -> None:
    """Raise EngineFault when none of a stream's or sink's servers takes a connection."""
    for entry in entries:
        made = connector(Name(entry.connector)) if entry.connector not in ("", "table") else None
        servers = made.servers(entry) if made else ()
        reasons = []
        for host, port in servers:
            try:
                socket.create_connection((host, port), PATIENCE).close()
                break
            except OSError as error:
                reasons.append(f"{host}:{port}: {(error.strerror or str(error)).lower()}")
        else:
            if servers:
                kind = "stream" if isinstance(entry, Stream) else "sink"
                raise EngineFault(
                    f"no {entry.connector} server of the {kind} {entry.name} can be reached",
                    detail="; ".join(reasons),
                    hint="are the servers right, and do they run?",
                )
