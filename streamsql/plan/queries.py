"""SELECT, INSERT and CREATE LIVE TABLE to plans: what is read, what is written, in which mode."""

from __future__ import annotations

import sys
from dataclasses import replace

from streamsql.calls import Assign, Node, Program, Var, expr
from streamsql.catalog import DEFAULT_RETAIN, Query, Sink, Stream
from streamsql.connectors.base import MICRO_BATCH
from streamsql.connectors.registry import connector, connectors
from streamsql.errors import NameFault, RuleFault, did_you_mean
from streamsql.language.statements.base import Column, Fragment, Name, Trigger
from streamsql.language.statements.insert import Insert
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.select import Select
from streamsql.language.tokens import quote_name
from streamsql.plan import rules
from streamsql.plan.context import Context, lower_fragment, reads_of, stream_hint
from streamsql.plan.lower import Lowered, node_and_shape
from streamsql.plan.plans import Collect, Plan, Run, Write
from streamsql.plan.shape import Op, Shape
from streamsql.plan.sources import Sources
from streamsql.plan.stateful import lower_calls


def select(statement: Select, context: Context) -> Plan:
    sources = Sources(context.catalog, context.places)
    lowered = lower_fragment(statement.query, sources)
    if lowered.shape.streaming:
        # With the clock something is always available; such a query is ended once it has read all.
        trigger = None if lowered.shape.watches_the_clock else Trigger("available_now")
        query = Query("select", "select", statement.query.text, trigger=trigger)
        # Every row that is read is shown.
        sink = Sink("select", "memory", retain=sys.maxsize)
        return run_plan(query, sink, lowered, sources, context, statement.query, transient=True)
    program = (*sources.program, Assign("result", lowered.node))
    return Collect(program, reads_of(sources), lowered.as_text, notes=tuple(sources.notes))


def create_live_table(statement: CreateLiveTable, context: Context) -> Plan:
    name = statement.name
    if not statement.or_replace and not statement.if_not_exists:
        context.catalog.check_free(name)
        check_query_free(name, context)
    elif name.value.casefold() in context.catalog.streams:
        context.catalog.check_free(name)
    if statement.checkpoint:
        raise _no_checkpoint(statement.checkpoint)
    sink = Sink(
        name.value,
        "memory",
        key=tuple(k.value for k in statement.key),
        retain=statement.retain or DEFAULT_RETAIN,
        comment=statement.comment,
    )
    query = Query(
        name.value,
        name.value,
        statement.query.text,
        statement.output_mode.value if statement.output_mode else "",
        statement.trigger,
        live_table=True,
    )
    sources = Sources(context.catalog, context.places)
    lowered = _streaming(statement.query, sources, context, f"live table {name}")
    made = run_plan(query, sink, lowered, sources, context, statement.query, mode=statement.output_mode)
    return replace(made, define=True, skip_existing=statement.if_not_exists)


def _no_checkpoint(checkpoint: Name) -> RuleFault:
    return RuleFault(
        "a live table takes no CHECKPOINT",
        detail="its rows are kept by the console, so an older checkpoint would go on without them",
        hint="leave CHECKPOINT out: the console keeps one of its own",
        span=checkpoint.span,
    )


def check_query_free(name: Name, context: Context, sink: str = "") -> None:
    found = context.catalog.queries.get(name.value.casefold())
    if found is not None:
        raise NameFault(
            f"there is already a query {found.name}, which writes into {found.sink}",
            hint=(f"INSERT INTO {sink} AS QUERY another_name …, or " if sink else "")
            + f"DROP QUERY {found.name};",
            span=name.span,
        )


def _streaming(body: Fragment, sources: Sources, context: Context, whose: str) -> Lowered:
    lowered = lower_fragment(body, sources)
    if not lowered.shape.streaming:
        raise RuleFault(
            f"the query of {whose} reads no stream",
            hint=stream_hint(body.text, context) or "CREATE STREAM … first, or query the table with SELECT",
            span=body.span,
        )
    return lowered


def insert(statement: Insert, context: Context) -> Plan:
    if len(statement.targets) > 1:
        raise RuleFault(
            "one INSERT writes into one sink for now",
            hint="write one INSERT for each sink",
            span=statement.targets[1].span,
        )
    name = statement.targets[0]
    target = context.catalog.target(name.value)
    if isinstance(target, Stream):
        return _insert_values(statement, target, context)
    sources = Sources(context.catalog, context.places)
    lowered = lower_fragment(statement.query, sources)
    if target is None:
        return _insert_table(statement, lowered, sources, context)
    if statement.columns:
        raise RuleFault("a sink takes no column list", span=statement.columns[0].span)
    lowered = replace(lowered, node=as_declared(lowered.node, target.columns))
    if lowered.shape.streaming:
        return _insert_query(statement, target, lowered, sources, context)
    return _insert_static(statement, target, lowered, sources, context)


