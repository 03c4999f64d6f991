"""SELECT, INSERT and CREATE LIVE TABLE to plans: what is read, what is written, in which mode."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from streamsql.calls import Assign, Function, Node, Var, expr
from streamsql.catalog import DEFAULT_RETAIN, Query, Sink, Stream
from streamsql.connectors.base import ALL_MODES, MICRO_BATCH
from streamsql.connectors.registry import connector, connectors
from streamsql.errors import NameFault, RuleFault, Source, Span, did_you_mean
from streamsql.language.parser import parse_text
from streamsql.language.statements.base import Column, Fragment, Name, Trigger
from streamsql.language.statements.insert import Insert, InsertSet
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.select import Select
from streamsql.language.tokens import quote_name
from streamsql.plan import rules, shared
from streamsql.plan.context import Context, lower_fragment, reads_of, stream_hint
from streamsql.plan.lower import Lowered
from streamsql.plan.plans import Collect, Plan, Run, Target, Write
from streamsql.plan.shape import Op, Shape
from streamsql.plan.sources import Sources, variable
from streamsql.plan.stateful import CHOICES, lower_calls


def select(statement: Select, context: Context) -> Plan:
    sources = context.sources()
    lowered = lower_fragment(statement.query, sources)
    if lowered.shape.streaming:
        # With the clock something is always available; such a query is ended once it has read all.
        trigger = None if lowered.shape.watches_the_clock else Trigger("available_now")
        query = Query("select", ("select",), statement.query.text, trigger=trigger)
        # Every row that is read is shown.
        target = Target(Sink("select", "memory", retain=sys.maxsize), lowered.shape)
        made = _Made(statement.query, sources, lowered, (target,))
        return _run_plan(query, made, context, transient=True)
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
        (name.value,),
        statement.query.text,
        statement.output_mode.value if statement.output_mode else "",
        statement.trigger,
        live_table=True,
    )
    sources = context.sources()
    lowered = _streaming(statement.query, sources, context, f"the query of live table {name}")
    made = _Made(statement.query, sources, lowered, (Target(sink, lowered.shape),))
    run = _run_plan(query, made, context, statement.output_mode)
    run = replace(run, define=True, skip_existing=statement.if_not_exists)
    return beginning(run, statement.begins)


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
            f"{whose} reads no stream",
            hint=stream_hint(body.text, context) or "CREATE STREAM … first, or query the table with SELECT",
            span=body.span,
        )
    return lowered


def insert(statement: Insert, context: Context) -> Plan:
    found = [context.catalog.target(name.value) for name in statement.targets]
    if len(found) == 1 and isinstance(found[0], Stream):
        return _insert_values(statement, found[0], context)
    sources = _sources(context, statement.trigger)
    lowered = lower_fragment(statement.query, sources)
    if found == [None]:
        return _insert_table(statement, lowered, sources, context)
    sinks = _sinks(statement, context)
    if statement.columns:
        raise RuleFault("a sink takes no column list", span=statement.columns[0].span)
    if not lowered.shape.streaming:
        return _insert_static(statement, sinks, lowered, sources, context)
    made = _one_result(statement.query, sinks, sources, lowered)
    return _insert_query(statement, statement.targets, made, context)


def _sources(context: Context, trigger: Trigger | None) -> Sources:
    """The sources of a query with that trigger: CONTINUOUS takes no operation that counts."""
    counts = trigger is None or trigger.kind != "continuous"
    return context.sources(counts=counts)


def _sinks(statement: Insert, context: Context) -> tuple[Sink, ...]:
    """The sinks that an INSERT names. Raises faults for what is none, or is named twice."""
    sinks: list[Sink] = []
    for name in statement.targets:
        found = context.catalog.target(name.value)
        if isinstance(found, Stream):
            raise RuleFault(
                f"{found.name} is a stream: one of several sinks it cannot be",
                hint=f"INSERT INTO {found.name} VALUES (…);",
                span=name.span,
            )
        if found is None:
            known = [s.name for s in context.catalog.sinks.values()]
            raise NameFault(
                f"there is no sink {name.value}",
                detail="beside other sinks, and in a statement set, only a sink can be written into",
                hint=did_you_mean(name.value, known) or f"CREATE SINK {name.value} USING … first",
                span=name.span,
            )
        if found in sinks:
            raise NameFault(f"the sink {found.name} is named twice", span=name.span)
        sinks.append(found)
    return tuple(sinks)


@dataclass(frozen=True)
class _Made:
    """What a query is made of: its text, the sources with the program up to the result, the result,
    its sinks, and the functions that make their rows of it.
    """

    body: Fragment
    sources: Sources
    result: Lowered
    targets: tuple[Target, ...]
    functions: tuple[Assign, ...] = ()


def _one_result(body: Fragment, sinks: tuple[Sink, ...], sources: Sources, lowered: Lowered) -> _Made:
    """One SELECT for one sink or several."""
    if len(sinks) == 1:
        result = replace(lowered, node=as_declared(lowered.node, sinks[0].columns))
        return _Made(body, sources, result, (Target(sinks[0], lowered.shape),))
    targets, functions = [], []
    for sink in sinks:
        select = ""
        if sink.columns:
            select = sources.free_variable(f"rows_for_{sink.name}")
            functions.append(Assign(select, Function(("rows",), (), as_declared(Var("rows"), sink.columns))))
        targets.append(Target(sink, lowered.shape, select))
    return _Made(body, sources, lowered, tuple(targets), tuple(functions))


def insert_set(statement: InsertSet, context: Context) -> Plan:
    names = tuple(name for part in statement.inserts for name in part.targets)
    return _insert_query(statement, names, _set(statement, context), context)


def _set(statement: InsertSet, context: Context) -> _Made:
    """The INSERTs of a set as one query: its result is the stream that all of them read, and each
    SELECT becomes a function of it.
    """
    inserts = statement.inserts
    sinks = [_sinks(part, context) for part in inserts]
    names = [name for part in inserts for name in part.targets]
    for at, name in enumerate(names):
        if name.value.casefold() in {n.value.casefold() for n in names[:at]}:
            raise NameFault(
                f"the sink {name} is named twice in the set",
                hint="write one INSERT with UNION ALL",
                span=name.span,
            )
    if len(inserts) == 1:
        sources = context.sources()
        lowered = _streaming(inserts[0].query, sources, context, "this INSERT of the set")
        return _one_result(inserts[0].query, sinks[0], sources, lowered)
    stream, whole, parts = shared.stream_of([part.query for part in inserts], context)
    sources = context.sources()
    node, shape = sources.stream(stream)
    targets, functions = [], []
    for group, lowered, part in zip(sinks, whole, parts, strict=True):
        for sink in group:
            select = sources.free_variable(f"rows_for_{sink.name}")
            value = as_declared(part.lowered.node, sink.columns)
            functions.append(Assign(select, Function((variable(stream.name),), part.program, value)))
            targets.append(Target(sink, lowered.shape, select))
        sources.live |= part.live
    body = Fragment(statement.body, Span(inserts[0].span.start, inserts[-1].query.span.end))
    return _Made(body, sources, Lowered(node, shape), tuple(targets), tuple(functions))


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
        target = Target(Sink(name.value, "table"), lowered.shape)
        made = _Made(statement.query, sources, lowered, (target,))
        return _insert_query(statement, statement.targets, made, context)
    text_sources = context.sources()
    text = lower_calls(statement.text, text_sources)
    text_sources.register_views(text)
    program = (*text_sources.program, Assign("result", Var("spark").call("sql", text)))
    return Write(program, f"written into {name.value}", reads_of(text_sources))


def _insert_query(
    statement: Insert | InsertSet, names: tuple[Name, ...], made: _Made, context: Context
) -> Plan:
    """names: the sinks as written, for the places of faults."""
    sinks = [t.sink for t in made.targets]
    own = "_".join(sink.name.rpartition(".")[2] for sink in sinks)
    name = statement.query_name or replace(names[0], value=own)
    written = statement.targets if isinstance(statement, Insert) else ()
    check_query_free(name, context, ", ".join(n.value for n in written))
    for sink, place in zip(sinks, names, strict=True):
        if sink.is_live and statement.checkpoint:
            raise _no_checkpoint(statement.checkpoint)
        feeding = context.catalog.queries_into(sink.name)
        if sink.is_live and feeding:
            raise NameFault(
                f"the query {feeding[0].name} already feeds {sink.name}",
                hint="a live table has one query: CREATE LIVE TABLE another_name AS …",
                span=place.span,
            )
    query = Query(
        name.value,
        tuple(sink.name for sink in sinks),
        statement.body if isinstance(statement, InsertSet) else made.body.text,
        statement.output_mode.value if statement.output_mode else "",
        statement.trigger,
        statement.checkpoint.value if statement.checkpoint else "",
        together=isinstance(statement, InsertSet),
    )
    return beginning(_run_plan(query, made, context, statement.output_mode, names), statement.begins)


def beginning(made: Run, begins: str) -> Run:
    """A query's plan that begins there: see Run. Raises RuleFault for FROM NOW where it cannot be had."""
    if begins == "now" and made.query.trigger and made.query.trigger.kind == "continuous":
        raise RuleFault(
            "FROM NOW does not go with TRIGGER CONTINUOUS",
            detail="it needs a micro-batch, whose offsets a continuous query does not take up",
            hint="an option of the source, such as startingOffsets 'latest'",
            span=made.body_span if made.body_span.end else None,
        )
    return replace(made, begins=begins)


