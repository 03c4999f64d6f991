"""Plans for SELECT, CREATE LIVE TABLE and the queries of the catalog."""

from __future__ import annotations

import sys
from dataclasses import replace

from streamsql.calls import Assign
from streamsql.catalog import Catalog, unknown
from streamsql.definitions import (
    DEFAULT_RETAIN,
    Query,
    Sink,
    Stream,
    is_before,
    is_staged,
    promoted_name,
    staged_name,
)
from streamsql.errors import NameFault, RuleFault, Source, Span, StreamsqlError
from streamsql.language.origin import Origin
from streamsql.language.parser import parse_text
from streamsql.language.query import read_query
from streamsql.language.statements.base import Fragment, Name, Trigger
from streamsql.language.statements.insert import InsertSet
from streamsql.language.statements.live_table import BackfillClause, CreateLiveTable
from streamsql.language.statements.select import Select
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context, lower_fragment, reads_of
from streamsql.plan.live_parts import live_part
from streamsql.plan.plans import Collect, Plan, Refresh, Run
from streamsql.plan.statements.backfill import backfilled, check_clauses
from streamsql.plan.statements.change_queries import changes_again
from streamsql.plan.statements.inserts import insert_set_parts
from streamsql.plan.statements.one_query import check_followed_on_server, check_one_streaming_query
from streamsql.plan.statements.query_parts import (
    check_query_free,
    check_streaming,
    lowered_query,
    no_checkpoint,
    one_result,
    query_of,
)
from streamsql.plan.statements.query_run import beginning, kept_beside, mode_of, run_again, run_plan
from streamsql.plan.statements.refreshes import (
    check_is_no_circle,
    create_refreshed,
    refresh_again,
    refresh_plan,
)
from streamsql.plan.statements.since import check_begins, since_of
from streamsql.plan.statements.staged import (
    SELECT,
    as_select,
    stage_run,
    staged,
    with_stages,
)
from streamsql.plan.statements.staged_inserts import insert_again

SAMPLE = 1000
"""The number of records from which the columns of a source are inferred; no more of them are read."""


def select(statement: Select, context: Context) -> Plan:
    body, sink = statement.query, Sink(SELECT, "memory")
    query = Query(SELECT, (SELECT,), body.text, trigger=Trigger("available_now"))
    try:
        planned = _select(query, body, context)
    except RuleFault as fault:
        return as_select(staged(query, sink, body, context, fault))
    if not isinstance(planned, Run):
        return planned
    run = with_stages(planned, query, sink, body, context)
    return replace(run, otherwise=as_select(run.otherwise) if isinstance(run.otherwise, Refresh) else None)


def _select(query: Query, body: Fragment, context: Context) -> Plan:
    # Every row that is read is shown.
    shown = (context.live_table(Sink(SELECT, "memory", retain=sys.maxsize)),)
    sources, lowered = lowered_query(body, shown, context)
    check_one_streaming_query(lowered, sources, body, context)
    if lowered.shape.streaming:
        # With processing time there is always new work; such a query is stopped after it has read all input.
        query = replace(query, trigger=None) if lowered.shape.watches_the_clock else query
        return run_plan(query, one_result(body, shown, sources, lowered), context, transient=True)
    program = (*sources.program, Assign("result", lowered.node))
    reads = reads_of(sources)
    if reads.live and not lowered.as_text:
        reads = replace(reads, part=live_part(read_query(body.text), reads.live))
    return Collect(program, reads, lowered.as_text, notes=tuple(sources.notes))


