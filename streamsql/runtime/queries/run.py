"""One run of a query: its status, its end and its reports."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from streamsql.errors import Note, QueryFault, Source, Span, StreamsqlError
from streamsql.language.durations import seconds
from streamsql.language.tokens import quote_name
from streamsql.plan.changes_plan import Changes
from streamsql.plan.plans import Refresh, Run
from streamsql.runtime.engine.spark_errors import query_fault, recurs
from streamsql.runtime.queries.late_rows_thread import LateWrites
from streamsql.runtime.queries.progress_reports import Reports
from streamsql.runtime.queries.stop import Ending

BUSY = ("running", "stopping")
"""The statuses of a query that Spark runs."""
GOING_ON = (*BUSY, "restarting")
"""The statuses of a query that has not ended."""

LONGEST_DELAY = 600.0
"""The delay between two restarts doubles up to this many seconds; a longer interval is kept as it is."""


_TRIES = 5
"""So often a query is started again with the columns of its inputs before one of the runs was refreshed."""


class ColumnsChanged(QueryFault):
    """The columns of a query over live tables are others than at its start, because those of an input are."""


@dataclass
class Running:
    """A query that was started in this session, running or ended.

    handle: PySpark's StreamingQuery, or the Refresher of a live table over live tables. source, span: the
    statement that started it, for its errors. reports: its progress reports; catch_up: waits until all
    that Spark has sent are received. notes: to be shown with the result of the start. stopped: a
    statement has stopped it; on_purpose: one that names it, so that START QUERY ALL leaves it stopped; late:
    what ON LATE INTO does; aborted: its last micro-batch was aborted;
    ending: the stop after the current micro-batch. certain: its fault is certain to recur. tries: the number
    of restarts in a row before this run; again_at: when the next one is, by time.monotonic(), which comes
    without a fault where columns of an input have changed. on_fault: is called once the fault of the query is
    known. ended_with_spark: it would still run, had Spark not ended.
    record: records the query in its checkpoint, so that it can be resumed. settings: those of Spark that the
    session had at its start, beside those of the start of Spark.
    """

    plan: Run
    mode: str
    reason: str
    handle: Any
    started: datetime
    source: Source | None = None
    span: Span | None = None
    reports: Reports = field(default_factory=Reports)
    catch_up: Callable[[], bool] = lambda: True
    notes: tuple[Note, ...] = ()
    stopped: bool = False
    on_purpose: bool = False
    aborted: bool = False
    ending: Ending | None = None
    late: LateWrites | None = None
    ended: datetime | None = None
    fault: StreamsqlError | None = None
    certain: bool = False
    tries: int = 0
    again_at: float | None = None
    on_fault: Callable[[Running], None] = lambda running: None
    reported: bool = False
    explained: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended_with_spark: bool = False
    record: Callable[[], None] = lambda: None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def mode_notes(self) -> tuple[Note, ...]:
        """A note about why its output mode was chosen, if it was; of a refresh, about its inputs."""
        if self.is_refresh:
            if isinstance(self.plan, Changes):
                return (Note("CHANGES_WRITTEN", self.reason),)
            return () if self.stages else (Note("REFRESHED", self.reason),)
        return (Note("OUTPUT_MODE", f"output mode {self.mode}: {self.reason}"),) if self.reason else ()

    @property
    def name(self) -> str:
        return self.plan.query.name

    @property
    def stages(self) -> tuple[Run, ...]:
        """The streaming queries that are stages of its live table."""
        return self.plan.stages if isinstance(self.plan, Refresh) else ()

    @property
    def is_refresh(self) -> bool:
        """Whether it is no streaming query: its live table is computed from others."""
        return isinstance(self.plan, Refresh)

    @property
    def has_batches(self) -> bool:
        """Whether it runs in micro-batches, which a stop lets complete."""
        trigger = self.plan.query.trigger
        return trigger is None or trigger.kind not in ("continuous", "real_time")

    @property
    def ends(self) -> bool:
        """Whether its trigger ends it, once it has processed the input of its start."""
        trigger = self.plan.query.trigger
        return trigger is not None and trigger.ends

    def end_after_batch(self) -> Ending:
        """Let Spark start no further micro-batch."""
        self.ending = self.ending or Ending(self.handle)
        self.stopped = True
        self.ending.begin()
        return self.ending

    def fail(self, fault: QueryFault) -> None:
        """End the query with a fault that the console has found."""
        self.fault = self.placed(fault)
        with suppress(Exception):  # Spark has ended, and the query with it
            self.handle.stop()

    def placed(self, fault: StreamsqlError) -> StreamsqlError:
        """A fault of the query, with its place in the statement that started it."""
        if self.source and self.span:
            fault.at(self.source, self.span)
        return fault

    def status(self) -> str:
        """running, stopping (its last micro-batch runs), restarting (it failed and waits for its
        restart), stopped (by a statement), finished (its trigger has ended it) or FAILED.
        """
        if self.ended is None and self.is_active():
            return "stopping" if self.stopped else "running"
        with self.lock:
            if self.ended is None:
                self._find_fault()
                self._over()
        if self.again_at is not None:
            return "restarting"
        return "FAILED" if self.fault else "stopped" if self.stopped else "finished"

    def reported_status(self) -> str:
        """The status by what Spark has reported, without a call of Spark where the query runs. To be used
        after a `catch_up` that succeeded.
        """
        return self.status() if self.over or self.stopped or self.is_refresh else "running"

    def is_active(self) -> bool:
        """Whether Spark runs it, or its last late rows are being written."""
        return self.in_spark() or (self.late is not None and self.late.busy)

    def in_spark(self) -> bool:
        """Whether Spark runs it."""
        try:
            return bool(self.handle.isActive) or (self.ending is not None and self.ending.under_way())
        except Exception:  # the JVM has ended
            return False

    def _over(self) -> None:
        """Mark the run as ended, after on_fault has decided about a restart."""
        if self.fault is not None:
            self.on_fault(self)
        self.ended = datetime.now()

    def _find_fault(self) -> None:
        if self.fault is None and not self.aborted:
            try:
                error = self.handle.exception()
            except Exception:  # the JVM has ended
                return self._lose("its JVM has ended")
            if isinstance(error, ColumnsChanged) and self._takes_columns():
                self.again_at = time.monotonic()
            elif isinstance(error, QueryFault):
                self.fault, self.certain = error, recurs(error.__cause__ or error)
                self.ended_with_spark = error.code == "SPARK_LOST"
            elif error is not None:
                sinks = (t.sink.option("path") for t in self.plan.targets)
                places = (self.plan.checkpoint, *filter(None, sinks))
                self.fault, self.certain = query_fault(error, self.name, places), recurs(error)
                self.fault.__cause__ = error if isinstance(error, Exception) else None
            if self.fault is not None:
                self.placed(self.fault)

    def _takes_columns(self) -> bool:
        """Whether it is planned anew, because columns of its inputs have changed."""
        self.tries = 0 if self.handle.done else self.tries
        return not self.plan.transient and self.tries < _TRIES

    @property
    def planned_anew(self) -> bool:
        """Whether it is about to be started again with the columns that its inputs have now."""
        return self.status() == "restarting" and self.fault is None

    @property
    def over(self) -> bool:
        """Whether it is known to have ended. Does not call Spark."""
        return self.ended is not None or self.reports.ended

    def lost(self, cause: str) -> None:
        """Mark the query as ended, because Spark has ended. cause: a message."""
        with self.lock:
            if self.ended is not None and self.ended_with_spark:
                self._lose(cause)  # it saw the end before the cause was known
            if self.ended is None:
                self._lose(cause)
                self._over()

    def _lose(self, cause: str) -> None:
        """Note that Spark has ended under the query. cause: a message."""
        if not self.stopped:
            self.ended_with_spark = True
            self.fault = QueryFault(
                cause,
                subject=f"query {self.name} ended with Spark",
                hint=f"START QUERY {quote_name(self.name)}; resumes from its checkpoint",
                code="SPARK_LOST",
            )

    def give_up(self) -> None:
        """Cancel the pending restart of a failed query; it counts as stopped."""
        with self.lock:
            self.again_at, self.fault, self.stopped = None, None, True

    def next_start(self, *, worked: bool) -> float | None:
        """When a query that has just failed is restarted, by time.monotonic(); None: never.

        worked: it completed a micro-batch before, which resets the count. A fault that is certain to recur
        is not retried.
        """
        rule = self.plan.query.restart
        if rule is None or self.stopped or self.certain:
            return None
        if worked:
            self.tries = 0
        if self.tries >= rule.times:
            return None
        every = seconds(rule.every)
        return time.monotonic() + min(every * 2**self.tries, max(every, LONGEST_DELAY))

    def when_again(self) -> str:
        """The time of the next restart, as a sentence; empty when there is none."""
        rule, at = self.plan.query.restart, self.again_at
        if rule is None or at is None:
            return ""
        # The clock as it will be then: a change to or from summer time may come before.
        clock = datetime.fromtimestamp(time.time() + at - time.monotonic())
        return f"it restarts at {clock:%H:%M:%S} (attempt {self.tries + 1} of {rule.times})"

    def progress(self, last: int = 1) -> list[dict[str, Any]]:
        """The newest progress reports of Spark, oldest first, as JSON values."""
        self.catch_up()
        return self.reports.newest(last)

    @property
    def batch(self) -> int:
        """The number of the current or last micro-batch; -1 when that is not known."""
        try:
            return int(self.handle._jsq.streamingQuery().getLatestExecutionContext().batchId())
        except Exception:  # the JVM has ended, or the query runs without micro-batches
            return int(self.reports.latest.get("batchId", -2)) + 1