def _insert_table(statement: Insert, lowered: Lowered, sources: Sources, context: Context) -> Plan:
    """INSERT into a table of Spark: Spark's own when static, a query when streaming."""
    name = statement.targets[0]
    streaming = lowered.shape.streaming
    catalog = context.catalog
    entries = [s.name for s in catalog.sinks.values()] + [s.name for s in catalog.streams.values()]
    like = did_you_mean(name.value, entries)
    misspelt = like and name.value.casefold() not in context.catalog.tables
    if misspelt or (statement.has_clauses and not streaming):
        raise NameFault(
            f"there is no sink {name.value}",
            hint=like or f"CREATE SINK {name.value} USING … first",
            span=name.span,
        )
    if streaming:
        if statement.columns:
            raise RuleFault("a streaming INSERT takes no column list", span=statement.columns[0].span)
        return _insert_query(statement, Sink(name.value, "table"), lowered, sources, context)
    text_sources = Sources(context.catalog, context.places)
    text = lower_calls(statement.text, text_sources, node_and_shape)
    text_sources.register_views(text)
    program = (*text_sources.program, Assign("result", Var("spark").call("sql", text)))
    return Write(program, f"written into {name.value}", reads_of(text_sources))


def _insert_query(
    statement: Insert, sink: Sink, lowered: Lowered, sources: Sources, context: Context
) -> Plan:
    name = statement.query_name or replace(statement.targets[0], value=sink.name.rpartition(".")[2])
    check_query_free(name, context, sink.name)
    if sink.is_live:
        if statement.checkpoint:
            raise _no_checkpoint(statement.checkpoint)
        feeding = next((q for q in context.catalog.queries.values() if q.sink == sink.name), None)
        if feeding:
            raise NameFault(
                f"the query {feeding.name} already feeds {sink.name}",
                hint="a live table has one query: CREATE LIVE TABLE another_name AS …",
                span=statement.targets[0].span,
            )
    query = Query(
        name.value,
        sink.name,
        statement.query.text,
        statement.output_mode.value if statement.output_mode else "",
        statement.trigger,
        statement.checkpoint.value if statement.checkpoint else "",
    )
    return run_plan(query, sink, lowered, sources, context, statement.query, mode=statement.output_mode)


def _insert_static(
    statement: Insert, sink: Sink, lowered: Lowered, sources: Sources, context: Context
) -> Plan:
    """A static SELECT into a sink is one batch write."""
    if statement.has_clauses:
        raise RuleFault(
            "this query reads no stream, so it takes no streaming clause",
            hint=stream_hint(statement.query.text, context)
            or f"INSERT INTO {sink.name} SELECT …  writes once",
            span=statement.query.span,
        )
    made = connector(Name(sink.connector))
    write = made.write_batch(sink, Var("result"))
    if write is None:
        raise RuleFault(
            f"a {made.name} sink takes streaming queries only",
            hint=stream_hint(statement.query.text, context),
            span=statement.targets[0].span,
        )
    program = (*sources.program, Assign("result", lowered.node), Assign("", write))
    return Write(program, f"written into {sink.name}", reads_of(sources), notes=tuple(sources.notes))


def _insert_values(statement: Insert, stream: Stream, context: Context) -> Plan:
    if stream.connector != "values":
        raise RuleFault(
            f"rows cannot be put into the stream {stream.name}: it reads {stream.connector or 'a query'}",
            hint=f"only a stream USING values takes them: CREATE STREAM {stream.name}_in (…) USING values;",
            span=statement.targets[0].span,
        )
    if statement.has_clauses:
        raise RuleFault("an INSERT into a stream takes no streaming clause", span=statement.targets[0].span)
    known = {c.name.casefold(): c for c in stream.columns}
    for column in statement.columns:
        if column.value.casefold() not in known:
            raise NameFault(
                f"the stream {stream.name} has no column {column}",
                hint=did_you_mean(column.value, [c.name for c in stream.columns]),
                span=column.span,
            )
    sources = Sources(context.catalog, context.places)
    lowered = lower_fragment(statement.query, sources)
    if lowered.shape.streaming:
        raise RuleFault(
            "a stream of values takes rows, not another stream",
            hint=f"CREATE STREAM name AS {statement.query.text}",
            span=statement.query.span,
        )
    given = [c.value for c in statement.columns] or [c.name for c in stream.columns]
    rows = lowered.node.call("toDF", *given)
    fold = {g.casefold() for g in given}
    rows = rows.call(
        "select",
        *(
            expr(
                f"CAST({quote_name(c.name) if c.name.casefold() in fold else 'NULL'} AS {c.type}) "
                f"AS {quote_name(c.name)}"
            )
            for c in stream.columns
        ),
    )
    folder = context.places.values(stream.name)
    write = Var("result").call("coalesce", 1).attr("write").call("mode", "append").call("parquet", folder)
    program = (*sources.program, Assign("result", rows), Assign("", write))
    return Write(program, f"one micro-batch for {stream.name}", reads_of(sources), folder)


def as_declared(node: Node, columns: tuple[Column, ...]) -> Node:
    """A result under the names and types that its sink declares."""
    if not columns:
        return node
    return node.call("toDF", *(c.name for c in columns)).call(
        "select",
        *(expr(f"CAST({quote_name(c.name)} AS {c.type}) AS {quote_name(c.name)}") for c in columns),
    )


