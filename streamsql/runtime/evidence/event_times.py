"""The event times of the rows that a query has read: exact where they are measured (text files, Kafka,
sockets; connectors/event_metrics.py); else as Spark counts them for its watermark, at no cost: a NULL is
1970-01-01 in its minimum and mean then (EventTimeWatermarkExec).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from streamsql.connectors.event_metrics import (
    ADVANCES,
    MEASURED,
    NEWEST,
    OLDEST,
    READ,
    TIMES,
)
from streamsql.definitions import Stream
from streamsql.results import counted as count
from streamsql.runtime.engine.moments import length, millis, shown
from streamsql.runtime.queries.run import Running

_FAR = 86_400_000
"""Event times before the second day of 1970 are taken for NULL, in milliseconds."""


@dataclass(frozen=True)
class EventTimes:
    """rows, batches: those with event times that were read; nulls: the event times that are NULL, about that
    many where they are not exact; oldest, newest: in milliseconds, None if not known; lateness: (milliseconds
    late at most, rows) of each micro-batch that is compared with those before, the least late first; all rows
    of a micro-batch count as late as the latest of them.
    """

    rows: int
    batches: int
    nulls: int
    oldest: int | None
    newest: int
    exact: bool
    lateness: tuple[tuple[int, int], ...]

    @property
    def latest(self) -> int:
        """By how many milliseconds the latest row came after the newest one of the micro-batches before."""
        return self.lateness[-1][0] if self.lateness else 0

    def within(self, share: float) -> int:
        """By how many milliseconds at least that share of the rows came late at most."""
        enough, counted = share * sum(rows for _, rows in self.lateness), 0
        for late, rows in self.lateness:
            counted += rows
            if counted >= enough:
                return late
        return self.latest

    @property
    def nulls_text(self) -> str:
        """How many are NULL, for a person."""
        return f"{self.nulls:,}" if self.exact else f"about {self.nulls:,}"

    def text(self, zone: str) -> str:
        """All of it, for a person."""
        span = f"{shown(self.oldest, zone)} to " if self.oldest is not None else "up to "
        parts = [f"{count(self.rows, 'row')} in {count(self.batches, 'micro-batch')}: {span}"]
        parts[0] += shown(self.newest, zone)
        if self.nulls:
            parts.append(f"NULL in {self.nulls_text}")
        if self.lateness:
            parts.append(f"late by at most {length(self.latest / 1_000)}" if self.latest else "none late")
            most = self.within(0.99)
            if most < self.latest:
                how_late = f"by at most {length(most / 1_000)}" if most else "on time"
                parts.append(f"99 % of the rows {how_late}")
        return ", ".join(parts)


@dataclass(frozen=True)
class _Batch:
    """The event times of one micro-batch, in milliseconds; oldest: None if it is not known."""

    rows: int
    nulls: int
    oldest: int | None
    newest: int
    exact: bool


def event_times(reports: Sequence[dict[str, Any]], stream: str = "") -> EventTimes | None:
    """The event times in progress reports; None if the reports have none. stream: the stream whose event
    times are returned, where Spark counts them by stream; otherwise the query has one source.
    """
    read = [batch for r in reports if (batch := _counted(r, stream) or _of_watermark(r))]
    if not read:
        return None
    lateness, newest = list[tuple[int, int]](), read[0].newest
    for batch in read[1:]:
        if batch.oldest is not None:
            rows = batch.rows - batch.nulls if batch.exact else batch.rows
            lateness.append((max(0, newest - batch.oldest), rows))
        newest = max(newest, batch.newest)
    return EventTimes(
        rows=sum(batch.rows for batch in read),
        batches=len(read),
        nulls=sum(batch.nulls for batch in read),
        oldest=min((batch.oldest for batch in read if batch.oldest is not None), default=None),
        newest=newest,
        exact=all(batch.exact for batch in read),
        lateness=tuple(sorted(lateness)),
    )


def _counted(report: dict[str, Any], stream: str) -> _Batch | None:
    """What is measured of a stream; of the only one, if no stream is given."""
    metrics = report.get("observedMetrics", {})
    names = [n for n, m in metrics.items() if TIMES in m and (not stream or n == f"{MEASURED} {stream}")]
    counts = metrics[names[0]] if len(names) == 1 else {}
    if not counts.get(TIMES):
        return None
    rows, times = counts[READ], counts[TIMES]
    return _Batch(rows, rows - times, counts[OLDEST], counts[NEWEST], True)


def _of_watermark(report: dict[str, Any]) -> _Batch | None:
    """What Spark counts for the watermark of a query with one source."""
    time, sources = report.get("eventTime", {}), report.get("sources", [])
    least, most, mean = (millis(time.get(name)) for name in ("min", "max", "avg"))
    if len(sources) != 1 or least is None or most is None or mean is None or _is_advanced(report):
        return None
    read = report.get("numInputRows", 0)
    if least < _FAR < most:
        return _Batch(read, round(read * (1 - mean / most)), None, most, False)
    return _Batch(read, 0, least, most, False)


def _is_advanced(report: dict[str, Any]) -> bool:
    """Whether a row of ADVANCE STREAM is in a micro-batch."""
    metrics = report.get("observedMetrics", {}).items()
    return any(counts.get(ADVANCES) for name, counts in metrics if name.startswith(MEASURED))


def measured_of(stream: Stream, runs: Iterable[Running]) -> list[tuple[Running, EventTimes]]:
    """The runs that have read a stream with a watermark, and the event times that they read."""
    measured = []
    for running in runs:
        read = [s.name.casefold() for s in running.plan.reads.streams if s.watermark]
        if stream.name.casefold() not in read:
            continue
        reports = running.reports.newest()
        counted = [r for r in reports if _counted(r, stream.name)]
        alone = read == [stream.name.casefold()]
        times = event_times(counted or (reports if alone else []), stream.name)
        if times is not None:
            measured.append((running, times))
    return measured
