"""Statements of Spark that name a stream, sink or live table, which Spark does not have as a table."""

from __future__ import annotations

import re
from dataclasses import replace

from streamsql.catalog import Catalog, unknown
from streamsql.definition_sql import columns_sql
from streamsql.definitions import Sink, Stream
from streamsql.errors import NameFault, RuleFault, Source, Span, StreamsqlError, SyntaxFault
from streamsql.language.dialects.proposals_after_failure import offered
from streamsql.language.origin import Origin
from streamsql.language.parser import parse_text
from streamsql.language.spark_definitions import (
    Target,
    added_columns,
    described,
    dropped_columns,
    renamed_to,
    target_of,
)
from streamsql.language.spark_writes import inner_targets
from streamsql.language.statements.base import Column, Fragment, Name, Statement
from streamsql.language.statements.stream import CreateStream
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context, lower_fragment
from streamsql.secrets import HIDDEN, is_secret_key, refers


def check_target(statement: Statement, context: Context) -> None:
    """Raise RuleFault for a statement of Spark that drops or changes a stream, sink or live table, with the
    console's own statement where there is one.
    """
    target = target_of(statement.text)
    entry = context.catalog.target(target.name) if target else None
    if target is None:
        return
    if target.verb.startswith("CACHE") and not isinstance(entry, Stream):
        return
    fault = _refusal(target, entry, statement.text, context.catalog) if entry else None
    fault = fault or unknown_target(target, context.catalog)
    if fault:
        fault.span = statement.origin.span(target.span)
        raise fault


def check_inner_targets(statement: Statement, context: Context) -> None:
    """Raise RuleFault for a script of Spark (BEGIN … END) that inserts into a stream, sink or live table."""
    for name, span in inner_targets(statement.text):
        entry = context.catalog.target(name)
        if entry:
            raise RuleFault(
                f"{name} is a {_kind(entry)}: a script of Spark does not write into it",
                detail="Spark runs the statements between BEGIN and END by itself",
                hint=f"INSERT INTO {quote_name(entry.name)} … outside of BEGIN … END",
                span=statement.origin.span(span),
                code="WRONG_KIND",
            )


_OF_PARTITIONS = frozenset(("SHOW PARTITIONS", "MSCK REPAIR TABLE", "REPAIR TABLE"))


def description(statement: Statement, context: Context) -> Statement | None:
    """The console's own DESCRIBE for SHOW with the name of one thing, as DuckDB has it, and for DESCRIBE of a
    stream that Spark cannot analyze; None for another statement. Raises NameFault if nothing has that name.
    """
    named = described(statement.text)
    stream = context.catalog.streams.get(named.name.casefold()) if named else None
    if named and stream and _is_refused(stream, context):
        return _own_description(statement, stream, named.span)
    target = target_of(statement.text)
    if target is None or target.verb != "SHOW":
        return None
    entry = context.catalog.target(target.name)
    if entry is None and target.name.casefold() not in context.catalog.tables:
        raise NameFault(
            f"there is no statement SHOW {target.name}, and nothing of that name",
            hint="HELP SHOW; lists what it shows, SET; shows the settings",
            span=statement.origin.span(target.span),
            code="UNKNOWN_STATEMENT",
        )
    return _own_description(statement, entry or target.name, target.span)


def _own_description(statement: Statement, entry: Stream | Sink | str, place: Span) -> Statement:
    """entry: what is described; the name of a table of Spark. place: of its name in the statement."""
    name, kind = (entry, "table") if isinstance(entry, str) else (entry.name, _kind(entry))
    own = f"DESCRIBE {kind.upper()} {quote_name(name)}"
    origin = Origin.of(statement.origin.span(place))
    return replace(parse_text(Source("sql", own), origin), read_as=own)


def _is_refused(stream: Stream, context: Context) -> bool:
    """Whether a stream is a query that Spark refuses on streams."""
    try:
        if stream.query:
            lower_fragment(Fragment(stream.query), context.sources())
    except RuleFault:
        return True
    return False


