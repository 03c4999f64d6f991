"""The plans of FLUSH QUERY, SHOW LATENESS and VERIFY."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.calls import Program
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
    """SHOW LATENESS. queries: those that read the stream; chart: whether the distribution is asked for."""

    stream: Stream
    queries: tuple[Measurable, ...]
    chart: bool = False


@dataclass(frozen=True)
class Verification(Plan):
    """VERIFY. program: defines `expected`, the function of the SELECT, and `reader`, a LateRows of the query;
    streams: how many it reads; has_state: whether it may drop late rows.
    """

    query: Query
    sink: Sink
    program: Program
    reads: Reads
    streams: int
    has_state: bool = False
