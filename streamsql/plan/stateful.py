"""Calls of stateful processors: FROM f(TABLE(clicks) PARTITION BY user_id, time_mode => 'eventTime').

Spark has no SQL for transformWithState, so each call is lowered by itself and its name left in its
place, as a relation; the text keeps its length, so that all places in it stay right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from streamsql.calls import Assign, Call, Node, Var, expr
from streamsql.catalog import Catalog, Function
from streamsql.errors import NameFault, RuleFault, Span, StreamsqlError, did_you_mean
from streamsql.language import functions
from streamsql.language.grammar import Node as Parsed
from streamsql.language.grammar import load, syntax_fault
from streamsql.language.terminals import QUERY_HEADS
from streamsql.language.tokens import quote_name, tokenize, unquote
from streamsql.plan.functions import target_of
from streamsql.plan.shape import Op, Shape
from streamsql.plan.sources import Sources
from streamsql.plan.states import lower_states, put, without_states

STATE_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
# transformWithState keeps several states and timers for a key, which only this provider can.
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHOOSES_ROCKSDB = Assign("", Var("spark").attr("conf").call("set", STATE_PROVIDER, ROCKSDB))
"""The step of a program that cannot do with another state store."""

# Steps of a program that choose a setting; the session has its own again afterwards.
CHOOSES_ROCKSDB = Assign("", Var("spark").attr("conf").call("set", STATE_PROVIDER, ROCKSDB))
STATE_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
# Real-time mode refuses format 1, in which a micro-batch that is repeated could read what a failed one left.
CHOOSES_FORMAT_2 = Assign("", Var("spark").attr("conf").call("set", STATE_FORMAT, "2"))
CHOICES = {STATE_PROVIDER: CHOOSES_ROCKSDB, STATE_FORMAT: CHOOSES_FORMAT_2}


@dataclass(frozen=True)
class _Call:
    """One call as written; its node's spans lie in the whole text."""

    function: Function
    node: Parsed
    span: Span


@dataclass
class _Options:
    """What stands behind PARTITION BY beside the keys; place: where each was written."""

    time_mode: str = "none"
    output_mode: str = "append"
    event_time_column: str = ""
    initial_state: Parsed | None = None
    place: dict[str, Span] = field(default_factory=dict)


def calls_of(text: str, catalog: Catalog) -> Iterator[_Call]:
    """The calls of stateful processors in a query, left to right; those inside another are not given.

    Raises SyntaxFault for one that is not written as a stateful call is.
    """
    if not any(f.kind in ("processor", "") for f in catalog.functions.values()):
        return
    tokens = tokenize(text)
    end = 0
    for name, at in functions.calls(tokens):
        function = catalog.functions.get(name.casefold())
        if at < end or function is None or function.kind not in ("processor", ""):
            continue
        after = functions.closing(tokens, at + 1) + 1
        piece = tokens[at:after]
        if not function.kind and not any(t.upper == "PARTITION" for t in piece):
            continue  # nobody has looked at the class (--check): a table function, by the way it is called
        node, state = load().match("StatefulCall", piece)
        if node is None:
            fault = syntax_fault(state, piece)
            fault.hint = fault.hint or f"{function.name}(TABLE(stream) PARTITION BY key)"
            raise fault
        end = after
        yield _Call(function, node, Span(piece[0].start, piece[-1].end))


def without_calls(text: str, catalog: Catalog) -> str:
    """A query with the name alone in place of each call, for a reader that knows Spark's SQL only."""
    text = without_states(text)
    for call in calls_of(text, catalog):
        text = put(text, call.span, quote_name(call.function.name))
    return text


def lower_calls(text: str, sources: Sources) -> str:
    """A query with a relation's name in place of each call, and of each state that it reads; sources knows
    what the names mean.

    Raises placed faults.
    """
    out = text = lower_states(text, sources)
    for call in calls_of(text, sources.catalog):
        sources.use(call.function)
        node, shape = _lower_call(call, text, sources)
        name = sources.free_call_name(call.function.name)
        variable = sources.free_variable(name)
        sources.program.append(Assign(variable, node))
        sources.calls[name.casefold()] = Var(variable), shape
        out = put(out, call.span, quote_name(name))
    return out


def _lower_call(call: _Call, text: str, sources: Sources) -> tuple[Node, Shape]:
    function = call.function
    options = _options(call)
    keys = [text[e.span.start : e.span.end] for e in _keys(call.node)]
    argument = call.node.get("TableArgument")
    assert argument
    frame, shape = _table(argument, text, sources)
    _check_time(options, shape, function)
    extra: dict[str, Node] = {}
    if options.initial_state:
        state, of = _table(options.initial_state, text, sources)
        if of.streaming:
            raise RuleFault(
                "the initial state is read once, so it cannot be a stream",
                hint="initial_state => TABLE(a table, a view or a live table)",
                span=options.place["initial_state"],
            )
        extra["initialState"] = state.call("groupBy", *map(_key, keys))
    if options.event_time_column:
        extra["eventTimeColumnName"] = _lit(options.event_time_column)
    if CHOOSES_ROCKSDB not in sources.program:
        sources.program.append(CHOOSES_ROCKSDB)
    method = "transformWithStateInPandas" if function.form == "pandas" else "transformWithState"
    node = frame.call("groupBy", *map(_key, keys)).call(
        method, Call(target_of(function)), function.schema, options.output_mode, options.time_mode, **extra
    )
    return node, _shape(call, keys, options, shape)


def _lit(value: str) -> Node:
    from streamsql.calls import lit

    return lit(value)


def _key(text: str) -> Node:
    """A grouping key: a column by its name, else an expression."""
    return _lit(text) if _column(text) else expr(text)


