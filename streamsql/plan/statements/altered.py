"""ALTER of a stream, sink or live table: the whole definition, to be edited, as it would be afterwards."""

from __future__ import annotations

import re
from dataclasses import replace

from streamsql.catalog import Catalog, unknown
from streamsql.definitions import Sink, Stream
from streamsql.errors import NameFault, Source, SyntaxFault
from streamsql.language.dialects.proposals_after_failure import offered
from streamsql.language.parser import parse_text
from streamsql.language.spark_definitions import Target, added_columns, dropped_columns, renamed_to
from streamsql.language.statements.base import Column, Name
from streamsql.language.statements.stream import CreateStream
from streamsql.secrets import HIDDEN, is_secret_key, refers

KINDS = {
    "STREAM": "stream",
    "SOURCE": "stream",
    "SINK": "sink",
    "LIVE TABLE": "live table",
    "MATERIALIZED VIEW": "live table",
    "MATERIALIZED TABLE": "live table",
}
"""What follows ALTER, and what is meant here."""


def unknown_target(target: Target, catalog: Catalog) -> NameFault | None:
    """The error for ALTER STREAM s, or another of KINDS, when s does not exist; None for ALTER TABLE t."""
    kind = KINDS.get(target.verb.removeprefix("ALTER "), "") if target.verb.startswith("ALTER ") else ""
    if not kind:
        return None
    sinks = [s.name for s in catalog.sinks.values() if s.is_live == (kind == "live table")]
    names = [s.name for s in catalog.streams.values()] if kind == "stream" else sinks
    return unknown(kind, Name(target.name, target.span), names)


def anew(entry: Stream | Sink, change: str, catalog: Catalog) -> str:
    """The CREATE OR REPLACE of an entry with the columns that an ALTER adds, and without those that it drops;
    its CREATE under the name that it is given. "" where a secret would stand in it. change: the ALTER.
    """
    name = renamed_to(change)
    changed = replace(entry, options=tuple((k, _reference(k, v)) for k, v in entry.options))
    if entry.columns:
        dropped = dropped_columns(change)
        left = tuple(c for c in entry.columns if c.name.casefold() not in dropped)
        changed = replace(changed, columns=(*left, *_columns(added_columns(change))))
    if name:
        changed = replace(changed, name=name)
    query = catalog.queries.get(entry.name.casefold()) if isinstance(entry, Sink) else None
    if query and query.live_table and isinstance(changed, Sink):
        text = replace(query, name=name or query.name).sql(changed)
    else:
        text = changed.sql()
    if HIDDEN in text:
        return ""
    return text if name else text.replace("CREATE", "CREATE OR REPLACE", 1)


def _reference(key: str, value: str) -> str:
    """The value of an option; for a secret, the variable of the environment that can hold it."""
    secret = is_secret_key(key) and not refers(value)
    return f"${{env:{re.sub(r'[^A-Z0-9]+', '_', key.upper())}}}" if secret else value


def _columns(written: str) -> tuple[Column, ...]:
    """Columns as ALTER adds them; none where they are no plain columns."""
    text = f"CREATE STREAM altered ({written}) USING values" if written else ""
    while text:
        try:
            statement = parse_text(Source("", text))
        except SyntaxFault as fault:
            text = offered(fault, text).proposal.rstrip(";")  # with the types in Spark's words
        else:
            return statement.columns if isinstance(statement, CreateStream) else ()
    return ()


def moved_rows(entry: Stream | Sink, change: str) -> str:
    """What becomes of the rows of a stream that holds its own when it is defined anew; "" for others, and
    where it is given another name.
    """
    holds_rows = isinstance(entry, Stream) and entry.connector == "values" and not renamed_to(change)
    return f"the rows of {entry.name} are moved to the trash when it is replaced" if holds_rows else ""
