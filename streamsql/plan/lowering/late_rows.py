"""The late rows of a query as a relation: FROM LATE ROWS OF QUERY q AT BATCH 3.

The query is lowered again. What stands before its first stateful operations, where Spark drops late rows,
becomes a function of its streams; a helper reads the streams micro-batch by micro-batch from the logs in the
checkpoint, and compares event times with the watermark of the micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from streamsql.calls import (
    Assign,
    Attr,
    Call,
    Function,
    Lit,
    Node,
    Program,
    Var,
    call,
    calls_in,
    expr,
    links_of,
    variables_in,
    with_parts,
)
from streamsql.connectors.registry import connector
from streamsql.definitions import Query, Stream
from streamsql.errors import Note, RuleFault, Source, Span
from streamsql.language.parser import parse_text
from streamsql.language.query import ConsoleRelation, read_query
from streamsql.language.statements.base import Name, count_of, name_of
from streamsql.language.statements.checkpoint import Owner
from streamsql.language.statements.insert import InsertSet
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.shape import Shape, StateInput
from streamsql.plan.lowering.sources import Sources, read_by_spark_alone, variable, watermarked

READER = "LateRows"
"""The helper that reads late rows."""
_FILES, _START, _END, _CREATED = "files", "start", "end", "created"
_RATES = ("rate", "rate-micro-batch")
_BEHIND = frozenset({"aggregate", "distinct", "distinct_on", "stateful"})


def late_tables(text: str) -> list[tuple[Owner, int | None]]:
    """The queries whose late rows a query reads, and the micro-batch of each if one is written. Raises
    SyntaxFault.
    """
    own = (o for o in read_query(text).own if o.kind == "LateTable")
    return [(Owner(query=name_of(o.node.get("QueryName"))), _batch(o)) for o in own]


def _batch(own: ConsoleRelation) -> int | None:
    part = own.node.get("StateBatch")
    number = part.get("Number") if part else None
    return count_of(number, "this takes a whole number", least=0) if number else None


def lower_late_rows(own: ConsoleRelation, sources: Sources) -> str:
    """Define the late rows of a query as a variable of the program. Returns its name in sources. Raises
    NameFault or RuleFault, with its span.
    """
    node = own.node
    asked = name_of(node.get("QueryName"))
    query = sources.catalog.query(asked)
    batch = _batch(own)
    _check(query, asked, sources)
    inner = Sources(sources.catalog, sources.places, sources.lower, counts=False)
    result, shape = inner.lower(shared_text(query, sources), inner)
    check_sources(inner.bases, asked.span)
    reading, streams, functions = reading_steps(inner, shape)
    if not functions:
        raise read_by_spark_alone(query.text, query.name, asked.span, sources.catalog) or RuleFault(
            f"the query {query.name} drops no late rows",
            detail="rows are late for windows, deduplication, joins of streams and stateful processors only, "
            "and in a query of DataFrame calls (EXPLAIN PYSPARK)",
            hint=f"SHOW PROGRESS {quote_name(query.name)}; counts the late rows of each micro-batch",
            span=asked.span,
            code="NO_STATE",
        )
    omitted = drops_behind_a_join(shape)
    if omitted and not _drops_before_a_join(shape):
        raise RuleFault(
            f"the late rows of {query.name} cannot be read: they are rows that a join emits",
            detail=omitted,
            hint=f"SHOW PROGRESS {quote_name(query.name)};",
            span=asked.span,
            code="WRONG_KIND",
        )
    if omitted:
        sources.note(Note("LATE_ROWS_OF_JOIN", omitted))
    folder = query.checkpoint or inner.places.checkpoint(query.name)
    reader = call(READER, Var("spark"), folder, result, streams, functions)
    arguments = () if batch is None else (batch,)
    sources.program += [*inner.program, *reading]
    sources.live |= inner.live
    sources.functions |= inner.functions
    sources.states.append(node.span)
    return sources.define(f"{query.name}_late_rows", reader.call("frame", *arguments), Shape())


def _inputs(sources: Sources, shape: Shape) -> list[StateInput]:
    """The inputs of the first operations of a query that keep state, as far as they are streams of the
    console.
    """
    bases = {variable(s.name) for s in sources.bases}

    def reads_stream(read: StateInput) -> bool:
        body = _needed(read.node, sources.program)
        return not bases.isdisjoint(variables_in((*body, Assign("", read.node))))

    ops = (op for op in shape.ops if all(map(reads_stream, op.reads)))
    return list(dict.fromkeys(read for op in ops for read in op.reads))


def reading_steps(sources: Sources, shape: Shape) -> tuple[Program, list[object], list[object]]:
    """What reads the inputs of the first stateful operations of a query again: the steps after its program,
    the streams, and the functions of these inputs, as LateRows takes them. No functions: it has no state.
    """
    names = [variable(s.name) for s in sources.bases]
    steps, streams, functions = list[Assign](), list[object](), list[object]()
    for stream, base in zip(sources.bases, names, strict=True):
        kind = _kind(stream)
        steps.append(Assign(f"read_{base}", _reader(stream, sources)))
        streams.append([Var(base), Var(f"read_{base}"), kind])
    derived = [s for s in sources.program if s.name not in names]
    for at, stream_input in enumerate(_inputs(sources, shape), 1):
        body = _needed(stream_input.node, derived)
        steps.append(Assign(f"input_{at}", Function(tuple(names), body, stream_input.node)))
        used = variables_in((*body, Assign("", stream_input.node)))
        numbers = [n for n, base in enumerate(names) if base in used]
        functions.append([Var(f"input_{at}"), numbers, list(stream_input.keys or ())])
    return tuple(steps), streams, functions


def drops_behind_a_join(shape: Shape) -> str:
    """Of a query that groups or deduplicates what a join without a time range gives: which late rows cannot
    be read again; "" for others. Behind other operations Spark's watermark leaves no row late (it is that of
    the rows which they emit), and a join with a time range emits no row that is older.
    """
    if not any(_are_behind_joins(shape)):
        return ""
    return (
        "rows that the operation behind the join drops are not among the late rows: the join takes "
        "them from its state, not from one micro-batch; SHOW PROGRESS counts them, and a time range "
        "in the condition of the join keeps it from emitting them"
    )


def _drops_before_a_join(shape: Shape) -> bool:
    """Whether another operation than the one behind a join without a time range may drop rows, too."""
    timed = any(op.kind == "join" and all(op.sides) and op.timed for op in shape.ops)
    return timed or not all(_are_behind_joins(shape))


def _are_behind_joins(shape: Shape) -> list[bool]:
    """Of each operation that groups or deduplicates: whether it does so with what a join without a time range
    gives.
    """
    return [
        any(o.kind == "join" and all(o.sides) and not o.timed for o in shape.inputs(number))
        for number, op in enumerate(shape.ops)
        if op.kind in _BEHIND
    ]


def function_of_rows(sources: Sources, result: Node, shape: Shape) -> Function:
    """The function that computes a query from the rows of its streams and, behind these, of the inputs of the
    first stateful operations of its shape, in the order of `reading_steps`.
    """
    bases = [variable(s.name) for s in sources.bases]
    derived = [s for s in sources.program if s.name not in bases]
    inputs = _inputs(sources, shape)
    instead: dict[Node, Node] = {}
    for at, stream_input in enumerate(inputs):
        rows: Node = Var(f"rows_{at}")
        named = {a for c in calls_in((Assign("", stream_input.node),)) if (a := _alias(c))}
        instead.setdefault(stream_input.node, rows.call("alias", named.pop()) if len(named) == 1 else rows)
    steps = tuple(replace(s, node=_replaced(s.node, instead)) for s in derived)
    value = _replaced(result, instead)
    names = (*bases, *(f"rows_{at}" for at in range(len(inputs))))
    return Function(names, _needed(value, list(steps)), value)


def _alias(call: Call) -> str:
    """The name that a call gives to a DataFrame."""
    named = call.method == "alias" and len(call.args) == 1
    text = call.args[0].value if named and isinstance(call.args[0], Lit) else ""
    is_column = links_of(call)[0] == Var("F")
    return text if isinstance(text, str) and not is_column else ""


def _replaced(node: Node, instead: dict[Node, Node]) -> Node:
    """A tree with other nodes in place of some."""
    return instead[node] if node in instead else with_parts(node, lambda part: _replaced(part, instead))


def stream_batches(stream: Stream, query: Query, sources: Sources) -> Program:
    """The program that gives a reader of the micro-batches of one stream in a query; empty if the query does
    not read it. sources: new ones.
    """
    result, _ = sources.lower(query.text, sources)
    if stream.name.casefold() not in {s.name.casefold() for s in sources.streams.values()}:
        return ()
    base = variable(stream.name)
    streams = [[Var(base), Var("read_again"), _kind(stream)]]
    folder = query.checkpoint or sources.places.checkpoint(query.name)
    reader = call(READER, Var("spark"), folder, result, streams, [])
    again = Assign("read_again", _reader(stream, sources))
    return (*sources.program, again, Assign("reader", reader))


def _check(query: Query, asked: Name, sources: Sources) -> None:
    """Raise RuleFault for a query over live tables."""
    if query.inputs:
        feeding = [q.name for name in query.inputs for q in sources.catalog.queries_into(name)]
        raise RuleFault(
            f"the late rows of {query.name} cannot be read: it is computed from live tables",
            hint=f"LATE ROWS OF QUERY {quote_name(feeding[0])}" if feeding else "",
            span=asked.span,
            code="WRONG_KIND",
        )


def check_sources(bases: list[Stream], span: Span) -> None:
    """Raise RuleFault for a source whose micro-batches cannot be read again."""
    for stream in bases:
        source = connector(Name(stream.connector))
        ramp = stream.option("rampUpTime", "0")
        if _kind(stream) in _RATES and ramp.rstrip("s").strip() == "0":
            continue
        if stream.connector != "values" and not source.offset_options and not source.path_option:
            raise RuleFault(
                f"the rows of {stream.name} cannot be read again: its source is {stream.connector}",
                detail="values streams, files, Kafka, received messages, rate (without rampUpTime) and "
                "rate-micro-batch can be",
                hint=f"WHY STREAM {quote_name(stream.name)};",
                span=span,
                code="CONNECTOR_NOT_SUPPORTED",
            )


def _needed(node: Node, derived: list[Assign]) -> Program:
    """The steps that a node depends on, in their order."""
    wanted = set(variables_in((Assign("", node),)))
    needed = []
    for step in reversed(derived):
        if step.name in wanted:
            needed.append(step)
            wanted |= variables_in((step,))
    return tuple(reversed(needed))


# ---- reading a part of a stream again -----------------------------------------------------------


def _reader(stream: Stream, sources: Sources) -> Function:
    """The function that reads the files, or the messages between two offsets, of a stream."""
    if stream.connector in _RATES:
        return _rate_reader(stream)
    source, rows = connector(Name(stream.connector)), sources.at_rest(stream)
    assert rows is not None
    if source.offset_options:
        parameters: tuple[str, ...] = (_START, _END)
        first, last = source.offset_options
        rows = _loading(rows, lambda reader: reader.call("option", first, Var(_START))
                        .call("option", last, Var(_END)).call("load"))  # fmt: skip
    else:
        parameters = (_FILES,)
        rows = _loading(rows, lambda reader: _based(reader, stream).call("load", Var(_FILES)))
    return Function(parameters, (), watermarked(rows, stream.watermark))


def _kind(stream: Stream) -> str:
    """How the log of a checkpoint tells what was read of a stream."""
    if stream.connector in ("kafka", *_RATES):
        return stream.connector
    return "offsets" if connector(Name(stream.connector)).offset_options else "files"


def _rate_reader(stream: Stream) -> Function:
    """The function that computes the rows of a stream of Spark's rate sources again."""
    if stream.connector == "rate":
        per = int(stream.option("rowsPerSecond", "1"))
        parameters: tuple[str, ...] = (_CREATED, _START, _END)
        rows = Var("spark").call("range", Var(_START), Var(_END))
        created = Var("F").call("lit", Var(_CREATED)).call("alias", "created")
        rows = rows.call("select", expr("*"), created, expr(f"explode(sequence(0L, {per - 1}L)) AS n"))
        time = f"created + id * 1000 + CAST(round(n * 1000 / {per}) AS BIGINT)"
        value = f"id * {per} + n"
    else:
        per = int(stream.option("rowsPerBatch"))
        begins, step = (
            int(stream.option(k, v)) for k, v in (("startTimestamp", "0"), ("advanceMillisPerBatch", "1000"))
        )
        parameters = (_START, _END)
        rows = Var("spark").call("range", Var(_START), Var(_END))
        time, value = f"{begins} + (id div {per}) * {step}", "id"
    columns = (expr(f"timestamp_millis({time}) AS timestamp"), expr(f"{value} AS value"))
    return Function(parameters, (), watermarked(rows.call("select", *columns), stream.watermark))


