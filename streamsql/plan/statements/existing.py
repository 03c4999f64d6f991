"""Plans for statements about existing entries: START QUERY, DROP, and those that only refer to one."""

from __future__ import annotations

from dataclasses import replace

from streamsql.catalog import Catalog
from streamsql.config.preferences import Preferences, is_preference
from streamsql.definitions import Query, before_name, is_staged, staged_name
from streamsql.errors import NameFault, RuleFault, Span, StreamsqlError
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.checkpoint import DescribeCheckpoint, ShowBatches
from streamsql.language.statements.live_table import DropLiveTable
from streamsql.language.statements.query import DropQuery, StartQuery
from streamsql.language.statements.session import Set
from streamsql.language.statements.sink import DropSink
from streamsql.language.statements.stream import DropStream
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context
from streamsql.plan.plans import Again, Direct, Drop, Plan, Run, Start
from streamsql.plan.statements.queries import restart
from streamsql.plan.statements.query_run import beginning
from streamsql.plan.statements.refreshes import check_unread
from streamsql.plan.streaming.readers import queries_over, streams_over


def named(statement: Statement, context: Context) -> Plan:
    """A statement that the session answers itself. The entry that it refers to must exist."""
    name: Name | None = getattr(statement, "name", None)
    if statement.refers and name:
        getattr(context.catalog, statement.refers)(name)
    return Direct(statement)


def checkpoint_of(statement: ShowBatches | DescribeCheckpoint, context: Context) -> Plan:
    if statement.owner.query:
        context.catalog.query(statement.owner.query)
    return Direct(statement)


def setting(statement: Set, context: Context) -> Plan:
    """SET. Raises NameFault or RuleFault for an unknown preference or an invalid value."""
    if statement.key and statement.value is not None and is_preference(statement.key.value):
        Preferences().set(statement.key.value, statement.value, span=statement.key.span)
    return Direct(statement)


def drop_stream(statement: DropStream, context: Context) -> Plan:
    if statement.if_exists and statement.name.value.casefold() not in context.catalog.streams:
        return Drop("stream", statement.name.value)
    catalog = context.catalog
    stream = catalog.stream(statement.name)
    streams, queries = streams_over(stream.name, catalog), queries_over(stream.name, catalog)
    readers = [*(q.name for q in queries), *streams]
    if readers and not statement.cascade:
        raise NameFault(
            f"{stream.name} is read by {', '.join(readers)}",
            detail="without the stream they could not be started again",
            hint=f"DROP STREAM {quote_name(stream.name)} CASCADE; drops them, too",
            span=statement.name.span,
            code="IN_USE",
        )
    entries = [
        *(entry for query in catalog.with_readers(queries) for entry in entries_of(query, catalog)),
        *(("streams", name) for name in reversed(streams)),
        ("streams", stream.name),
        *(("aside", name) for name in (staged_name(stream.name), before_name(stream.name))),
    ]
    return Drop("stream", stream.name, tuple(entries))


def entries_of(query: Query, catalog: Catalog) -> list[tuple[str, str]]:
    """The entries of a query: itself, its stages, the live table that was created with it, and its staged
    change.
    """
    changes = () if is_staged(query.name) else catalog.changes_of(query.name)
    staged = [entry for change in changes for entry in entries_of(change, catalog)]
    stages = [(kind, stage.name) for stage in catalog.stages_of(query.name) for kind in ("queries", "sinks")]
    table = [("sinks", query.sinks[0])] if query.live_table else []
    return [*staged, ("queries", query.name), *stages, *table]


def drop_sink(statement: DropSink, context: Context) -> Plan:
    catalog = context.catalog
    if statement.if_exists and statement.name.value.casefold() not in catalog.sinks:
        return Drop("sink", statement.name.value)
    sink = catalog.sink(statement.name)
    check_unread(statement.name, sink.name, catalog)
    for query in catalog.writers_of(sink.name):
        raise _feeds(query, sink.name, statement.name.span)
    return Drop("sink", sink.name, (("sinks", sink.name),))


def drop_live_table(statement: DropLiveTable, context: Context) -> Plan:
    """DROP LIVE TABLE also drops its query. Raises NameFault if the query has other sinks."""
    catalog = context.catalog
    if statement.if_exists and statement.name.value.casefold() not in catalog.sinks:
        return Drop("live table", statement.name.value)
    sink = catalog.live_table(statement.name)
    check_unread(statement.name, sink.name, catalog)
    feeding = catalog.queries_into(sink.name)
    for query in feeding:
        if len(query.sinks) > 1:
            raise _feeds(query, query.sink, statement.name.span)
    for query in catalog.late_into(sink.name):
        raise _feeds(query, sink.name, statement.name.span)
    entries = dict.fromkeys((*(e for q in feeding for e in entries_of(q, catalog)), ("sinks", sink.name)))
    return Drop("live table", sink.name, tuple(entries))


def _feeds(query: Query, sink: str, span: Span) -> NameFault:
    return NameFault(
        f"the query {query.name} writes to {sink}",
        hint=f"DROP QUERY {quote_name(query.name)};",
        span=span,
        code="IN_USE",
    )


def drop_query(statement: DropQuery, context: Context) -> Plan:
    """DROP QUERY also drops the live table of a query that was created with one."""
    name = statement.name
    if name and statement.if_exists and name.value.casefold() not in context.catalog.queries:
        return Drop("query", name.value)
    queries = context.catalog.named(name)
    if name and queries[0].live_table:
        check_unread(name, queries[0].sinks[0], context.catalog)
    kind = "query" if len(queries) == 1 else "queries"
    entries = tuple(entry for query in queries for entry in entries_of(query, context.catalog))
    return Drop(kind, ", ".join(query.name for query in queries), entries)


def start_query(statement: StartQuery, context: Context) -> Start:
    """START QUERY name or ALL: the plans of these queries of the catalog."""
    queries = context.catalog.named(statement.name)
    return Start(tuple(_again(query, statement, context) for query in queries))


def _again(query: Query, statement: StartQuery, context: Context) -> Again:
    span = statement.name.span if statement.name else None
    try:
        if statement.retain:
            query, context = _with_limit(query, statement.retain, context, statement.span)
        run = beginning(restart(query, context, span), statement.begins)
        if context.server:
            run = context.server.check_run(run, span or statement.span)
        return Again(query, run)
    except StreamsqlError as fault:
        return Again(query, why=fault)


def _with_limit(query: Query, retain: int, context: Context, span: Span) -> tuple[Query, Context]:
    """A query that may keep so many rows. Raises RuleFault for one that keeps none."""
    if query.into:
        return replace(query, retain=retain), context
    if query.live_table:
        sink = replace(context.catalog.sinks[query.sinks[0].casefold()], retain=retain)
        return query, replace(context, catalog=context.catalog.having(sink))
    if query.inputs:
        return replace(query, retain=retain), context
    raise RuleFault(
        f"{query.name} keeps no rows, which RETAIN could limit",
        hint=f"START QUERY {quote_name(query.name)};",
        span=span,
        code="CLAUSE_NOT_SUPPORTED",
    )


def start_plan(query: Query, context: Context) -> Run:
    """The plan of START QUERY for a query, wherever the console itself starts one again. Raises its fault."""
    again = _again(query, StartQuery(name=Name(query.name)), context)
    if again.run is None:
        raise again.why or AssertionError(query.name)
    return again.run