def _column(text: str) -> str:
    """The name of the column that a key is; empty for an expression."""
    tokens = tokenize(text)
    return unquote(tokens[0]) if len(tokens) == 1 and tokens[0].kind in ("word", "quoted") else ""


def _keys(node: Parsed) -> list[Parsed]:
    """The expressions behind PARTITION BY, out of their parentheses."""
    listed = node.get("KeyList")
    return [*(listed.all("Expression") if listed else []), *node.all("Expression")]


def _shape(call: _Call, keys: list[str], options: _Options, shape: Shape) -> Shape:
    columns = tuple(c.name for c in call.function.columns)
    out = {c.casefold() for c in columns}
    names = tuple(_column(k) for k in keys)
    op = Op(
        "stateful",
        call.span,
        watermarked=options.time_mode == "eventTime",
        how=options.output_mode,
        clock=options.time_mode == "processingTime",
    )
    told = op.is_replacing_processor and all(n and n.casefold() in out for n in names)
    mark = options.event_time_column.casefold()
    event_time = frozenset({mark} if mark else ())
    return replace(shape.then(op), columns=columns, event_time=event_time, keys=names if told else None)


def _table(argument: Parsed, text: str, sources: Sources) -> tuple[Node, Shape]:
    """What TABLE(…) reads: a stream, live table or table by name, or a query."""
    query = argument.get("Query")
    if query is None:
        named = argument.get("RelationName")
        assert named
        ctes = _ctes(text, named.span.start)
        written = text[named.span.start : named.span.end]
        if named.value.casefold() not in ctes:
            return sources.relation(named.value, written=written if "`" in written else named.value)
        query_of_with = f"WITH {', '.join(ctes.values())} SELECT * FROM {written}"
        try:
            node, shape = sources.lower(query_of_with, sources)
        except StreamsqlError as error:
            error.span = named.span
            raise
        return node, replace(shape, ops=tuple(replace(op, span=named.span) for op in shape.ops))
    start = query.span.start
    try:
        node, shape = sources.lower(text[start : query.span.end], sources)
    except StreamsqlError as error:
        error.span = error.span.shift(start) if error.span else query.span
        raise
    return node, replace(shape, ops=tuple(replace(op, span=op.span.shift(start)) for op in shape.ops))


def _ctes(text: str, before: int) -> dict[str, str]:
    """The queries of WITH that end before a place in a text: folded name → `name AS (…)`."""
    tokens = tokenize(text)
    found: dict[str, str] = {}
    if not any(t.upper == "WITH" for t in tokens):
        return found
    for at in range(len(tokens) - 3):
        name, word, opens, head = tokens[at : at + 4]
        if word.upper == "AS" and opens.text == "(" and head.upper in QUERY_HEADS and name.text != ")":
            end = tokens[functions.closing(tokens, at + 2)].end
            if end <= before:
                found[unquote(name).casefold()] = text[name.start : end]
    return found


_TIME_MODES = ("none", "eventTime", "processingTime")
_OUTPUT_MODES = ("append", "update")


def _options(call: _Call) -> _Options:
    """The options of a call. Raises NameFault for one that is not there or has no such value."""
    known = ("time_mode", "output_mode", "event_time_column", "initial_state")
    options = _Options()
    for part in call.node.all("StatefulOption"):
        word, table = part.get("Word"), part.get("TableArgument")
        assert word
        name = word.value.lower()
        if name not in known:
            raise NameFault(
                f"a stateful processor has no option {word.value}",
                hint=did_you_mean(name, known) or f"options: {', '.join(known)}",
                span=word.span,
            )
        if name in options.place:
            raise NameFault(f"option {name} is given twice", span=word.span)
        if (table is not None) != (name == "initial_state"):
            wanted = "TABLE(table)" if name == "initial_state" else "a text in quotes"
            raise NameFault(f"{name} takes {wanted}", span=part.parts[-1].span)
        options.place[name] = part.span
        value: str | Parsed = table or part.text("String")
        for option, values in (("time_mode", _TIME_MODES), ("output_mode", _OUTPUT_MODES)):
            if name == option:
                value = _one_of(option, part, values)
        setattr(options, name, value)
    return options


def _one_of(name: str, part: Parsed, values: tuple[str, ...]) -> str:
    """The value of an option that has a few, in Spark's own spelling."""
    written = part.text("String")
    found = next((v for v in values if v.casefold() == written.casefold()), None)
    if found is None:
        raise NameFault(
            f"{name} is not {written}",
            hint=did_you_mean(written, values) or f"{name}: {', '.join(values)}",
            span=part.parts[-1].span,
        )
    return found


def _check_time(options: _Options, shape: Shape, function: Function) -> None:
    """What event time asks for: a watermark on the rows that come in (transformWithState, Spark guide)."""
    event = options.time_mode == "eventTime"
    if event and shape.streaming and shape.known and not shape.event_time:
        raise RuleFault(
            "time_mode 'eventTime' needs a watermark",
            detail="the watermark says how far event time has come, which is when timers expire",
            hint="CREATE STREAM … WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES, "
            "or time_mode => 'processingTime'",
            span=options.place["time_mode"],
        )
    column = options.event_time_column
    if not column:
        return
    columns = [c.name for c in function.columns]
    if not event:
        raise RuleFault(
            "event_time_column goes with time_mode => 'eventTime'", span=options.place["event_time_column"]
        )
    if column.casefold() not in (c.casefold() for c in columns):
        raise NameFault(
            f"{function.name} returns no column {column}",
            hint=did_you_mean(column, columns) or f"columns: {', '.join(columns)}",
            span=options.place["event_time_column"],
        )