def restart(query: Query, context: Context) -> Run:
    """The plan that runs a query of the catalog (again)."""
    if query.together:
        statement = parse_text(Source("", f"EXECUTE STATEMENT SET BEGIN {query.text} END"))
        assert isinstance(statement, InsertSet)
        made = _set(statement, context)
    else:
        sources = _sources(context, query.trigger)
        body = Fragment(query.text)
        sinks = tuple(context.catalog.sinks.get(s.casefold()) or Sink(s, "table") for s in query.sinks)
        made = _one_result(body, sinks, sources, lower_fragment(body, sources))
    return _run_plan(query, made, context, Name(query.mode) if query.mode else None)


def _insert_static(
    statement: Insert, sinks: tuple[Sink, ...], lowered: Lowered, sources: Sources, context: Context
) -> Plan:
    """A static SELECT into a sink is one batch write."""
    listed = ", ".join(sink.name for sink in sinks)
    if statement.has_clauses:
        raise RuleFault(
            "this query reads no stream, so it takes no streaming clause",
            hint=stream_hint(statement.query.text, context) or f"INSERT INTO {listed} SELECT …  writes once",
            span=statement.query.span,
        )
    program = [*sources.program, Assign("result", lowered.node)]
    if len(sinks) == 1:
        program[-1] = Assign("result", as_declared(lowered.node, sinks[0].columns))
    for sink, name in zip(sinks, statement.targets, strict=True):
        made = connector(Name(sink.connector))
        rows = Var("result") if len(sinks) == 1 else as_declared(Var("result"), sink.columns)
        write = made.write_batch(sink, rows)
        if write is None:
            raise RuleFault(
                f"a {made.name} sink takes streaming queries only",
                hint=stream_hint(statement.query.text, context),
                span=name.span,
            )
        program.append(Assign("", write))
    return Write(
        tuple(program), f"written into {listed}", reads_of(sources), sinks=sinks, notes=tuple(sources.notes)
    )


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
    sources = context.sources()
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


