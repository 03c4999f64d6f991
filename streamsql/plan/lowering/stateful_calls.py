"""Calls of stateful processors: FROM f(TABLE(clicks) PARTITION BY user_id, time_mode => 'eventTime').

Spark has no SQL for transformWithState, so each call is lowered to a variable, and a name replaces it in the
query.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from streamsql.calls import Assign, Call, Node, Var, expr, lit
from streamsql.definitions import Function
from streamsql.errors import NameFault, RuleFault, Span, StreamsqlError, did_you_mean
from streamsql.language.expression import Expression
from streamsql.language.grammar import Node as Parsed
from streamsql.language.origin import Origin
from streamsql.language.query import ConsoleRelation, Query, try_expression
from streamsql.plan.lowering.python_functions import target_of
from streamsql.plan.lowering.shape import Op, Shape
from streamsql.plan.lowering.sources import Sources

STATE_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
# transformWithState keeps several states and timers per key, which only this provider supports.
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHOOSES_ROCKSDB = Assign("", Var("spark").attr("conf").call("set", STATE_PROVIDER, ROCKSDB))
"""The steps of a program that needs this state store; the session's setting is restored afterwards."""

STATE_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
# Real-time mode refuses format 1, in which a retried micro-batch could read the state of a failed one.
CHOOSES_FORMAT_2 = Assign("", Var("spark").attr("conf").call("set", STATE_FORMAT, "2"))
CHOICES = {STATE_PROVIDER: CHOOSES_ROCKSDB, STATE_FORMAT: CHOOSES_FORMAT_2}


@dataclass
class _Options:
    """The options after PARTITION BY; place: the span of each."""

    time_mode: str = "none"
    output_mode: str = "append"
    event_time_column: str = ""
    initial_state: Parsed | None = None
    place: dict[str, Span] = field(default_factory=dict)


def lower_call(own: ConsoleRelation, query: Query, sources: Sources) -> str | None:
    """Define a call of a stateful processor as a variable of the program. Returns its name in sources; None
    for a call of another function.
    """
    name = own.node.text("FunctionName")
    function = sources.catalog.functions.get(name.casefold())
    # A class of kind "" has not been loaded (--check): a call with PARTITION BY has the form of a processor.
    if function is None or function.kind not in ("processor", ""):
        return None
    sources.use(function)
    return sources.define(function.name, *_lower_call(function, own, query, sources))


def _lower_call(
    function: Function, own: ConsoleRelation, query: Query, sources: Sources
) -> tuple[Node, Shape]:
    options = _options(own)
    keys = [_key(e, query) for e in _keys(own.node)]
    argument = own.node.get("TableArgument")
    assert argument
    frame, shape = _table(argument, query, sources)
    _check_time(options, shape, function)
    extra: dict[str, Node] = {}
    if options.initial_state:
        before = set(sources.live)
        state, of = _table(options.initial_state, query, sources)
        sources.read_once |= sources.live.keys() - before
        if of.streaming:
            raise RuleFault(
                "the initial state is read once, so it cannot be a stream",
                hint="initial_state => TABLE(a table, a view or a live table)",
                span=options.place["initial_state"],
                code="NOT_ON_STREAMS",
            )
        extra["initialState"] = state.call("groupBy", *map(_key_node, keys))
    if options.event_time_column:
        extra["eventTimeColumnName"] = lit(options.event_time_column)
    if CHOOSES_ROCKSDB not in sources.program:
        sources.program.append(CHOOSES_ROCKSDB)
    method = "transformWithStateInPandas" if function.form == "pandas" else "transformWithState"
    node = frame.call("groupBy", *map(_key_node, keys)).call(
        method, Call(target_of(function)), function.schema, options.output_mode, options.time_mode, **extra
    )
    columns = tuple(c.name for c in function.columns)
    names, out = tuple(map(_column, keys)), {c.casefold() for c in columns}
    op = Op(
        "stateful",
        own.span,
        watermarked=options.time_mode == "eventTime",
        how=options.output_mode,
        clock=options.time_mode == "processingTime",
        reads=shape.first_input(frame),
    )
    has_keys = op.is_replacing_processor and all(n and n.casefold() in out for n in names)
    event_time = frozenset(filter(None, [options.event_time_column.casefold()]))
    return node, replace(
        shape.then(op), columns=columns, event_time=event_time, keys=names if has_keys else None
    )


def _key(key: Parsed, query: Query) -> Expression:
    """A grouping key. Raises RuleFault for what is no expression."""
    expression = try_expression(query.text[key.span.start : key.span.end])
    if expression is None:
        raise RuleFault(
            "PARTITION BY takes columns or expressions",
            hint="several keys stand in parentheses: PARTITION BY (a, b)",
            span=key.span,
            code="BAD_ARGUMENT",
        )
    return expression


