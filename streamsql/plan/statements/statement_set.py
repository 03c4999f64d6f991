"""Statement sets: the stream that all SELECTs share, and each SELECT as a function of it."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.calls import Assign, Program, Var, variables_in
from streamsql.definitions import Sink, Stream
from streamsql.errors import RuleFault
from streamsql.language.query import read_query
from streamsql.language.statements.base import Fragment
from streamsql.plan.context import Context, lower_fragment, unknown_stream
from streamsql.plan.lowering.lower import Lowered
from streamsql.plan.lowering.shape import Shape
from streamsql.plan.lowering.sources import Sources, variable

_ALONE = "or write this INSERT as a separate statement"
_KINDS = {
    "aggregate": "an aggregation",
    "filter": "an aggregation",
    "distinct": "DISTINCT",
    "distinct_on": "DISTINCT ON",
    "join": "a join of two streams",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "over": "a window function",
}


@dataclass(frozen=True)
class Part:
    """A SELECT over the rows of the shared stream, with the steps before it and the live tables it reads."""

    lowered: Lowered
    program: Program
    live: dict[str, Sink]


def stream_of(queries: list[Fragment], context: Context) -> tuple[Stream, list[Lowered], list[Part]]:
    """The stream that all queries read, each lowered query, and each query as a function of a micro-batch of
    that stream.

    If they share several streams, the most derived one is used, so that its work is done once. Raises
    RuleFault with the span of the unsupported part.
    """
    whole: list[Lowered] = []
    read: list[dict[str, Stream]] = []
    for query in queries:
        sources = context.sources()
        whole.append(lower_fragment(query, sources))
        if not sources.streams:
            raise unknown_stream(query, context, _ALONE[3:]) or RuleFault(
                "this INSERT of the set reads no stream", hint=_ALONE[3:], span=query.span, code="NO_STREAM"
            )
        read.append(sources.streams)
    # A stream over other streams comes after them.
    common = [s for name, s in reversed(read[0].items()) if all(name in other for other in read)]
    if not common:
        first = list(read[0].values())[-1].name
        other = next(i for i, streams in enumerate(read) if variable(first) not in streams)
        raise RuleFault(
            f"all INSERTs of a statement set must read the same stream, and this one does not read {first}",
            hint="EXECUTE STATEMENT SET for each stream, " + _ALONE,
            span=queries[other].span,
            code="STATEMENT_SET",
        )
    faults: list[RuleFault] = []
    for stream in common:
        try:
            return stream, whole, [_over(query, stream, context) for query in queries]
        except RuleFault as fault:
            faults.append(fault)
    raise faults[0]


def _over(query: Fragment, stream: Stream, context: Context) -> Part:
    """A query as a function of the rows of a stream. Raises RuleFault if that is not possible."""
    own = context.sources()
    _, shape = own.stream(stream)
    sources = context.sources()
    sources.shapes[variable(stream.name)] = Shape(True, shape.columns, shape.event_time)
    lowered = lower_fragment(query, sources)
    beside = next(iter(sources.bases), None)
    if beside:
        raise RuleFault(
            f"this INSERT of the set reads {beside.name} as well as {stream.name}",
            detail="all INSERTs of a statement set must read the same stream",
            hint=_ALONE[3:],
            span=query.span,
            code="STATEMENT_SET",
        )
    _check_stateless(lowered, sources, stream, query)
    # Inside foreachBatch, a micro-batch has its own session.
    session = Assign("spark", Var(variable(stream.name)).attr("sparkSession"))
    needs = "spark" in variables_in((*sources.program, Assign("", lowered.node)))
    program = ((session,) if needs else ()) + tuple(sources.program)
    return Part(lowered, program, sources.live)


def _check_stateless(lowered: Lowered, sources: Sources, stream: Stream, query: Fragment) -> None:
    """Raise RuleFault for operations whose results over micro-batches differ from those over the stream."""
    detail = (
        f"each SELECT of a set is applied to every micro-batch of {stream.name} separately, so it cannot "
        "keep rows of an earlier one"
    )
    hint = f"CREATE STREAM name AS SELECT … FROM {stream.name}; and read that in each INSERT,\n" + _ALONE
    ops = (op for op in lowered.shape.ops if op.kind not in ("union", "generate"))
    stateful = next((op for op in ops if op.kind != "join" or op.keeps_state), None)
    if stateful:
        what = _KINDS.get(stateful.kind, stateful.kind)
        raise RuleFault(
            f"{what} is not supported in a statement set",
            detail=detail,
            hint=hint,
            span=stateful.span,
            code="STATEMENT_SET",
        )
    streams = {v for v in sources.views if v not in sources.live}
    of_file = read_query(query.text).words & {"input_file_name", "_metadata"}
    if not lowered.shape.complete or streams or of_file:
        cause = lowered.as_text or ("a sub-query reads the stream" if streams else "")
        cause = cause or f"{min(of_file)} is not available in a micro-batch"
        raise RuleFault(
            "this SELECT is not supported in a statement set",
            detail=f"{detail}\n{cause}",
            hint=hint,
            span=query.span,
            code="STATEMENT_SET",
        )
