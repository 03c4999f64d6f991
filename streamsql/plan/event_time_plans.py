"""The plans of FLUSH QUERY and SHOW LATENESS."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.calls import Program
from streamsql.definitions import Stream
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