def _kind(entry: Stream | Sink) -> str:
    return "stream" if isinstance(entry, Stream) else "live table" if entry.is_live else "sink"


def _refusal(target: Target, entry: Stream | Sink, text: str, catalog: Catalog) -> StreamsqlError:
    """text: the statement."""
    kind, name = _kind(entry), quote_name(entry.name)
    own = f"{kind.upper()} {name};"
    said = f"{target.name} is a {kind}"
    if target.verb.startswith("DROP"):
        what = target.verb.removeprefix("DROP ").lower()
        return RuleFault(f"{said}, not a {what} of Spark", proposal=f"DROP {own}", code="WRONG_KIND")
    if target.verb.startswith("SHOW CREATE"):
        return RuleFault(f"{said}, not a table of Spark", proposal=f"SHOW CREATE {own}", code="WRONG_KIND")
    if target.verb in _OF_PARTITIONS:
        return RuleFault(
            f"{said}, not a table of Spark",
            detail="only tables of files have partitions",
            proposal=f"DESCRIBE {own}",
            code="WRONG_KIND",
        )
    if target.verb.startswith("CACHE"):
        return RuleFault(f"{said}: it cannot be cached", hint=target.of_stream(name), code="WRONG_KIND")
    why = {
        "stream": "a stream is read and has no rows of its own",
        "sink": "the rows of a sink are written by queries",
        "live table": "the rows of a live table are those of its query",
    }[kind]
    message = f"{said}: {target.verb} cannot change it"
    if target.verb == "ALTER STREAM":
        message = "ALTER STREAM has ADD COLUMN, REFRESH SCHEMA and RENAME TO only"
    changed = anew(entry, text, catalog) if target.verb.startswith("ALTER") else ""
    if changed:
        detail = (moved_rows(entry) if changed.startswith("CREATE") else "") or why
        return RuleFault(message, detail=detail, proposal=f"{changed};", code="WRONG_KIND")
    hint = f"CREATE OR REPLACE {kind.upper()} {name} … changes its definition"
    if kind == "stream":
        hint = target.of_stream(name) or hint
    return RuleFault(message, detail=why, hint=hint, code="WRONG_KIND")


# ---- ALTER: the whole definition, to be edited, as it would be afterwards

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
    """The ALTER STREAM that adds the columns of another ALTER; else the CREATE OR REPLACE of an entry with
    the columns that an ALTER adds, and without those that it drops; for another name, the ALTER … RENAME TO
    of the console. "" where a secret would stand in it. change: the ALTER.
    """
    if name := renamed_to(change):
        return f"ALTER {_kind(entry).upper()} {quote_name(entry.name)} RENAME TO {quote_name(name)}"
    changed = replace(entry, options=tuple((k, _reference(k, v)) for k, v in entry.options))
    if entry.columns:
        dropped, added = dropped_columns(change), _columns(added_columns(change))
        if added and not dropped and isinstance(entry, Stream):
            return f"ALTER STREAM {quote_name(entry.name)} ADD COLUMNS{columns_sql(added)}"
        left = tuple(c for c in entry.columns if c.name.casefold() not in dropped)
        changed = replace(changed, columns=(*left, *added))
    query = catalog.queries.get(entry.name.casefold()) if isinstance(entry, Sink) else None
    if query and query.live_table and isinstance(changed, Sink):
        text = query.sql(changed)
    else:
        text = changed.sql()
    if HIDDEN in text:
        return ""
    return text.replace("CREATE", "CREATE OR REPLACE", 1)


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


def moved_rows(entry: Stream | Sink) -> str:
    """What becomes of the rows of a stream that holds its own when it is defined anew; "" for others."""
    holds_rows = isinstance(entry, Stream) and entry.connector == "values"
    return f"the rows of {entry.name} are moved to the trash when it is replaced" if holds_rows else ""
