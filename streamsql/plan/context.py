"""What planning looks at, and the helpers that all plans share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.errors import RuleFault, did_you_mean
from streamsql.language.query import read_query
from streamsql.language.statements.base import Fragment
from streamsql.plan.lowering.lower import Lowered, lower, node_and_shape
from streamsql.plan.lowering.sources import Sources
from streamsql.plan.plans import Reads


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
    """Lower a query; spans of its errors and shape are those of the source."""
    with body.origin.errors():
        lowered = lower(body.text, sources)
    if lowered.shape.streaming and sources.states:
        raise RuleFault(
            "a streaming query cannot read the state of another",
            detail="it would read the state of one micro-batch again and again, until Spark removes it",
            hint="SELECT … FROM STATE OF QUERY … by itself; or a live table, which holds the result",
            span=body.origin.span(sources.states[0]),
        )
    ops = tuple(replace(op, span=body.origin.span(op.span)) for op in lowered.shape.ops)
    return replace(lowered, shape=replace(lowered.shape, ops=ops))


def stream_hint(text: str, context: Context) -> str:
    """A hint for a query that reads no stream: the stream whose name one of its tables resembles."""
    names = [s.name for s in context.catalog.streams.values()]
    for relation in read_query(text).relations:
        hint = did_you_mean(relation.name, names)
        if hint and context.catalog.relation(relation.name) is None:
            return hint
    return ""


def reads_of(sources: Sources) -> Reads:
    """What a program reads, and the functions written in Python that it calls."""
    streams = tuple(sources.streams.values())
    return Reads(tuple(sources.live.values()), tuple(sources.functions.values()), streams)
