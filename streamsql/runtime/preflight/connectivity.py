"""Checks before the start of a query that its servers answer.

Kafka's client retries for minutes before it reports that no server answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamsql.connectors.base import Connector
from streamsql.connectors.registry import connector
from streamsql.definitions import Sink, Stream
from streamsql.errors import EngineFault
from streamsql.language.statements.base import Name
from streamsql.runtime.engine.cluster import connect


def check_servers(entries: Iterable[Stream | Sink]) -> None:
    """Raise EngineFault when none of the servers of a stream or sink accepts a connection."""
    entries = list(entries)
    for entry in entries:
        if _has_servers(entry):
            fact = f"no {entry.connector} server of the {_kind(entry)} {entry.name} can be reached"
            _check(_connector(entry).servers(entry), fact, "are the servers right, and are they running?")
    check_registries(entries)


def check_registries(entries: Iterable[Stream | Sink]) -> None:
    """The same for their schema registries."""
    for entry in entries:
        if _has_servers(entry):
            fact = f"the schema registry of the {_kind(entry)} {entry.name} cannot be reached"
            _check(
                _connector(entry).schema_servers(entry), fact, "is schemaRegistry right, and is it running?"
            )


def contacts(entries: Iterable[Stream | Sink]) -> Iterator[tuple[str, str, str]]:
    """The servers of streams and sinks: (the name of the entry, its servers, why none of them accepts a
    connection; empty when one does).
    """
    for entry in filter(_has_servers, entries):
        for addresses in (_connector(entry).servers(entry), _connector(entry).schema_servers(entry)):
            servers = list(addresses)
            if servers:
                yield entry.name, ", ".join(f"{host}:{port}" for host, port in servers), _unreached(servers)


def _check(servers: Iterable[tuple[str, int]], fact: str, hint: str) -> None:
    reasons = _unreached(servers)
    if reasons:
        raise EngineFault(fact, detail=reasons, hint=hint, code="NO_SERVER")


def _has_servers(entry: Stream | Sink) -> bool:
    return entry.connector not in ("", "table")


def _connector(entry: Stream | Sink) -> Connector:
    return connector(Name(entry.connector))


def _kind(entry: Stream | Sink) -> str:
    return "stream" if isinstance(entry, Stream) else "sink"


def _unreached(servers: Iterable[tuple[str, int]]) -> str:
    """Why none of the servers accepts a connection; empty when one does, or there are none."""
    connection, reasons = connect(servers)
    if connection is not None:
        connection.close()
    return reasons