def run_plan(
    query: Query,
    sink: Sink,
    lowered: Lowered,
    sources: Sources,
    context: Context,
    body: Fragment,
    *,
    mode: Name | None = None,
    transient: bool = False,
) -> Run:
    takes = ("append",) if sink.connector == "table" else connector(Name(sink.connector)).modes
    keyed = sink.connector in ("memory", "console")
    shape = _with_key(lowered.shape, sink)
    if mode:
        _check_mode(mode, shape, takes, sink)
        choices = [rules.Choice(mode.value, "")]
    else:
        choices = rules.choices(shape, takes, keyed=keyed)
        if sink.is_live:
            choices = [c for c in choices if c.mode != "update" or _keeps_groups(shape)]
        if not choices:
            raise rules.refuse_all(shape, takes, sink.name)
    _check_trigger(query.trigger, sink, shape, sources)
    program: Program = (*sources.program, Assign("result", lowered.node))
    return Run(
        query,
        sink,
        program,
        tuple(choices),
        shape,
        query.checkpoint or context.places.checkpoint(query.name),
        reads_of(sources),
        lowered.as_text,
        transient,
        mode_span=mode.span if mode else None,
        body_span=body.span,
        notes=(*sources.notes, *(() if transient else sources.cautions)),
    )


def _with_key(shape: Shape, sink: Sink) -> Shape:
    """A KEY of the sink tells the groups apart even where the query's own keys are not known."""
    if not (sink.is_live and sink.key):
        return shape
    return replace(shape if shape.aggregates else shape.then(Op("key")), keys=sink.key)


def _keeps_groups(shape: Shape) -> bool:
    """Whether a live table in update mode can tell which row a newer one replaces."""
    keyed = [op for op in shape.ops if op.kind == "key" or op in shape.replacing]
    if not shape.known:
        return any(op.kind == "key" for op in keyed)
    return not keyed or shape.keys is not None


def _check_mode(mode: Name, shape: Shape, takes: tuple[str, ...], sink: Sink) -> None:
    if mode.value not in takes:
        raise rules.bad_mode(mode.value, takes, sink.name, sink.connector, mode.span)
    refusal = rules.verdict(shape, mode.value)
    if refusal:
        raise replace(refusal, span=refusal.span or mode.span).fault()
    if sink.is_live and mode.value == "update" and not _keeps_groups(shape):
        raise RuleFault(
            f"{sink.name} cannot tell the groups apart in output mode update",
            detail="a live table keeps the newest row of each group, but not all grouping keys are selected",
            hint="add them to the SELECT list, name them with KEY (column, …), or write OUTPUT MODE COMPLETE",
            span=mode.span,
        )


def _check_trigger(trigger: Trigger | None, sink: Sink, shape: Shape, sources: Sources) -> None:
    """Raise a placed RuleFault where a source, the sink or an operation does not take the trigger.

    Spark guide, "Triggers" and "Supported Queries" of continuous processing.
    """
    kind = trigger.kind if trigger else "default"
    span = trigger.span if trigger else None
    for stream in sources.streams.values():
        made = connector(Name(stream.connector)) if stream.connector else None
        if made and kind not in made.triggers:
            raise RuleFault(
                f"{made.name}, which {stream.name} reads from, does not take TRIGGER {_TRIGGERS[kind]}",
                detail=_who_takes(kind),
                hint="TRIGGER EVERY INTERVAL 1 SECOND, or leave TRIGGER out",
                span=span,
            )
    clock = next((op for op in shape.ops if op.clock), None)
    if clock and kind == "available_now":
        raise RuleFault(
            "TRIGGER AVAILABLE NOW never ends with time_mode 'processingTime'",
            detail="time goes on, so that there is always something to do",
            hint="leave TRIGGER out, and AWAIT QUERY … IDLE before STOP QUERY",
            span=span,
        )
    takes = MICRO_BATCH if sink.connector == "table" else connector(Name(sink.connector)).sink_triggers
    if kind not in takes:
        raise RuleFault(
            f"a {sink.connector} sink does not take TRIGGER {_TRIGGERS[kind]}",
            detail=_who_takes(kind),
            hint="TRIGGER EVERY INTERVAL 1 SECOND",
            span=span,
        )
    refusal = rules.trigger_verdict(shape, kind)
    if refusal:
        raise refusal.fault()


_TRIGGERS = {"continuous": "CONTINUOUS", "real_time": "REAL TIME", "available_now": "AVAILABLE NOW",
             "once": "ONCE", "every": "EVERY", "default": "EVERY"}  # fmt: skip


def _who_takes(kind: str) -> str:
    """Which sources and sinks take a kind of trigger, in words."""
    made = connectors().values()
    reads = [c.name for c in made if c.reads is not None and kind in c.triggers]
    writes = [c.name for c in made if c.writes is not None and kind in c.sink_triggers]
    sinks = f"the sinks {', '.join(writes)}" if writes else "none of the sinks here"
    return f"Spark runs it row by row: the sources {', '.join(reads)} and {sinks} can do that"