def _run_plan(
    query: Query,
    made: _Made,
    context: Context,
    mode: Name | None = None,
    names: tuple[Name, ...] = (),
    *,
    transient: bool = False,
) -> Run:
    """names: where each sink is named, for faults."""
    targets = tuple(replace(t, shape=_with_key(t.shape, t.sink)) for t in made.targets)
    sinks = [t.sink for t in targets]
    several = len(targets) > 1 or bool(targets[0].select)
    if several:
        _check_several(sinks, names)
    _check_keys(targets, made.body.span)
    takes = tuple(m for m in ALL_MODES if all(m in _modes(sink) for sink in sinks))
    real_time = query.trigger is not None and query.trigger.kind == "real_time"
    keyed = all(s.connector != "table" and connector(Name(s.connector)).shows_newest(s) for s in sinks)
    shape = _with_key(made.result.shape, sinks[0]) if len(sinks) == 1 else made.result.shape
    if mode:
        for target in targets:
            _check_mode(mode, shape, target)
        choices = [rules.Choice(mode.value, "")]
    else:
        choices = rules.choices(shape, takes, keyed=keyed)
        if not all(_keeps_groups(t.shape) for t in targets if t.sink.is_live):
            choices = [c for c in choices if c.mode != "update"]
        if not choices:
            raise rules.refuse_all(shape, takes, query.sink)
    _check_trigger(query.trigger, sinks, shape, made.sources)
    if real_time:
        choices = _real_time_modes(choices, takes, mode)
        made.sources.program += [c for c in CHOICES.values() if c not in made.sources.program]
    program = (*made.sources.program, Assign("result", made.result.node), *made.functions)
    return Run(
        query,
        targets,
        program,
        tuple(choices),
        shape,
        query.checkpoint or context.places.checkpoint(query.name),
        reads_of(made.sources),
        made.result.as_text,
        transient,
        mode_span=mode.span if mode else None,
        body_span=made.body.span,
        notes=(*made.sources.notes, *(() if transient else made.sources.cautions)),
    )


def _modes(sink: Sink) -> tuple[str, ...]:
    return ("append",) if sink.connector == "table" else connector(Name(sink.connector)).modes_of(sink)


def _check_keys(targets: tuple[Target, ...], span: Span) -> None:
    """A sink's KEY is among the columns that it gets. Raises NameFault at the query."""
    for target in targets:
        columns = tuple(c.name for c in target.sink.columns) or target.shape.columns or ()
        known = {c.casefold() for c in columns}
        missing = [k for k in target.sink.key if k.casefold() not in known] if columns else []
        if missing:
            raise NameFault(
                f"the KEY of {target.sink.name}, {', '.join(missing)}, is not a column of this query",
                hint=did_you_mean(missing[0], columns) or f"columns: {', '.join(columns)}",
                span=span,
            )


