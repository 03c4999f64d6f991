"""Checks before the start of a query that its servers answer.

Kafka's client retries for minutes before it reports that no server answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from streamsql.connectors.registry import connector
from streamsql.definitions import Sink, Stream
from streamsql.errors import EngineFault
from streamsql.language.statements.base import Name
from streamsql.runtime.engine.cluster import connect


def check_servers(entries: Iterable[Stream | Sink], *, registries_only: bool = False) -> None:
    """Raise EngineFault when none of the servers of a stream or sink, or of its schema registry, accepts a
    connection.
    """
    for entry, servers, is_registry in _servers(entries):
        if registries_only and not is_registry:
            continue
        reasons = _unreached(servers)
        if reasons:
            whose = f"the {'stream' if isinstance(entry, Stream) else 'sink'} {entry.name}"
            fact = f"no {entry.connector} server of {whose} can be reached"
            hint = "are the servers right, and are they running?"
            if is_registry:
                fact = f"the schema registry of {whose} cannot be reached"
                hint = "is schemaRegistry right, and is it running?"
            raise EngineFault(fact, detail=reasons, hint=hint, code="NO_SERVER")


def contacts(entries: Iterable[Stream | Sink]) -> Iterator[tuple[str, str, str]]:
    """The servers of streams and sinks: (the name of the entry, its servers, why none of them accepts a
    connection; empty when one does).
    """
    for entry, servers, _ in _servers(entries):
        yield entry.name, ", ".join(f"{host}:{port}" for host, port in servers), _unreached(servers)


Servers = Sequence[tuple[str, int]]


def _servers(entries: Iterable[Stream | Sink]) -> Iterator[tuple[Stream | Sink, Servers, bool]]:
    """(stream or sink, its servers or those of its schema registry, which of them)."""
    for entry in entries:
        if entry.connector not in ("", "table"):
            using = connector(Name(entry.connector))
            both = (using.servers(entry), False), (using.schema_servers(entry), True)
            yield from ((entry, servers, is_registry) for servers, is_registry in both if servers)


def _unreached(servers: Servers) -> str:
    """Why none of the servers accepts a connection; empty when one does."""
    connection, reasons = connect(servers)
    if connection is not None:
        connection.close()
    return reasons
