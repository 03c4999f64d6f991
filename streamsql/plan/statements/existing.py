"""Plans for statements about existing entries: START QUERY, DROP, and those that only refer to one."""

from __future__ import annotations

from streamsql.catalog import Query
from streamsql.config.preferences import Preferences, is_preference
from streamsql.errors import NameFault, Span, StreamsqlError
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.checkpoint import DescribeCheckpoint, ShowBatches
from streamsql.language.statements.live_table import DropLiveTable
from streamsql.language.statements.query import DropQuery, StartQuery
from streamsql.language.statements.session import Set
from streamsql.language.statements.sink import DropSink
from streamsql.language.statements.stream import DropStream
from streamsql.language.statements.why import Why
from streamsql.plan.context import Context
from streamsql.plan.plans import Again, Direct, Drop, Plan, Run, Start
from streamsql.plan.statements.queries import restart
from streamsql.plan.statements.query_run import beginning
from streamsql.plan.statements.refreshes import check_unread


def named(statement: Statement, context: Context) -> Plan:
    """A statement that the session answers itself. The entry that it refers to must exist."""
    name: Name | None = getattr(statement, "name", None)
    if statement.refers and name:
        getattr(context.catalog, statement.refers)(name)
    return Direct(statement)


def why(statement: Why, context: Context) -> Plan:
    """WHY: the entry that it names must be there. Raises NameFault."""
    if statement.name:
        getattr(context.catalog, statement.kind)(statement.name)
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
    stream = context.catalog.stream(statement.name)
    return Drop("stream", stream.name, (("streams", stream.name),))


def drop_sink(statement: DropSink, context: Context) -> Plan:
    catalog = context.catalog
    if statement.if_exists and statement.name.value.casefold() not in catalog.sinks:
        return Drop("sink", statement.name.value)
    sink = catalog.sink(statement.name)
    check_unread(statement.name, sink.name, catalog)
    for query in catalog.queries_into(sink.name):
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
    stages = [(kind, q.name) for q in catalog.stages_of(sink.name) for kind in ("queries", "sinks")]
    entries = (*(("queries", q.name) for q in feeding), *stages, ("sinks", sink.name))
    return Drop("live table", sink.name, entries)


def _feeds(query: Query, sink: str, span: Span) -> NameFault:
    return NameFault(
        f"the query {query.name} writes to {sink}",
        hint=f"DROP QUERY {query.name};",
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
    entries: list[tuple[str, str]] = []
    for query in queries:
        entries.append(("queries", query.name))
        if query.live_table:
            entries.append(("sinks", query.sinks[0]))
    return Drop(kind, ", ".join(query.name for query in queries), tuple(entries))


def start_query(statement: StartQuery, context: Context) -> Start:
    """START QUERY name or ALL: the plans of these queries of the catalog."""
    queries = context.catalog.named(statement.name)
    return Start(tuple(_again(query, statement, context) for query in queries))


def _again(query: Query, statement: StartQuery, context: Context) -> Again:
    span = statement.name.span if statement.name else None
    try:
        return Again(query, beginning(restart(query, context, span), statement.begins))
    except StreamsqlError as fault:
        return Again(query, why=fault)


def start_plan(query: Query, context: Context) -> Run:
    """The plan of START QUERY for a query, wherever the console itself starts one again. Raises its fault."""
    again = _again(query, StartQuery(name=Name(query.name)), context)
    if again.run is None:
        raise again.why or AssertionError(query.name)
    return again.run
