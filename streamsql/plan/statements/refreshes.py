"""A live table over live tables, to its plan: no streaming query feeds it, it is computed from snapshots."""

from __future__ import annotations

from dataclasses import replace

from streamsql.calls import Assign
from streamsql.catalog import Catalog
from streamsql.definitions import Query, Sink
from streamsql.error_codes import OUTPUT_MODE
from streamsql.errors import NameFault, RuleFault, Span
from streamsql.language.query import Query as ReadQuery
from streamsql.language.query import read_query
from streamsql.language.statements.base import Fragment, Name
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context, lower_fragment, reads_of
from streamsql.plan.lowering.lower import Lowered
from streamsql.plan.lowering.sources import Sources
from streamsql.plan.plans import Refresh, Target
from streamsql.plan.statements.query_parts import check_keys, no_late_rows
from streamsql.plan.streaming.rules import Choice


def create_refreshed(statement: CreateLiveTable, sink: Sink, context: Context) -> Refresh | None:
    """CREATE LIVE TABLE whose SELECT reads live tables and no stream; None for another."""
    if not reads_live(read_query(statement.query.text), context.catalog):
        return None
    sources = context.sources()
    try:
        lowered = lower_fragment(statement.query, sources)
    except RuleFault:
        return None  # the plan of a query over streams says it, or has stages
    if lowered.shape.streaming or not sources.live:
        return None
    _check_clauses(statement)
    query = Query(sink.name, (sink.name,), statement.query.text, live_table=True, restart=statement.restart)
    return refresh_plan(query, sink, statement.query, lowered, sources, context, statement.name.span)


def reads_live(query: ReadQuery, catalog: Catalog) -> bool:
    """Whether a query reads a live table, also through a view or a function in SQL."""
    names = [relation.name for relation in query.relations]
    of_spark = [catalog.tables.get(name.casefold()) for name in names]
    in_sql = [catalog.sql_functions.get(call.name) for call in query.calls]
    return any(isinstance(catalog.relation(name), Sink) for name in names) or any(
        entry is not None and bool(entry.live) for entry in (*of_spark, *in_sql)
    )


def refresh_again(query: Query, body: Fragment, context: Context, span: Span | None) -> Refresh:
    """The plan that refreshes a live table of the catalog again. span: where it is named, for faults."""
    sources = context.sources()
    lowered = lower_fragment(body, sources)
    sink = context.catalog.sinks[query.sinks[0].casefold()]
    if lowered.shape.streaming or not sources.live:
        gone = [name for name in query.inputs if context.catalog.relation(name) is None]
        raise NameFault(
            f"{', '.join(gone or query.inputs)}, which {query.name} is computed from, is not a live table",
            hint=f"CREATE OR REPLACE LIVE TABLE {quote_name(query.name)} AS …, "
            f"or DROP LIVE TABLE {quote_name(query.name)};",
            span=span,
            code="UNKNOWN_LIVE_TABLE",
        )
    return refresh_plan(query, sink, body, lowered, sources, context, span)


def refresh_plan(
    query: Query,
    sink: Sink,
    body: Fragment,
    lowered: Lowered,
    sources: Sources,
    context: Context,
    span: Span | None,
) -> Refresh:
    """span: where the live table is named, for faults. Raises RuleFault when it would read itself."""
    query = replace(query, inputs=tuple(s.name for s in sources.live.values()))
    check_is_no_circle(query, context.catalog, span)
    _check_columns_stay(body)
    targets = (Target(sink, lowered.shape),)
    check_keys(targets, body.span)
    return Refresh(
        query,
        targets,
        (*sources.program, Assign("result", lowered.node)),
        (Choice("complete", f"computed again after micro-batches of {', '.join(query.inputs)}"),),
        lowered.shape,
        "",
        reads_of(sources),
        lowered.as_text,
        define=True,
        body_span=body.span,
        notes=tuple(sources.notes),
    )


def _check_columns_stay(body: Fragment) -> None:
    """Raise RuleFault for a PIVOT without IN: a new value would be a new column."""
    for own in read_query(body.text).own:
        if own.kind == "PivotTable":
            raise RuleFault(
                "PIVOT without IN is not supported in a result that is kept up to date",
                detail="its columns are the values of now, and a new value would be a new column",
                hint="name the values: PIVOT (… FOR column IN ('a', 'b', …))",
                span=body.origin.span(own.span),
                code="CLAUSE_NOT_SUPPORTED",
            )


def check_is_no_circle(query: Query, catalog: Catalog, span: Span | None) -> None:
    """Raise RuleFault for a live table that would be computed from itself. span: where it is named."""
    table = query.sinks[0]
    path = circle(table, query, catalog)
    if path:
        raise RuleFault(
            f"the live table {table} would be computed from itself",
            detail=f"it would read {' → '.join(path)}",
            hint=f"give it another name: CREATE LIVE TABLE {quote_name(table + '_2')} AS …",
            span=span,
            code="CIRCULAR_DEFINITION",
        )


def circle(table: str, query: Query, catalog: Catalog) -> tuple[str, ...]:
    """The way on which a live table would read itself, from its name to its name; empty when it does not.
    query: what it is computed by.
    """
    ways: list[tuple[str, ...]] = [(table, name) for name in query.inputs]
    seen = set[str]()
    while ways:
        way = ways.pop()
        if way[-1].casefold() == table.casefold():
            return way
        if way[-1].casefold() not in seen:
            seen.add(way[-1].casefold())
            ways += [(*way, name) for q in catalog.queries_into(way[-1]) for name in q.inputs]
    return ()


def _check_clauses(statement: CreateLiveTable) -> None:
    """A live table over live tables has no streaming query, and takes no clause of one."""
    mode, trigger = statement.output_mode, statement.trigger
    if mode and mode.value != "complete":
        raise RuleFault(
            f"output mode {mode.value} needs a stream, and this query reads live tables only",
            detail="its whole result is computed again after micro-batches of these",
            hint="leave OUTPUT MODE out",
            span=mode.span,
            code=OUTPUT_MODE,
        )
    if trigger:
        raise RuleFault(
            "TRIGGER needs a stream, and this query reads live tables only",
            detail="it is refreshed after micro-batches of these: their queries have the triggers",
            hint="leave TRIGGER out",
            span=statement.query.span,
            code="TRIGGER_NOT_SUPPORTED",
        )
    if statement.late:
        raise no_late_rows(statement.late)
    if statement.begins:
        raise RuleFault(
            "FROM needs a stream, and this query reads live tables only",
            hint="leave the clause in front of AS out",
            span=Span(statement.name.span.start, statement.name.span.end),
            code="CLAUSE_NOT_SUPPORTED",
        )


def check_unread(written: Name, table: str, catalog: Catalog) -> None:
    """Raise NameFault when live tables are computed from the one that is to be dropped."""
    readers = catalog.readers_of(table)
    if readers:
        dropped = (
            f"DROP {'LIVE TABLE' if q.live_table else 'QUERY'} {quote_name(q.name)};"
            for q in catalog.with_readers(readers)
        )
        raise NameFault(
            f"{table} is read by {', '.join(q.name for q in readers)}",
            hint=" ".join(dropped) + " first",
            span=written.span,
            code="IN_USE",
        )
