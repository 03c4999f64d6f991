"""What the queries report, as Spark sends it: nothing here asks Spark anything while a key is pressed.

A StreamingQueryListener (Spark guide, "Monitoring Streaming Queries") brings every progress report
and every end. It is registered under PySpark's interface but takes the report as the one JSON text
that it is; PySpark's own class asks the JVM for each field of it.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamsql.connectors.messages import COUNTED
from streamsql.runtime.engine.events import Event, Events

KEPT = 100
"""Progress reports kept of each run, as many as Spark keeps."""


@dataclass(frozen=True)
class QueryReported(Event):
    """A query has reported or ended; which one is for the subscriber to find out."""


class Reports:
    """What one run of a query has reported so far. Read from any thread.

    rows_in: rows read; late: rows that came after the watermark and were dropped; malformed: messages
    that could not be read; ended: whether
    the run is over.
    """

    def __init__(self) -> None:
        self.last: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self.rows_in = 0
        self.late = 0
        self.malformed = 0
        self.ended = self.claimed = False
        self._tell: Callable[[dict[str, Any]], object] = lambda report: None
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._arrived: deque[tuple[float, int]] = deque(maxlen=KEPT)

    def add(self, report: dict[str, Any]) -> None:
        rows = report.get("numInputRows", 0)
        self.rows_in += rows
        self.malformed += sum(
            next(iter(counts.values()), 0)
            for name, counts in report.get("observedMetrics", {}).items()
            if name.startswith(COUNTED)
        )
        self.late += sum(o.get("numRowsDroppedByWatermark", 0) for o in report.get("stateOperators", []))
        self._arrived.append((time.monotonic(), rows))
        with self._lock:
            self.last.append(report)
            self._tell(report)

    def tell(self, of: Callable[[dict[str, Any]], object]) -> None:
        """Call a function with every report, those that are here already first."""
        with self._lock:
            for report in list(self.last):
                of(report)
            self._tell = of

    def rate(self, seconds: float = 10.0) -> float:
        """Rows read per second over the last while."""
        now = time.monotonic()
        seconds = max(1.0, min(seconds, now - self._began))
        return sum(rows for at, rows in list(self._arrived) if at > now - seconds) / seconds

    def newest(self, count: int = KEPT) -> list[dict[str, Any]]:
        """The newest reports, oldest first."""
        return list(self.last)[-count:]

    def rates(self, count: int = 12) -> list[float]:
        """Rows per second that the newest micro-batches processed, oldest first."""
        return [number(r.get("processedRowsPerSecond")) or 0.0 for r in self.newest(count)]


def number(value: Any) -> float | None:
    """A rate of Spark's reports; None where it has none (it writes NaN as a text)."""
    return float(value) if isinstance(value, (int, float)) else None


class Monitor:
    """The reports of all runs of a Spark session, by run id.

    events: QueryReported after each report and each end, on Spark's callback thread: subscribers must be
    quick.
    """

    def __init__(self) -> None:
        self.runs: dict[str, Reports] = {}
        self.events = Events()
        self._lock = threading.Lock()
        self._bus: Any = None

    @classmethod
    def of(cls, spark: Any) -> Monitor:
        """The monitor of a Spark session, registered with it when it is asked for the first time."""
        found = getattr(spark, "_streamsql_monitor", None)
        if found is None:
            found = cls()
            found._register(spark)
            spark._streamsql_monitor = found
        return found

    def _register(self, spark: Any) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        context = spark.sparkContext
        ensure_callback_server_started(context._gateway)
        wrapper = context._jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(
            _Listener(self)
        )
        spark._jsparkSession.streams().addListener(wrapper)
        self._bus = context._jsc.sc().listenerBus()

    def run(self, run_id: str) -> Reports:
        """The reports of a run; empty ones for a run that has not reported yet."""
        with self._lock:
            return self.runs.setdefault(run_id, Reports())

    def claim(self, run_id: str) -> Reports:
        """The same for the one who keeps them: once the run is over they are kept nowhere else."""
        reports = self.run(run_id)
        reports.claimed = True
        if reports.ended:
            self.runs.pop(run_id, None)
        return reports

    def end(self, run_id: str) -> None:
        reports = self.run(run_id)
        reports.ended = True
        if reports.claimed:
            self.runs.pop(run_id, None)

    def catch_up(self, milliseconds: int = 500) -> None:
        """Wait until what Spark has sent is here. For answers to statements, never for a key."""
        try:
            self._bus.waitUntilEmpty(milliseconds)
        except Exception:
            pass  # it is busy, or gone: what is here has to do


class _Listener:
    """The four calls of Spark. What they raise would only fill Spark's log."""

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryProgress(self, event: Any) -> None:
        report = json.loads(event.progress().json())
        self.monitor.run(report["runId"]).add(report)
        self.monitor.events.publish(QueryReported())

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        self.monitor.end(event.runId().toString())
        self.monitor.events.publish(QueryReported())

    class Java:
        implements = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]