def watched_query(query: Fragment, context: Context) -> Plan:
    """WATCH of a query over live tables: a transient live table over these. Over a stream: what SELECT does,
    whose result refreshes, too. Raises RuleFault where it reads neither.
    """
    planned = select(Select(query=query, span=query.span), context)
    if isinstance(planned, Run):
        return planned
    sources = context.sources()
    lowered = lower_fragment(query, sources)
    if not sources.live:
        raise RuleFault(
            "WATCH shows a SELECT over live tables or streams, and this one reads neither",
            detail="a table of Spark does not tell when its rows change",
            hint="\\watch 2 repeats the last statement every 2 seconds",
            span=query.span,
            code="NO_STREAM",
        )
    sink = context.live_table(Sink(WATCHED, "memory"))
    watched = Query(WATCHED, (WATCHED,), query.text, live_table=True)
    plan = refresh_plan(watched, sink, query, lowered, sources, context, query.span)
    return replace(plan, transient=True, define=False)


WATCHED = "(watched)"
"""The name of a query that is watched, until it runs."""


def create_live_table(statement: CreateLiveTable, context: Context) -> Plan:
    name = statement.name
    if statement.staged:
        plan = create_live_table(_beside(statement, context), context)
        for run in filter(None, (plan, getattr(plan, "otherwise", None))):
            if isinstance(run, Refresh):
                after = replace(run.query, sinks=(name.value,))
                check_is_no_circle(after, context.catalog, name.span)
        assert isinstance(plan, Run)
        over_live_tables = isinstance(plan, Refresh) and not plan.stages
        return plan if statement.begins or over_live_tables else beginning(plan, "beginning")
    if statement.backfill:
        return _with_history(statement, statement.backfill, context)
    if is_staged(name.value):
        context = context.of_staged_change()
    if not statement.or_replace and not statement.if_not_exists:
        context.catalog.check_free(name, "live table")
        check_query_free(name, context)
    elif name.value.casefold() in context.catalog.streams or context.catalog.is_new(name.value):
        context.catalog.check_free(name, "live table")
    if statement.checkpoint:
        raise no_checkpoint(statement.checkpoint)
    since = since_of(statement, context)
    context = context.beginning_at(since)
    sink = Sink(
        name.value,
        "memory",
        key=tuple(k.value for k in statement.key),
        retain=statement.retain or DEFAULT_RETAIN,
        comment=statement.comment,
    )
    sink = context.live_table(sink)
    refresh = create_refreshed(statement, sink, context)
    if refresh is not None:
        check_begins(refresh, statement)
        return replace(refresh, skip_existing=statement.if_not_exists)
    own, text = name.value, statement.query.text
    query = query_of(statement, own, (own,), text, live_table=True, since=since)
    run = _live_query(query, sink, statement.query, context, statement.output_mode, statement.late)
    check_begins(run, statement)
    run = replace(run, define=True, skip_existing=statement.if_not_exists)
    return beginning(run, statement.begins)


def _with_history(statement: CreateLiveTable, clause: BackfillClause, context: Context) -> Plan:
    """The plan of CREATE LIVE TABLE … BACKFILL: that of a SELECT which reads the history, too."""
    plain = replace(statement, backfill=None)
    check_clauses(statement, context)
    create_live_table(plain, context)  # its errors have places in what is written
    name, body = statement.name.value, statement.query.span
    seen = context.of_staged_change() if is_staged(name) else context
    text, backfill, history = backfilled(statement, clause, seen)
    query = Query(name, (name,), text, live_table=True, backfill=backfill)
    entries = (query, Sink(name, "memory")) if is_staged(name) else (query,)
    catalog = context.catalog.having(*entries)
    own = replace(plain, or_replace=True, query=Fragment(text, body, Origin.of(body)))
    plan = create_live_table(own, replace(context, catalog=catalog))
    assert isinstance(plan, Run)

    def whole(run: Run) -> Run:
        return replace(run, query=replace(run.query, backfill=backfill), history=history)

    otherwise = whole(plan.otherwise) if plan.otherwise else None
    return replace(whole(plan), otherwise=otherwise, skip_existing=statement.if_not_exists)


