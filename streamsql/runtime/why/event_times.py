"""The event times of the rows that a query has read, as Spark counts them for its watermark: they cost
nothing more. A NULL counts as 1970-01-01 in its minimum and mean (EventTimeWatermarkExec).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from streamsql.connectors.event_metrics import ADVANCES, MEASURED
from streamsql.definitions import Stream
from streamsql.runtime.queries.run import Running
from streamsql.runtime.why.moments import length, millis, shown
from streamsql.runtime.why.verdict import count

_FAR = 86_400_000
"""Event times before the second day of 1970 are taken for NULL, in milliseconds."""


@dataclass(frozen=True)
class EventTimes:
    """rows, batches: those with event times that were read; nulls: the event times that are NULL, about;
    oldest, newest: in milliseconds, None if not known; compared: the micro-batches that are compared with
    those before; latest: by how many milliseconds the latest row of these came after the newest one before.
    """

    rows: int
    batches: int
    nulls: int
    oldest: int | None
    newest: int
    compared: int
    latest: int

    def text(self, zone: str) -> str:
        """All of it, for a person."""
        span = f"{shown(self.oldest, zone)} to " if self.oldest is not None else "up to "
        parts = [f"{count(self.rows, 'row')} in {count(self.batches, 'micro-batch')}: {span}"]
        parts[0] += shown(self.newest, zone)
        if self.nulls:
            parts.append(f"NULL in about {self.nulls:,}")
        if self.compared:
            parts.append(f"late by at most {length(self.latest / 1_000)}" if self.latest else "none late")
        return ", ".join(parts)


def event_times(reports: Sequence[dict[str, Any]]) -> EventTimes | None:
    """The event times in progress reports of a query with one source; None if they tell none."""
    rows = batches = nulls = compared = latest = 0
    oldest = newest = None
    for report in reports:
        time, sources = report.get("eventTime", {}), report.get("sources", [])
        least, most, mean = (millis(time.get(name)) for name in ("min", "max", "avg"))
        if len(sources) != 1 or least is None or most is None or mean is None or _is_advanced(report):
            continue
        read = report.get("numInputRows", 0)
        rows, batches = rows + read, batches + 1
        has_nulls = least < _FAR < most
        if has_nulls:
            nulls += round(read * (1 - mean / most))
        elif newest is not None:
            compared, latest = compared + 1, max(latest, newest - least)
        if not has_nulls:
            oldest = least if oldest is None else min(oldest, least)
        newest = most if newest is None else max(newest, most)
    return None if newest is None else EventTimes(rows, batches, nulls, oldest, newest, compared, latest)


def _is_advanced(report: dict[str, Any]) -> bool:
    """Whether a row of ADVANCE STREAM is in a micro-batch."""
    metrics = report.get("observedMetrics", {}).items()
    return any(counts.get(ADVANCES) for name, counts in metrics if name.startswith(MEASURED))


def measured_of(stream: Stream, runs: Iterable[Running]) -> list[tuple[Running, EventTimes]]:
    """The runs that have read a stream with a watermark, and the event times that they read."""
    measured = []
    for running in runs:
        read = [s.name.casefold() for s in running.plan.reads.streams if s.watermark]
        times = event_times(running.reports.newest()) if read == [stream.name.casefold()] else None
        if times is not None:
            measured.append((running, times))
    return measured
