"""The progress reports of one run of a query, and what they add up to."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from streamsql.connectors.base import file_name
from streamsql.connectors.event_metrics import ADVANCES, MEASURED, ROWS
from streamsql.connectors.messages import COUNTED
from streamsql.query_facts import Account, Amount
from streamsql.runtime.engine.events import Event

RETAINED_REPORTS = 100
"""The number of progress reports kept of each run, the same as Spark keeps."""


@dataclass(frozen=True)
class QueryReported(Event):
    """Some query has reported or ended; the event does not say which."""


class Output:
    """The rows that a run has given to its sinks. at: when the newest came, in seconds since 1970."""

    def __init__(self) -> None:
        self.rows = 0
        self.at: float | None = None

    def add(self, rows: int) -> None:
        if rows:
            self.rows += rows
            self.at = time.time()


class TableOutput:
    """Adds the rows that a live table is given to an Output: those that are in the result."""

    def __init__(self, output: Output, rows: Any) -> None:
        self.output = output
        self.rows = rows

    def watch(self, before: Any, after: Any, new: Any) -> None:
        """See LiveRows.watch."""
        self.output.add(self.rows.in_result(new).num_rows)


class Reports:
    """The reports of one run of a query so far. Can be read from any thread.

    before: the account of the same checkpoint until this run; took_input: whether any input was taken;
    looked: whether it has looked for input, and has read what it found; output: the rows given to the sinks,
    None where they do not report it; ended: whether the run has ended.
    """

    def __init__(self) -> None:
        self.last: deque[dict[str, Any]] = deque(maxlen=RETAINED_REPORTS)
        self.before = self._run = Account()
        self.took_input = False
        self.looked = False
        self.output: Output | None = None
        self.ended = self.claimed = False
        self._tells: list[Callable[[dict[str, Any]], object]] = []
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._arrived: deque[tuple[float, int]] = deque(maxlen=RETAINED_REPORTS)
        self._planned: deque[float] = deque(maxlen=RETAINED_REPORTS)

    def add(self, report: dict[str, Any]) -> None:
        rows = report.get("numInputRows", 0)
        self.looked = True
        self._run = self._run.then(account_of(report))
        written = report.get("sink", {}).get("numOutputRows", -1)
        if written >= 0:
            self.output = self.output or Output()
            self.output.add(written)
        if rows or _took_input(report):
            self.took_input = True
            self._planned.append(_seconds(report.get("timestamp", "")))
        self._arrived.append((time.monotonic(), rows))
        with self._lock:
            self.last.append(report)
            for of in self._tells:
                of(report)

    def tell(self, of: Callable[[dict[str, Any]], object]) -> None:
        """Call a function with every report so far, then with each new one."""
        with self._lock:
            for report in list(self.last):
                of(report)
            self._tells.append(of)

    @property
    def run(self) -> Account:
        """The account since this start."""
        return replace(self._run, out=Amount(self.output.rows) if self.output is not None else None)

    @property
    def account(self) -> Account:
        """The account since the checkpoint began."""
        return self.before.then(self.run)

    @property
    def waiting(self) -> float | None:
        """Seconds since the first input that no output has followed; None if there is none, or if the sinks
        do not report their rows.
        """
        if self.output is None:
            return None
        last = self.output.at
        unanswered = [at for at in list(self._planned) if last is None or at > last]
        return max(0.0, time.time() - min(unanswered)) if unanswered else None

    def rate(self, seconds: float = 10.0) -> float:
        """Rows read per second over the last seconds."""
        now = time.monotonic()
        seconds = max(1.0, min(seconds, now - self._began))
        return sum(rows for at, rows in list(self._arrived) if at > now - seconds) / seconds

    @property
    def latest(self) -> dict[str, Any]:
        """The newest report; {} before the first."""
        return self.last[-1] if self.last else {}

    def newest(self, count: int = RETAINED_REPORTS) -> list[dict[str, Any]]:
        """The newest reports, oldest first."""
        return list(self.last)[-count:]

    def rates(self, count: int = 12) -> list[float]:
        """Rows per second that the newest micro-batches processed, oldest first."""
        return [number(r.get("processedRowsPerSecond")) or 0.0 for r in self.newest(count)]


COMBINING = ("stateStoreSave", "sessionWindowStateStoreSaveExec")
"""The operators before which Spark combines the rows of a group: it counts what is left as dropped rows."""


def account_of(report: dict[str, Any]) -> Account:
    """The account of one micro-batch, without the rows given to the sinks."""
    operators = report.get("stateOperators", [])
    dropped = [(o.get("operatorName"), o.get("numRowsDroppedByWatermark", 0)) for o in operators]
    observed = report.get("observedMetrics", {}).items()
    bad = sum(next(iter(counts.values()), 0) for name, counts in observed if name.startswith(COUNTED))
    streams: dict[str, int] = {}
    for source in report.get("sources", []):
        name = source.get("description", "")
        streams[name] = streams.get(name, 0) + source.get("numInputRows", 0)
    return Account(
        read=Amount(report.get("numInputRows", 0)),
        late=Amount(sum(n for _, n in dropped), any(n and name in COMBINING for name, n in dropped)),
        malformed=Amount(bad),
        streams=tuple(streams.items()),
        state=tuple((o.get("operatorName", ""), o.get("numRowsTotal", 0)) for o in operators),
        watermark=report.get("eventTime", {}).get("watermark", ""),
    )


def _took_input(report: dict[str, Any]) -> bool:
    """Whether a micro-batch read new files. Its rows may be none: those that a filter drops while a file is
    read (pushdown) are not counted.
    """
    files = [s for s in report.get("sources", []) if s.get("description", "").startswith("FileStreamSource")]
    return any(s.get("startOffset") != s.get("endOffset") and not s.get("onlyAdvances") for s in files)


def _seconds(moment: str) -> float:
    """When a micro-batch was planned, in seconds since 1970."""
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return time.time()


def number(value: Any) -> float | None:
    """A rate from a report of Spark; None if it has none (NaN is written as a string)."""
    return float(value) if isinstance(value, (int, float)) else None


_RATES = ("inputRowsPerSecond", "processedRowsPerSecond")


def counted_once(report: dict[str, Any]) -> dict[str, Any]:
    """A progress report in which the rows of a source count once where a query reads it several times, such
    as in a join with itself; changed in place. The sources keep their own counts. Sources of type rate do not
    tell in their description which stream they are, so that each of them counts.
    """
    sources, rows = report.get("sources", []), report.get("numInputRows", 0)
    rows_of: dict[str, int] = {}
    for number, source in enumerate(sources):
        name = source.get("description", "")
        name = f"{name} {number}" if name.startswith("Rate") else name
        rows_of[name] = max(rows_of.get(name, 0), source.get("numInputRows", 0))
    if len(rows_of) < len(sources) and rows:
        report["numInputRows"] = sum(rows_of.values())
        for rate in _RATES:
            if isinstance(report.get(rate), (int, float)):
                report[rate] = report[rate] * report["numInputRows"] / rows
    return report


def without_advances(report: dict[str, Any]) -> dict[str, Any]:
    """A progress report whose counts do not include the rows of ADVANCE STREAM; changed in place."""
    for name, counts in report.get("observedMetrics", {}).items():
        if name.startswith(MEASURED) and counts.get(ADVANCES):
            folder = f"/{file_name(name.removeprefix(f'{MEASURED} '))}]"
            for source in report.get("sources", []):
                if source.get("description", "").endswith(folder):
                    _leave_out(report, source, counts)
    return report


def _leave_out(report: dict[str, Any], source: dict[str, Any], counts: dict[str, Any]) -> None:
    # A query may read a stream several times, and Spark counts its rows as often.
    times = source.get("numInputRows", 0) // max(1, counts.get(ROWS) or 1)
    advances = times * counts[ADVANCES]
    for entry in (source, report):
        before = entry.get("numInputRows", 0)
        after = max(0, before - advances)
        entry["numInputRows"] = after
        for rate in _RATES:
            if before and isinstance(entry.get(rate), (int, float)):
                entry[rate] = entry[rate] * after / before
    source["onlyAdvances"] = not source["numInputRows"]