def _beside(statement: CreateLiveTable, context: Context) -> CreateLiveTable:
    """The statement that builds a staged change, as a live table of its own. Raises NameFault, RuleFault."""
    name, catalog = statement.name, context.catalog
    reading = [q.name for q in catalog.readers_of(name.value) if is_staged(q.name) and not is_before(q.name)]
    if reading and catalog.staged(name.value) is None:
        tables = ", ".join(quote_name(promoted_name(reader)) for reader in reading)
        raise NameFault(
            f"{name} is read by the staged change of {tables}, which was made for {name} as it is",
            hint=f"DROP STAGED {tables}; then stage {name} first, and {tables} after it",
            span=name.span,
            code="IN_USE",
        )
    if is_staged(name.value):
        raise RuleFault(
            f"{name} is a staged change itself",
            hint=f"CREATE OR REPLACE LIVE TABLE {quote_name(promoted_name(name.value))} STAGED AS …",
            span=name.span,
            code="WRONG_KIND",
        )
    table = _new_name(statement, context) or _changed_table(statement, catalog)
    if statement.late:
        raise RuleFault(
            "STAGED and ON LATE INTO exclude each other: the sink would get late rows twice",
            detail="a staged change runs beside the live table, and writes into no sink",
            hint="leave out STAGED, or ON LATE INTO",
            span=statement.late.span,
            code="CLAUSE_CONFLICT",
        )
    return replace(statement, name=replace(name, value=staged_name(table)), staged=False)


def _new_name(statement: CreateLiveTable, context: Context) -> str:
    """The name of a live table that a set of changes creates; "" for one that is changed. Raises NameFault
    where another entry has the name.
    """
    name, catalog = statement.name, context.catalog
    change = catalog.staged(name.value) if catalog.is_new(name.value) else None
    if name.value.casefold() in catalog.sinks or not (change or context.open_change):
        return ""
    if change is None:
        catalog.check_free(name, "live table")
        check_query_free(name, context)
    elif not statement.or_replace and not statement.if_not_exists:
        raise NameFault(
            f"the new live table {name} is staged already",
            hint=f"CREATE OR REPLACE LIVE TABLE {quote_name(name.value)} AS …; changes it",
            span=name.span,
            code="ALREADY_EXISTS",
        )
    return promoted_name(change.name) if change else name.value


def _changed_table(statement: CreateLiveTable, catalog: Catalog) -> str:
    """The name of the live table that a statement changes. Raises NameFault, RuleFault."""
    name = statement.name
    if name.value.casefold() not in catalog.sinks:
        fault = unknown("live table", name, (table.name for table in catalog.live_tables()))
        fault.add_way("leave out STAGED: it changes a live table")
        raise fault
    table = catalog.live_table(name)
    query = catalog.queries.get(table.name.casefold())
    if query is None or not query.live_table:
        raise RuleFault(
            f"{table.name} is not created with its query, and INSERT writes into it",
            hint=f"STAGED changes what CREATE LIVE TABLE {quote_name(table.name)} AS SELECT … has created",
            span=name.span,
            code="WRONG_KIND",
        )
    if not statement.or_replace:
        raise RuleFault(
            f"STAGED changes the live table {table.name}: write CREATE OR REPLACE",
            hint=f"CREATE OR REPLACE LIVE TABLE {quote_name(table.name)} STAGED AS …",
            span=name.span,
            code="CLAUSE_CONFLICT",
        )
    return table.name