def _key_node(key: Expression) -> Node:
    """A grouping key: a column name or an expression."""
    return lit(key.text) if _column(key) else expr(key.text)


def _column(key: Expression) -> str:
    """The name of a key that is a plain column; empty for an expression."""
    return key.column[1] if key.column and not key.column[0] else ""


def _keys(node: Parsed) -> list[Parsed]:
    """The expressions after PARTITION BY, without parentheses."""
    listed = node.get("KeyList")
    return [*(listed.all("Expression") if listed else []), *node.all("Expression")]


def _table(argument: Parsed, query: Query, sources: Sources) -> tuple[Node, Shape]:
    """The input of TABLE(…): a stream, live table or table by name, or a query."""
    inner = argument.get("Query") or argument.get("RelationName")
    assert inner
    text, origin = query.text[inner.span.start : inner.span.end], Origin(((0, inner.span.start),))
    if not argument.get("Query"):
        ctes = query.body.ctes if query.body else ()
        before = {c.name.casefold(): query.text[c.span.start : c.span.end] for c in ctes}
        if inner.value.casefold() not in before:
            return sources.relation(inner.value, written=text if "`" in text else inner.value)
        text, origin = f"WITH {', '.join(before.values())} SELECT * FROM {text}", Origin.of(inner.span)
    try:
        with origin.errors():
            node, shape = sources.lower(text, sources)
    except StreamsqlError as error:
        error.span = error.span or inner.span
        raise
    return node, shape.placed(origin)


_VALUES = {"time_mode": ("none", "eventTime", "processingTime"), "output_mode": ("append", "update")}
"""The values of options that have only a few, in Spark's spelling."""


def _options(own: ConsoleRelation) -> _Options:
    """The options of a call. Raises NameFault for an unknown option or value."""
    option_names = ("time_mode", "output_mode", "event_time_column", "initial_state")
    options = _Options()
    for part in own.node.all("StatefulOption"):
        word, table = part.get("Word"), part.get("TableArgument")
        assert word
        name = word.value.lower()
        if name not in option_names:
            raise NameFault(
                f"a stateful processor has no option {word.value}",
                hint=did_you_mean(name, option_names) or f"options: {', '.join(option_names)}",
                span=word.span,
                code="UNKNOWN_OPTION",
            )
        if name in options.place:
            raise NameFault(f"option {name} is given twice", span=word.span, code="DUPLICATE_NAME")
        if (table is not None) != (name == "initial_state"):
            wanted = "TABLE(table)" if name == "initial_state" else "a quoted string"
            raise NameFault(f"{name} takes {wanted}", span=part.parts[-1].span, code="BAD_ARGUMENT")
        options.place[name] = part.span
        value: str | Parsed = table or part.text("String")
        if name in _VALUES:
            value = _one_of(name, part, _VALUES[name])
        setattr(options, name, value)
    return options


def _one_of(name: str, part: Parsed, values: tuple[str, ...]) -> str:
    """The value of an option with a few allowed values, in Spark's spelling."""
    written = part.text("String")
    value = next((v for v in values if v.casefold() == written.casefold()), None)
    if value is None:
        raise NameFault(
            f"{name} is not {written}",
            hint=did_you_mean(written, values) or f"{name}: {', '.join(values)}",
            span=part.parts[-1].span,
            code="BAD_ARGUMENT",
        )
    return value


def _check_time(options: _Options, shape: Shape, function: Function) -> None:
    """Check that event time has a watermark on the input rows (Spark guide, transformWithState)."""
    event = options.time_mode == "eventTime"
    if event and shape.streaming and shape.complete and not shape.event_time:
        raise RuleFault(
            "time_mode 'eventTime' needs a watermark",
            detail="the watermark shows how far event time has advanced, which is when timers expire",
            hint="CREATE STREAM … WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES, "
            "or time_mode => 'processingTime'",
            span=options.place["time_mode"],
            code="MISSING_WATERMARK",
        )
    column = options.event_time_column
    if not column:
        return
    columns = [c.name for c in function.columns]
    if not event:
        raise RuleFault(
            "event_time_column requires time_mode => 'eventTime'",
            span=options.place["event_time_column"],
            code="OPTION_CONFLICT",
        )
    if column.casefold() not in (c.casefold() for c in columns):
        raise NameFault(
            f"{function.name} returns no column {column}",
            hint=did_you_mean(column, columns) or f"columns: {', '.join(columns)}",
            span=options.place["event_time_column"],
            code="UNKNOWN_COLUMN",
        )
