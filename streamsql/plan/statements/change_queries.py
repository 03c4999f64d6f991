"""INSERT INTO a sink of a SELECT over live tables, to its plan: the sink is kept in step with the result."""

from __future__ import annotations

from dataclasses import replace

from streamsql.calls import Assign, Call, Var, lit
from streamsql.connectors import debezium
from streamsql.connectors.registry import connector, connectors
from streamsql.definitions import Query, Sink
from streamsql.error_codes import OUTPUT_MODE
from streamsql.errors import NameFault, RuleFault, Span, StreamsqlError
from streamsql.language.statements.base import Fragment, Name, check_new_name
from streamsql.language.statements.insert import Insert, InsertSet
from streamsql.language.tokens import quote_name
from streamsql.plan.changes_plan import Changes
from streamsql.plan.context import Context, lower_fragment, reads_of
from streamsql.plan.lowering.lower import Lowered
from streamsql.plan.lowering.shape import Shape
from streamsql.plan.lowering.sources import Sources
from streamsql.plan.plans import Target
from streamsql.plan.statements.query_parts import (
    as_declared,
    check_keys,
    check_query_free,
    no_late_rows,
    shape_as_declared,
)
from streamsql.plan.statements.refreshes import check_is_no_circle
from streamsql.plan.statements.second_insert import check_one_query
from streamsql.plan.streaming.rules import Choice

OP = "_op"
"""The column that says what a change is."""


def writes_once(statement: Insert) -> bool:
    """Whether an INSERT over live tables asks for one write of the rows that are there."""
    return statement.trigger is not None and statement.trigger.ends


def insert_changes(statement: Insert, sinks: tuple[Sink, ...], context: Context) -> Changes:
    """The plan of an INSERT into sinks of a SELECT that reads live tables and no stream."""
    _check_clauses(statement, sinks)
    lowered, sources = _lowered(statement.query, context)
    query = query_of_changes(statement, sinks[0], context)
    span = statement.targets[0].span
    plan = changes_plan(query, sinks[0], statement.query, lowered, sources, context, span)
    return replace(plan, begins=statement.begins)


def query_of_changes(statement: Insert, sink: Sink, context: Context) -> Query:
    """The query that gives a sink the changes of a result. Raises NameFault for a name that is taken."""
    target = statement.targets[0]
    name = statement.query_name or replace(target, value=target.value.rpartition(".")[2])
    check_new_name(name.value, name.span)
    query = Query(
        name.value,
        (sink.name,),
        statement.query.text,
        trigger=statement.trigger,
        restart=statement.restart,
        columns=tuple(c.value for c in statement.columns),
        retain=statement.retain or 0,
    )
    check_one_query([sink], (target,), query, context)
    check_query_free(name, context, target.value)
    return query


def changes_again(query: Query, body: Fragment, context: Context, span: Span | None) -> Changes:
    """The plan that starts such a query of the catalog again. span: where it is named, for faults."""
    lowered, sources = _lowered(body, context)
    sink = context.catalog.sinks.get(query.sinks[0].casefold())
    if sink is None or lowered.shape.streaming or not sources.live:
        raise NameFault(
            f"{', '.join(query.inputs)}, which {query.name} reads, is not a live table",
            hint=f"DROP QUERY {quote_name(query.name)};",
            span=span,
            code="UNKNOWN_LIVE_TABLE",
        )
    return changes_plan(query, sink, body, lowered, sources, context, span)


def _lowered(body: Fragment, context: Context) -> tuple[Lowered, Sources]:
    sources = context.sources()
    sources.of_changes = True
    return lower_fragment(body, sources), sources


def changes_plan(
    query: Query,
    sink: Sink,
    body: Fragment,
    lowered: Lowered,
    sources: Sources,
    context: Context,
    span: Span | None,
) -> Changes:
    """span: where the sink or query is named. Raises RuleFault for a sink that cannot take changes."""
    _check_takes_changes(sink, span)
    if lowered.shape.keys is None and not sink.key:
        own = context.sources()
        own.keys_of_live = {name: keys for name, t in sources.live.items() if (keys := live_keys(t, context))}
        lowered = replace(lowered, shape=lower_fragment(body, own).shape) if own.keys_of_live else lowered
    shape = shape_as_declared(lowered.shape, sink.columns, query.columns)
    node = as_declared(lowered.node, sink.columns, None, query.columns)
    _check_columns(shape, body)
    query = replace(query, inputs=tuple(s.name for s in sources.live.values()))
    check_is_no_circle(query, context.catalog, span)
    targets = (Target(sink, shape),)
    check_keys(targets, body.span)
    keys = sink.key or shape.keys or ()
    identified = Call(Var("identified"), (node, *([lit(list(keys))] if keys else [])))
    return Changes(
        query,
        targets,
        (*sources.program, Assign("result", identified)),
        (Choice("changes", _reason(query, sink, sources)),),
        shape,
        "",
        reads_of(sources),
        lowered.as_text,
        body_span=body.span,
        notes=tuple(sources.notes),
        keys=keys,
    )


