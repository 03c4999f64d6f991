"""The plans of FLUSH QUERY, SHOW LATENESS and VERIFY."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.calls import Node, Program
from streamsql.definitions import Query, Sink, Stream
from streamsql.plan.basic_plans import Plan
from streamsql.plan.plans import Reads, Run


@dataclass(frozen=True)
class Flush(Plan):
    """FLUSH QUERY. run: as START QUERY plans it; ranges: the seconds that event time must pass the newest
    row so that all windows, sessions and time ranges end.
    """

    run: Run
    ranges: float


@dataclass(frozen=True)
class Measurable:
    """A query over a stream. program: its last value is a reader of the micro-batches of the stream."""

    query: str
    program: Program
    reads: Reads


@dataclass(frozen=True)
class Lateness(Plan):
    """SHOW LATENESS. queries: those that read the stream; none if its source cannot be read again, so that
    their reports tell its lateness; chart: whether the distribution is asked for.
    """

    stream: Stream
    queries: tuple[Measurable, ...]
    chart: bool = False


@dataclass(frozen=True)
class Verification(Plan):
    """VERIFY. program: defines `expected`, the function of the SELECT, and `reader`, a LateRows of the query;
    with inputs, `rest`, the same function over these inputs; for a sink of messages, `messages`, which rows
    become. streams: how many it reads; inputs: those of its first stateful operations, at which rows may be
    late; sessions: whether these are grouped by sessions; there: the rows of the sink, None where its
    format reads them.
    """

    query: Query
    sink: Sink
    program: Program
    reads: Reads
    streams: int
    inputs: int = 0
    sessions: bool = False
    there: Node | None = None
    messages: bool = False