def _based(reader: Node, stream: Stream) -> Node:
    """The reader, with the folder in which folders of the form name=value are columns."""
    path = stream.option("path")
    plain = path and not any(c in path for c in "*?[{")
    return reader.call("option", "basePath", path) if plain else reader


def _loading(node: Node, load: Callable[[Node], Node]) -> Node:
    """A static DataFrame with another call of load."""
    if isinstance(node, Call) and isinstance(node.function, Attr) and node.method == "load":
        return load(node.function.target)
    return with_parts(node, lambda part: _loading(part, load))


def shared_text(query: Query, sources: Sources) -> str:
    """The SELECT of a query; of a statement set, that of all columns of the stream that its SELECTs share."""
    if not query.together:
        return query.text
    statement = parse_text(Source("", f"EXECUTE STATEMENT SET BEGIN {query.text} END"))
    assert isinstance(statement, InsertSet)
    read: list[dict[str, Stream]] = []
    for part in statement.inserts:
        own = Sources(sources.catalog, sources.places, sources.lower, counts=False)
        own.lower(part.query.text, own)
        read.append(own.streams)
    # A stream over other streams comes after them.
    name = next(name for name in reversed(read[0]) if all(name in others for others in read))
    return f"SELECT * FROM {quote_name(read[0][name].name)}"
