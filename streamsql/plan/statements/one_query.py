"""Whether a query over streams runs as one streaming query: what the console decides before Spark does."""

from __future__ import annotations

from dataclasses import replace

from streamsql.catalog import Catalog
from streamsql.definitions import Sink, Stream
from streamsql.errors import Note, RuleFault
from streamsql.language.query import read_query
from streamsql.language.statements.base import Fragment, Trigger
from streamsql.plan.context import Context
from streamsql.plan.lowering.frames import STREAM_IN_EXPRESSION
from streamsql.plan.lowering.lower import Lowered
from streamsql.plan.lowering.sources import Sources
from streamsql.plan.streaming.refusals import DISTINCT_COUNT


def check_one_streaming_query(
    lowered: Lowered,
    sources: Sources,
    body: Fragment,
    context: Context,
    trigger: Trigger | None = None,
    *,
    stages: bool = True,
) -> None:
    """Raise RuleFault, with a code of staged.REFUSED, for a query that does not run as one streaming query,
    or would give other rows than its SELECT over tables. Only for a query without OUTPUT MODE: that asks for
    Spark's own query.

    sources: those of the lowered query; stages: whether its other clauses and its sinks let it run in stages.
    """
    if not lowered.shape.streaming:
        return
    # A Spark Connect server has no stages; the triggers CONTINUOUS and REAL TIME are Spark's own.
    own = trigger is not None and trigger.kind in ("continuous", "real_time")
    if _followed(sources) and stages and not own and context.server is None:
        raise _live_and_stream(sources, body)
    if lowered.as_text == STREAM_IN_EXPRESSION:  # Spark does not start it
        raise RuleFault(
            "a query in an expression cannot read a stream",
            detail="Spark runs it once, over rows that are there",
            hint="a live table of it: CREATE LIVE TABLE … AS …",
            span=body.span,
            code="NOT_ON_STREAMS",
        )
    _check_distinct(lowered, body, context.catalog)


def check_followed_on_server(sources: Sources, body: Fragment, context: Context) -> None:
    """Raise RuleFault for a live table on a Spark Connect server that reads live tables and streams: it would
    not follow the live tables. Only for one without OUTPUT MODE.
    """
    if context.server is not None and _followed(sources) and sources.streams:
        context.server.check_followed(body.span)


def joined_once(sources: Sources) -> tuple[Note, ...]:
    """The note of one streaming query that reads live tables; none for another streaming query."""
    followed = _followed(sources)
    if not followed:
        return ()
    tables, streams = _names(sources)
    # The plan of a query holds the rows of a live table; the view of one on a server is read again.
    when = "in that micro-batch" if any(table.is_view for table in followed) else "when the query starts"
    text = (
        f"each row of {streams or 'the stream'} is used once, with the rows that {tables} has {when}; "
        f"later changes of {tables} do not change the result"
    )
    return (Note("JOINED_ONCE", text),)


def _live_and_stream(sources: Sources, body: Fragment) -> RuleFault:
    """The fault of a query that reads live tables and streams: to Spark a live table is a table that does
    not change.
    """
    tables, streams = _names(sources)
    return RuleFault(
        f"the query reads the live table {tables} and the stream {streams}"
        if streams
        else f"the query reads the live table {tables} and a stream",
        detail=f"one streaming query uses each row of a stream once, with the rows that {tables} has "
        "when the query starts",
        hint="OUTPUT MODE APPEND, or UPDATE or COMPLETE with GROUP BY, asks for such a query",
        span=body.span,
        code="NOT_ON_STREAMS",
    )


def _followed(sources: Sources) -> list[Sink]:
    """The live tables whose changes belong to the result."""
    return [table for name, table in sources.live.items() if name not in sources.read_once]


def _names(sources: Sources) -> tuple[str, str]:
    """The names of the live tables and of the streams, for messages."""
    streams = sources.bases or sources.streams.values()
    return ", ".join(table.name for table in _followed(sources)), ", ".join(s.name for s in streams)


def _check_distinct(lowered: Lowered, body: Fragment, catalog: Catalog) -> None:
    """Raise RuleFault for a distinct aggregation over a stream in a query whose operations are not known."""
    query = read_query(body.text)
    if lowered.shape.complete or query.body is None:
        return
    streams = [n.span for n in query.relations if isinstance(catalog.relation(n.name), Stream)]
    for block in query.body.blocks(ctes=True):
        inputs = [relation.span for relation in block.relations]
        reads = any(i.start <= s.start and s.end <= i.end for i in inputs for s in streams)
        parts = [i.expression for i in block.items] + ([block.having.expression] if block.having else [])
        if reads and any(part.aggregates_distinct for part in parts):
            raise replace(DISTINCT_COUNT, span=body.origin.span(block.span)).fault()
