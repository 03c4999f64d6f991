"""An INSERT over streams that Spark refuses, to its plan: stages, and the changes of their result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from streamsql.connectors import debezium
from streamsql.connectors.registry import connector
from streamsql.definitions import Query, Sink
from streamsql.errors import RuleFault, Span, StreamsqlError
from streamsql.language.nested_queries import joins_in_the_optimizer
from streamsql.language.query import read_query
from streamsql.language.statements.base import Fragment, Name
from streamsql.language.statements.insert import Insert
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context
from streamsql.plan.plans import Plan, Refresh, Run
from streamsql.plan.statements.change_queries import (
    connectors_for_changes,
    query_of_changes,
    takes_changes,
)
from streamsql.plan.statements.query_run import beginning
from streamsql.plan.statements.staged import (
    REFUSED,
    insert_head,
    runs_as_stage,
    staged,
    with_stages,
)


def insert_in_stages(
    planned: Callable[[], Plan], statement: Insert, sinks: tuple[Sink, ...], context: Context
) -> Plan:
    """The plan of an INSERT: in stages where it is refused, and with stages that run if Spark refuses a query
    that only Spark reads. Raises the fault of one that does not run in stages, with another way where there
    is one.
    """
    try:
        plan = planned()
    except RuleFault as fault:
        if statement.output_mode is not None or fault.code not in REFUSED or not sinks:
            raise
        if _runs_by_itself(statement, sinks, context):
            query = query_of_changes(statement, sinks[0], context)
            refresh = staged(query, sinks[0], statement.query, context, fault, inserts=True)
            return beginning(refresh, statement.begins)
        _hint_at_stages(fault, statement, sinks, context)
        raise
    if not isinstance(plan, Run) or isinstance(plan, Refresh) or statement.output_mode is not None:
        return plan
    if not sinks or (plan.shape.complete and not joins_in_the_optimizer(read_query(statement.query.text))):
        return plan
    if _runs_by_itself(statement, sinks, context):
        query = replace(plan.query, retain=statement.retain or 0)
        run = with_stages(plan, query, sinks[0], statement.query, context, inserts=True)
        return beginning(run, statement.begins)
    hint = RuleFault("", code=next(iter(REFUSED)))
    _hint_at_stages(hint, statement, sinks, context)
    return replace(plan, by_hand=hint.hint)


def insert_again(query: Query, sink: Sink, body: Fragment, context: Context, span: Span | None) -> Refresh:
    """The plan that starts an INSERT in stages of the catalog again."""
    fault = RuleFault(
        f"{query.name} cannot be split into stages any more",
        detail="a stream that it reads has changed",
        hint=f"DROP QUERY {quote_name(query.name)}; and INSERT INTO {quote_name(sink.name)} … again",
        span=span,
        code=next(iter(REFUSED)),
    )
    whole = replace(context, stages=True)
    return staged(replace(query, inputs=()), sink, body, whole, fault, inserts=True)


def may_run_in_stages(statement: Insert, sinks: tuple[Sink, ...]) -> bool:
    """Whether the clauses and the sinks of an INSERT let it run in stages: one sink that takes changes, and
    no clause of a streaming query.
    """
    return len(sinks) == 1 and not statement.late and not statement.checkpoint and takes_changes(sinks[0])


def _runs_by_itself(statement: Insert, sinks: tuple[Sink, ...], context: Context) -> bool:
    """Whether an INSERT runs in stages when Spark refuses it. A query that Spark runs for another sink is not
    given to one that can only append.
    """
    if not may_run_in_stages(statement, sinks):
        return False
    sink, query = sinks[0], Query("stage", ("stage",), statement.query.text)
    return not _only_appends(sink) or not runs_as_stage(query, sink, context)(statement.query.text)


def _only_appends(sink: Sink) -> bool:
    using = connector(Name(sink.connector))
    envelopes = sink.stands_for.envelopes if sink.stands_for else sink.format == debezium.FORMAT
    return using.modes_of(sink) == ("append",) and not envelopes


def _hint_at_stages(fault: RuleFault, statement: Insert, sinks: tuple[Sink, ...], context: Context) -> None:
    """Add to the fault the statements that do the same over a live table, or why there are none."""
    name = f"{'_'.join(sink.name for sink in sinks)}_rows"
    query = Query(name, (name,), statement.query.text, live_table=True)
    try:
        staged(query, Sink(name, "memory"), statement.query, replace(context, stages=True), fault)
    except StreamsqlError:
        return
    rows = quote_name(name)
    statements = [f"CREATE LIVE TABLE {rows} AS {statement.query.text.strip()};"]
    unable = next((sink for sink in sinks if not takes_changes(sink)), None)
    if unable is not None:
        why = f"in stages its result changes, and a {unable.meant} sink does not take changes"
        fault.detail = "\n".join(filter(None, (fault.detail, why)))
        statements.append(f"INSERT INTO a sink that takes its changes: {', '.join(connectors_for_changes())}")
    else:
        columns = tuple(c.value for c in statement.columns)
        heads = (insert_head(Query(s.name, (s.name,), "", columns=columns), s) for s in sinks)
        statements += [f"{head} SELECT * FROM {rows};" for head in heads]
    fault.add_way(f"in stages: {' '.join(statements)}", "or, ")
