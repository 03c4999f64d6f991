"""The statements about staged changes, to their plans; most are about entries that exist."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from streamsql.catalog import Catalog, unknown
from streamsql.connectors.registry import connector
from streamsql.definition_sql import column_sql
from streamsql.definitions import Query, Stream, is_before, is_staged, promoted_name, staged_name
from streamsql.errors import NameFault, RuleFault, Span, StreamsqlError
from streamsql.features.change.affected import (
    affected_tables,
    reads_through,
    staged_streams_of,
    stands_alone,
)
from streamsql.features.change.statement import (
    Compare,
    DropStaged,
    Promote,
    Rollback,
)
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.stream import CreateStream
from streamsql.language.tokens import quote_name
from streamsql.plan.basic_plans import Plan
from streamsql.plan.context import Context
from streamsql.plan.plans import DefineStream, Direct, Drop
from streamsql.plan.statements.definitions import create_stream
from streamsql.plan.statements.existing import entries_of
from streamsql.plan.statements.queries import create_live_table
from streamsql.plan.statements.refreshes import check_unread
from streamsql.plan.statements.staged_tables import staging_of


@dataclass(frozen=True)
class Staging(Plan):
    """A stream is defined beside the one in use. statements: those that stage the live tables that read it,
    None in a set of changes; staged: the catalog with all of that, as far as planning knows.
    """

    define: DefineStream
    statements: tuple[CreateLiveTable, ...] | None
    staged: Catalog

    def applied(self, catalog: Catalog) -> Catalog:
        return self.staged


def staged_change(name: Name, context: Context) -> Query:
    """The query of the staged change of a live table, or of a query into a sink. Raises NameFault without
    one.
    """
    changed = changed_entry(name, context.catalog)
    query = context.catalog.staged(changed)
    if query is None:
        of = context.catalog.queries.get(changed.casefold())
        hint = f"CREATE OR REPLACE LIVE TABLE {quote_name(changed)} STAGED AS SELECT …"
        if of is not None and not of.live_table:
            into = ", ".join(map(quote_name, of.sinks))
            hint = f"INSERT INTO {into} STAGED AS QUERY {quote_name(changed)} SELECT …"
        raise not_staged(name, hint)
    return query


def changed_entry(name: Name, catalog: Catalog) -> str:
    """The name of the live table, or of the query into a sink, that a statement means. Raises NameFault."""
    query = catalog.queries.get(name.value.casefold())
    return query.name if query and not query.live_table else catalog.live_table(name).name


def not_staged(name: Name, hint: str) -> NameFault:
    return NameFault(f"nothing is staged for {name}", hint=hint, span=name.span, code="NOT_STAGED")


# ---- streams ------------------------------------------------------------------------------


def stage_stream(statement: CreateStream, context: Context) -> Plan:
    """Raises faults for a stream that cannot be staged, or a live table that cannot be computed from it.
    While a set of changes is open, END CHANGE stages what reads the stream.
    """
    name, catalog, in_set = statement.name, context.catalog, bool(context.open_change)
    old = catalog.streams.get(name.value.casefold())
    if old is None and not in_set:
        fault = unknown("stream", name, (stream.name for stream in catalog.streams.values()))
        fault.hint = "\nor ".join(p for p in (fault.hint, "leave out STAGED: it changes a stream") if p)
        raise fault
    if old is not None and not statement.or_replace:
        raise RuleFault(
            f"STAGED changes the stream {old.name}: write CREATE OR REPLACE",
            hint=f"CREATE OR REPLACE STREAM {quote_name(old.name)} STAGED …",
            span=name.span,
            code="CLAUSE_CONFLICT",
        )
    values = {f.name: getattr(statement, f.name) for f in fields(CreateStream)}
    plain = CreateStream(**{**values, "or_replace": old is not None, "staged": False})
    define = create_stream(plain, replace(context, catalog=catalog.with_changes()))
    assert isinstance(define, DefineStream)
    stream = replace(define.stream, name=old.name if old else name.value)
    _check_can_be_staged(old, stream, name.span)
    staged_before = [q for q in catalog.named(None) if q.into and not is_before(q.name)]
    reading = [q for q in staged_before if old and reads_through(q.text, old.name, catalog.with_changes())]
    if reading:
        query = quote_name(promoted_name(reading[0].name))
        raise NameFault(
            f"the staged change of {query} reads {name}, and has begun with it as it is",
            hint=f"PROMOTE {query}; or DROP STAGED {query}; first",
            span=name.span,
            code="IN_USE",
        )
    aside = replace(stream, name=staged_name(stream.name))
    define = replace(define, stream=stream)
    if in_set:
        return Staging(define, None, catalog.having(aside), notes=define.notes)
    staged = replace(context, catalog=catalog.having(aside))
    statements, after = planned_staging(affected_tables([stream.name], staged.catalog), staged, name.span)
    return Staging(define, statements, after, notes=define.notes)


def planned_staging(
    tables: Iterable[Query], context: Context, place: Span
) -> tuple[tuple[CreateLiveTable, ...], Catalog]:
    """(the statements that stage live tables, the catalog with them). place: of what they read, for faults.
    Raises RuleFault for a live table that cannot be computed from that.
    """
    catalog = context.catalog
    statements = tuple(staging_of(query, catalog) for query in tables)
    changes = [catalog.staged(statement.name.value) for statement in statements]
    for change in filter(None, changes):
        for kind, entry in entries_of(change, catalog):
            catalog = catalog.without(kind, entry)
    for statement in statements:
        try:
            planned = create_live_table(statement, replace(context, catalog=catalog))
        except StreamsqlError as fault:
            raise cannot_follow(statement.name.value, fault, place) from fault
        catalog = planned.applied(catalog)
    return statements, catalog


def cannot_follow(table: str, fault: StreamsqlError, place: Span) -> RuleFault:
    """The error of a live table that is staged because of what it reads, and cannot be computed from that."""
    return RuleFault(
        f"the live table {table} cannot be computed from the change",
        detail="\n".join(filter(None, (fault.message, fault.detail))),
        hint=f"BEGIN CHANGE name; …; CREATE OR REPLACE LIVE TABLE {quote_name(table)} …; END CHANGE;",
        span=place,
        code=fault.code,
    )


def _check_can_be_staged(old: Stream | None, new: Stream, span: Span) -> None:
    """Raise RuleFault for a stream whose rows have no place beside those of the stream in use."""
    name, why, hint = quote_name(new.name), "", ""
    both = [stream for stream in (old, new) if stream is not None]
    if any(stream.connector and connector(Name(stream.connector)).received for stream in both):
        why = "it receives its rows under its name, and each of them once"
        hint = f"CREATE STREAM {name}_2 AS SELECT … FROM {name}; and stage that and what reads it"
    elif any(stream.malformed_sink for stream in both):
        why = "ON MALFORMED INTO would write malformed messages twice"
        hint = "leave out ON MALFORMED INTO in both"
    elif new.connector == "values" and (old is None or old.connector != "values"):
        why = "a stream USING values has the rows that are inserted into it, and this one has none"
        hint = f"CREATE OR REPLACE STREAM {name} …; without STAGED"
    elif new.connector == "values" and old is not None:
        before, after = ([column_sql(c).casefold() for c in s.columns] for s in (old, new))
        if before != after[: len(before)]:
            why = "the rows of a stream USING values keep their columns: new ones may stand behind these"
            hint = f"CREATE OR REPLACE STREAM {name} …; without STAGED begins anew, without rows"
    if why:
        fact = f"the stream {new.name} cannot be staged"
        raise RuleFault(fact, detail=why, hint=hint, span=span, code="NOT_STAGEABLE")


# ---- promoted, rolled back, dropped -------------------------------------------------------


def to_promote(names: Iterable[Name], context: Context) -> tuple[dict[str, Span], dict[str, Span]]:
    """(the streams, the live tables) that are promoted by these names, with the places of these: a stream
    with the staged changes of all that read it. Raises NameFault for a name without a staged change, and
    where another staged change belongs to these.
    """
    catalog, tables = context.catalog, dict[str, Span]()
    streams = {}
    for name in names:
        aside = catalog.staged_stream(name.value)
        if aside is not None:
            streams[promoted_name(aside.name)] = name.span
        elif name.value.casefold() in catalog.streams:
            raise not_staged(name, f"CREATE OR REPLACE STREAM {quote_name(name.value)} STAGED …")
        else:
            tables[promoted_name(staged_change(name, context).name)] = name.span
    span = next(iter(streams.values()), Span(0, 0))
    for query in affected_tables(streams, catalog) if streams else ():
        if catalog.staged(query.name):
            tables.setdefault(query.name, span)
    for query in inserts_over(streams, catalog):
        tables.setdefault(promoted_name(query.name), span)
    texts = {name: catalog.aside[staged_name(name).casefold()].query for name in streams}
    texts |= {name: catalog.queries[staged_name(name).casefold()].text for name in tables}
    missing = {s: name for name, text in texts.items() for s in staged_streams_of(text, catalog)}
    for stream, reader in missing.items():
        if stream not in streams:
            together = ", ".join(map(quote_name, dict.fromkeys((*streams, *missing, *tables))))
            raise NameFault(
                f"the staged change of {reader} reads {stream} as it is staged",
                hint=f"PROMOTE {together}; puts them in use together",
                span={**tables, **streams}[reader],
                code="IN_USE",
            )
    return streams, tables


def inserts_over(streams: Iterable[str], catalog: Catalog) -> list[Query]:
    """The staged changes of queries into sinks that read streams as these are staged."""
    names = {name.casefold() for name in streams}
    changes = [q for q in catalog.named(None) if q.into and not is_before(q.name)]
    return [q for q in changes if names & {s.casefold() for s in staged_streams_of(q.text, catalog)}]


def _compare(statement: Compare, context: Context) -> Plan:
    query = staged_change(statement.name, context)
    if statement.query != bool(query.into):
        name = quote_name(promoted_name(query.name))
        raise NameFault(
            f"{name} is a {'query into a sink' if query.into else 'live table'}",
            hint=f"COMPARE {'QUERY' if query.into else 'LIVE TABLE'} {name};",
            span=statement.name.span,
            code="WRONG_KIND",
        )
    return Direct(statement)


def promote(statement: Promote, context: Context) -> Plan:
    """Raises NameFault for a change that others read, which are not promoted with it: its name goes."""
    _, tables = to_promote(statement.names, context)
    changes = {staged_name(table): Name(table, span) for table, span in tables.items()}
    for query, name in changes.items():
        others = [q.name for q in context.catalog.readers_of(query) if q.name not in changes]
        staged = [promoted_name(other) for other in others if is_staged(other)]
        if staged and len(staged) == len(others):
            together = ", ".join(map(quote_name, dict.fromkeys((*map(promoted_name, changes), *staged))))
            raise NameFault(
                f"the staged change of {name} is read by that of {', '.join(staged)}",
                hint=f"PROMOTE {together}; puts them in use together",
                span=name.span,
                code="IN_USE",
            )
        if others:
            check_unread(name, query, context.catalog)
    return Direct(statement)


def _rollback(statement: Rollback, context: Context) -> Plan:
    for name in statement.names:
        if name.value.casefold() not in context.catalog.streams:
            changed_entry(name, context.catalog)
    return Direct(statement)


def _drop(statement: DropStaged, context: Context) -> Plan:
    entries = tuple(entries_to_drop(statement.names, context))
    names = dict.fromkeys(promoted_name(name) for kind, name in entries if kind in ("aside", "queries"))
    return Drop("staged change of", ", ".join(name for name in names if "$" not in name), entries)


def entries_to_drop(names: Iterable[Name], context: Context) -> list[tuple[str, str]]:
    """What DROP STAGED removes: of a stream, also the staged changes that are there only because of it.
    Raises NameFault where another staged change would read what is removed.
    """
    catalog, names = context.catalog, tuple(names)
    streams = {n.value.casefold(): n for n in names if catalog.staged_stream(n.value)}
    named = [n for n in names if n.value.casefold() not in streams]
    for name in named:
        if name.value.casefold() in catalog.streams:
            raise not_staged(name, f"CREATE OR REPLACE STREAM {quote_name(name.value)} STAGED …")
    changes = {staged_change(name, context).name: name for name in named}
    changes |= {c.name: n for n in named for c in catalog.changes_of(changed_entry(n, catalog))}
    for staged, name in changes.items():
        if is_before(staged):
            continue
        read = staged_streams_of(catalog.queries[staged.casefold()].text, catalog)
        left = [stream for stream in read if stream.casefold() not in streams]
        if left:
            together = ", ".join(map(quote_name, (*left, *(n.value for n in names))))
            raise NameFault(
                f"{name} reads {', '.join(left)}, which is staged, too",
                detail="what reads a stream is staged with it; another SELECT may take the place of this one",
                hint=f"DROP STAGED {together}; removes them together",
                span=name.span,
                code="IN_USE",
            )
    for query in inserts_over((name.value for name in streams.values()), catalog):
        if query.name not in changes:
            stream = next(iter(streams.values()))
            together = ", ".join(map(quote_name, (*(n.value for n in names), promoted_name(query.name))))
            raise NameFault(
                f"the staged change of {promoted_name(query.name)} reads {stream} as it is staged",
                hint=f"DROP STAGED {together}; removes them together",
                span=stream.span,
                code="IN_USE",
            )
    for name in streams.values():
        for query in affected_tables([name.value], catalog):
            change = catalog.staged(query.name)
            if change is None or change.name in changes:
                continue
            others = [s for s in staged_streams_of(change.text, catalog) if s.casefold() not in streams]
            if stands_alone(query.name, catalog) or others:
                together = ", ".join(map(quote_name, (*(n.value for n in names), *others, query.name)))
                raise NameFault(
                    f"the staged change of {query.name} reads {name} as it is staged",
                    hint=f"DROP STAGED {together}; removes them together",
                    span=name.span,
                    code="IN_USE",
                )
            changes[change.name] = name
    for staged, name in changes.items():
        if any(reader.name not in changes for reader in catalog.readers_of(staged)):
            check_unread(name, staged, catalog)
    ordered = [q for q in catalog.with_readers(catalog.named(None)) if q.name in changes]
    entries = [entry for query in ordered for entry in entries_of(query, catalog)]
    return [*entries, *(("aside", staged_name(name)) for name in streams)]


PLANNERS: dict[type[Statement], object] = {
    Compare: _compare,
    Promote: promote,
    Rollback: _rollback,
    DropStaged: _drop,
}