def live_keys(table: Sink, context: Context) -> tuple[str, ...]:
    """The columns of a live table that tell its rows apart; empty if that is not known."""
    feeding = context.catalog.queries_into(table.name)
    if table.key or len(feeding) != 1:
        return table.key
    query = feeding[0]
    try:
        shape = lower_fragment(Fragment(query.text), context.sources()).shape
    except StreamsqlError:
        return ()
    return shape_as_declared(shape, table.columns, query.columns).keys or ()


def takes_changes(sink: Sink) -> bool:
    """Whether the connector of a sink can write changes."""
    if sink.stands_for is not None:
        return sink.stands_for.takes_changes
    return sink.connector != "table" and connector(Name(sink.connector)).changes_writer(sink) is not None


def _check_takes_changes(sink: Sink, span: Span | None) -> None:
    """Raise RuleFault for a sink whose connector cannot write changes."""
    if not takes_changes(sink):
        raise RuleFault(
            f"a {sink.meant} sink does not take the changes of a result",
            hint=f"connectors for it: {', '.join(connectors_for_changes())}",
            span=span,
            code="CONNECTOR_NOT_SUPPORTED",
        )


def connectors_for_changes() -> list[str]:
    return [c.name for c in connectors().values() if c.writes is not None and c.writes_batches]


def _reason(query: Query, sink: Sink, sources: Sources) -> str:
    """What the query does, in words."""
    using = connector(Name(sink.connector))
    if using.keeps_in_step(sink):
        how = f"rows of {sink.name} are inserted, replaced and deleted"
    elif sink.format == debezium.FORMAT:
        how = f"{sink.name} gets the changes (in Debezium's envelope)"
    else:
        how = f"{sink.name} gets the changes (column {OP})"
    if any(table.owner for table in sources.live.values()):
        return f"{how} after micro-batches of its stages"
    return (
        f"{how} after micro-batches of {', '.join(query.inputs)}; TRIGGER ONCE writes the rows of now, once"
    )


def _check_columns(shape: Shape, body: Fragment) -> None:
    if shape.columns and OP in {c.casefold() for c in shape.columns}:
        raise RuleFault(
            f"the result has a column {OP}, which the console adds to its changes",
            hint=f"another name: SELECT {OP} AS op, …",
            span=body.span,
            code="WRONG_COLUMNS",
        )


def _check_clauses(statement: Insert, sinks: tuple[Sink, ...]) -> None:
    """Raise RuleFault for what only a streaming query has."""
    if len(sinks) > 1:
        raise RuleFault(
            "the changes of a result over live tables go into one sink",
            detail="each sink notes by itself which changes it has",
            hint=" ".join(
                f"INSERT INTO {quote_name(sink.name)} {statement.query.text.strip()};" for sink in sinks
            ),
            span=statement.targets[1].span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    why = "the result is computed again after micro-batches of the live tables that it reads"
    if statement.output_mode:
        mode = statement.output_mode
        raise RuleFault(
            f"output mode {mode.value} needs a stream, and this query reads live tables only",
            detail=why,
            hint="leave OUTPUT MODE out",
            span=mode.span,
            code=OUTPUT_MODE,
        )
    if statement.trigger:
        raise RuleFault(
            "this TRIGGER needs a stream, and this query reads live tables only",
            detail=why,
            hint="leave TRIGGER out; TRIGGER ONCE writes the rows of now, once",
            span=statement.trigger.span or statement.query.span,
            code="TRIGGER_NOT_SUPPORTED",
        )
    if statement.late:
        raise no_late_rows(statement.late)
    if statement.checkpoint:
        raise RuleFault(
            "CHECKPOINT needs a stream, and this query reads live tables only",
            detail="the console keeps what was written last",
            hint="leave CHECKPOINT out",
            span=statement.checkpoint.span,
            code="CLAUSE_NOT_SUPPORTED",
        )


def check_is_of_streams(statement: InsertSet, context: Context) -> None:
    """Raise RuleFault for a statement set whose SELECTs read live tables and no stream."""
    for part in statement.inserts:
        sources = context.sources()
        if lower_fragment(part.query, sources).shape.streaming or not sources.live:
            return
    raise RuleFault(
        "the INSERTs of a statement set read a stream, and these read live tables only",
        detail="each sink notes by itself which changes it has, so each INSERT is a query of its own",
        hint=" ".join(
            f"INSERT INTO {quote_name(name.value)} {part.query.text.strip()};"
            for part in statement.inserts
            for name in part.targets
        ),
        span=statement.inserts[0].query.span,
        code="STATEMENT_SET",
    )