def _live_query(
    query: Query,
    sink: Sink,
    body: Fragment,
    context: Context,
    mode: Name | None,
    late: Name | None = None,
) -> Run:
    """The streaming query of a live table; in stages, where Spark refuses it and neither a mode nor ON LATE
    INTO is written.
    """
    whose = f"the query of live table {query.name}"
    view = f"CREATE TEMPORARY VIEW {quote_name(query.name)} AS {body.text};"
    try:
        sources, lowered = lowered_query(body, (sink,), context, query.mode, query.trigger)
        check_streaming(lowered, body, context, whose, instead=view)
        if mode is None:
            stages = not query.late
            check_followed_on_server(sources, body, context)
            check_one_streaming_query(lowered, sources, body, context, query.trigger, stages=stages)
        run = run_plan(query, one_result(body, (sink,), sources, lowered), context, mode, late=late)
        return run if mode or query.late else with_stages(run, query, sink, body, context)
    except RuleFault as fault:
        if mode is not None:
            _hint_at_stages(fault, query, sink, body, context)
        if mode is not None or query.late:
            raise
        return staged(query, sink, body, context, fault)


def _hint_at_stages(fault: RuleFault, query: Query, sink: Sink, body: Fragment, context: Context) -> None:
    """Add to the fault of a query whose OUTPUT MODE is written that it runs in stages without, if it does."""
    try:
        without = _live_query(replace(query, mode="", late=""), sink, body, context, None)
    except StreamsqlError:
        return
    if isinstance(without, Refresh):
        fault.add_way(f"leave out OUTPUT MODE {query.mode.upper()}: then it runs in stages")


def restart(query: Query, context: Context, span: Span | None = None) -> Run:
    """The plan that starts a query of the catalog. span: the name of the query, for errors."""
    origin = Origin.of(span)
    if query.into:
        return _beside_again(query, context, span)
    if is_staged(query.name):
        context = context.of_staged_change()
    context = context.beginning_at(context.catalog.queries.get(query.owner.casefold(), query).since)
    if query.together:
        statement = parse_text(Source("", f"EXECUTE STATEMENT SET BEGIN {query.text} END"), origin)
        assert isinstance(statement, InsertSet)
        return run_plan(query, insert_set_parts(statement, context), context, mode_of(query))
    body = Fragment(query.text, span or Span(0, 0), origin)
    if query.inputs:
        refreshed = _refresh_again if query.live_table else _changes_again
        return refreshed(query, body, context, span)
    if query.owner:
        run = stage_run(query, context.catalog.sinks[query.name.casefold()].retain, context)
        assert run is not None
        return run
    sinks = tuple(context.catalog.sinks.get(s.casefold()) or Sink(s, "table") for s in query.sinks)
    again = f"CREATE STREAM … again, or DROP QUERY {quote_name(query.name)};"
    return run_again(query, sinks, body, context, again)


def _beside_again(query: Query, context: Context, span: Span | None) -> Run:
    """The plan that starts the staged change of an INSERT again, or its rows before."""
    name = query.name if query.inputs else promoted_name(query.name)  # its stages are named after it
    insert = replace(query, name=name, sinks=query.into, into=(), live_table=False)
    own = context.of_staged_change(reads_changes=not is_before(query.name))
    return kept_beside(restart(insert, own, span), query.name, context)


def _changes_again(query: Query, body: Fragment, context: Context, span: Span | None) -> Run:
    sink = context.catalog.sinks.get(query.sinks[0].casefold())
    if sink is None or not context.catalog.stages_of(query.name):
        return changes_again(query, body, context, span)
    return insert_again(query, sink, body, context, span)


def _refresh_again(query: Query, body: Fragment, context: Context, span: Span | None) -> Run:
    if not context.catalog.stages_of(query.name):
        return refresh_again(query, body, context, span)
    sink = context.catalog.sinks[query.sinks[0].casefold()]
    run = _live_query(replace(query, inputs=()), sink, body, replace(context, stages=True), None)
    return run.otherwise or run


def as_they_come(stream: Stream, context: Context) -> Run:
    """The query that reads a stream as rows arrive, until it is stopped."""
    catalog = context.catalog.having(stream)
    statement = Select(query=Fragment(f"SELECT * FROM {quote_name(stream.name)}"))
    run = select(statement, replace(context, catalog=catalog))
    assert isinstance(run, Run)
    return replace(run, query=replace(run.query, trigger=None))
