"""What planning looks at, and the helpers that all plans share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.errors import RuleFault, StreamsqlError, did_you_mean
from streamsql.language.statements.base import Fragment
from streamsql.language.tokens import Token, tokenize, unquote
from streamsql.plan.lower import Lowered, lower, node_and_shape
from streamsql.plan.plans import Reads
from streamsql.plan.sources import Sources


@dataclass(frozen=True)
class Context:
    """What planning looks at: the names, where the console keeps things, and (here) the folder of the
    script that is being run.
    """

    catalog: Catalog
    places: Places = Places("streamsql")
    here: str = ""

    def sources(self, *, counts: bool = True) -> Sources:
        """The sources of a new program; it has none yet. counts: whether it counts malformed messages."""
        return Sources(self.catalog, self.places, node_and_shape, counts=counts)


def lower_fragment(body: Fragment, sources: Sources) -> Lowered:
    """Lower a query; spans of its errors and shape are moved to the statement's text."""
    start = body.span.start
    try:
        lowered = lower(body.text, sources)
    except StreamsqlError as error:
        if error.span:
            error.span = error.span.shift(start)
        raise
    if lowered.shape.streaming and sources.states:
        raise RuleFault(
            "a streaming query cannot read the state of another",
            detail="it would see the state of one micro-batch, again and again, until Spark purges that",
            hint="SELECT … FROM STATE OF QUERY … by itself; or a live table, which holds the result",
            span=sources.states[0].shift(start),
        )
    ops = tuple(replace(op, span=op.span.shift(start)) for op in lowered.shape.ops)
    return replace(lowered, shape=replace(lowered.shape, ops=ops))


def stream_hint(text: str, context: Context) -> str:
    """A hint for a query that reads no stream: the stream whose name one of its tables resembles."""
    names = [s.name for s in context.catalog.streams.values()]
    for token in relations_of(text):
        hint = did_you_mean(unquote(token), names)
        if hint and context.catalog.relation(unquote(token)) is None:
            return hint
    return ""


def relations_of(text: str) -> list[Token]:
    """The tokens of a query that name what it reads."""
    tokens = tokenize(text)
    before = ["", "", *(t.upper for t in tokens)]
    return [
        t
        for t, outer, word in zip(tokens, before, before[1:], strict=False)
        if t.kind in ("word", "quoted")
        and (word in ("FROM", "JOIN", ",", "STREAM") or (outer, word) == ("TABLE", "("))
    ]


def reads_of(sources: Sources) -> Reads:
    """What a program reads, and the functions written in Python that it calls."""
    streams = tuple(sources.streams.values())
    return Reads(tuple(sources.live.values()), tuple(sources.functions.values()), streams)