def _check_several(sinks: list[Sink], names: tuple[Name, ...]) -> None:
    """Several sinks are fed by foreachBatch, so each must be able to write a micro-batch."""
    for at, sink in enumerate(sinks):
        if sink.connector != "table" and connector(Name(sink.connector)).batch_writer(sink) is not None:
            continue
        able = [c.name for c in connectors().values() if c.writes is not None and c.writes_batches]
        raise RuleFault(
            f"a {sink.connector} sink cannot be one of several",
            detail="it cannot write a micro-batch so that one that is repeated changes nothing",
            hint=f"INSERT INTO {sink.name} in a query of its own; these can: {', '.join(able)}",
            span=names[at].span if names else None,
        )


def _with_key(shape: Shape, sink: Sink) -> Shape:
    """A KEY of the sink tells the groups apart even where the query's own keys are not known."""
    if not sink.key:
        return shape
    return replace(shape if shape.aggregates else shape.then(Op("key")), keys=sink.key)


def _keeps_groups(shape: Shape) -> bool:
    """Whether a live table in update mode can tell which row a newer one replaces."""
    keyed = [op for op in shape.ops if op.kind == "key" or op in shape.replacing]
    if not shape.known:
        return any(op.kind == "key" for op in keyed)
    return not keyed or shape.keys is not None


def _check_mode(mode: Name, shape: Shape, target: Target) -> None:
    sink = target.sink
    if mode.value not in _modes(sink):
        raise rules.bad_mode(mode.value, _modes(sink), sink.name, sink.connector, mode.span)
    refusal = rules.verdict(shape, mode.value)
    if refusal:
        raise replace(refusal, span=refusal.span or mode.span).fault()
    if sink.is_live and mode.value == "update" and not _keeps_groups(target.shape):
        raise RuleFault(
            f"{sink.name} cannot tell the groups apart in output mode update",
            detail="a live table keeps the newest row of each group, but not all grouping keys are selected",
            hint="add them to the SELECT list, name them with KEY (column, …), or write OUTPUT MODE COMPLETE",
            span=mode.span,
        )


def _check_trigger(trigger: Trigger | None, sinks: list[Sink], shape: Shape, sources: Sources) -> None:
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
    several = len(sinks) > 1
    for sink in sinks:
        # Several sinks are fed by foreachBatch, whatever each takes by itself.
        own = sink.connector != "table" and not several
        takes = connector(Name(sink.connector)).sink_triggers if own else MICRO_BATCH
        if kind not in takes:
            what = "a query of several sinks" if several else f"a {sink.connector} sink"
            raise RuleFault(
                f"{what} does not take TRIGGER {_TRIGGERS[kind]}",
                detail=_who_takes(kind),
                hint="TRIGGER EVERY INTERVAL 1 SECOND",
                span=span,
            )
    refusal = rules.trigger_verdict(shape, kind)
    if refusal:
        raise refusal.fault()
    python = next(iter(sources.functions.values()), None)
    if python and kind == "real_time":
        raise RuleFault(
            f"TRIGGER REAL TIME does not take {python.name}, which is written in Python",
            detail="Python functions are not among the operators that real-time mode has",
            hint="TRIGGER EVERY INTERVAL 1 SECOND",
            span=span,
        )


def _real_time_modes(
    choices: list[rules.Choice], takes: tuple[str, ...], mode: Name | None
) -> list[rules.Choice]:
    """Real-time mode has output mode update only. Raises RuleFault where another one is written, or the
    sink does not take it.
    """
    if (mode and mode.value != "update") or "update" not in takes:
        raise RuleFault(
            "TRIGGER REAL TIME takes output mode update only",
            hint="OUTPUT MODE UPDATE" if "update" in takes else "a sink that takes OUTPUT MODE UPDATE",
            span=mode.span if mode else None,
        )
    return [c for c in choices if c.mode == "update"] or [
        rules.Choice("update", "real-time mode has no other")
    ]


_TRIGGERS = {"continuous": "CONTINUOUS", "real_time": "REAL TIME", "available_now": "AVAILABLE NOW",
             "once": "ONCE", "every": "EVERY", "default": "EVERY"}  # fmt: skip


def _who_takes(kind: str) -> str:
    """Which sources and sinks take a kind of trigger, in words."""
    made = connectors().values()
    reads = [c.name for c in made if c.reads is not None and kind in c.triggers]
    writes = [c.name for c in made if c.writes is not None and kind in c.sink_triggers]
    if not reads and not writes:
        return "Spark runs it row by row, which none of the sources and sinks here can do"
    sources = f"the sources {', '.join(reads)}" if reads else "none of the sources here"
    sinks = f"the sinks {', '.join(writes)}" if writes else "none of the sinks here"
    return f"Spark runs it row by row: {sources} and {sinks} can do that"
