"""One run of a query: whether it runs, how it ended, and what it reported."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from streamsql.errors import QueryFault, Source, Span, StreamsqlError
from streamsql.plan.plans import Run
from streamsql.runtime.engine.spark_errors import comes_again, query_fault
from streamsql.runtime.queries.progress import Reports
from streamsql.runtime.queries.stop import Ending

BUSY = ("running", "stopping")
"""The status of a query that Spark runs."""
GOING_ON = (*BUSY, "restarting")
"""The status of one that is not over."""


@dataclass
class Running:
    """A query that was started in this session, running or not.

    handle: PySpark's StreamingQuery. source, span: the statement that started it, for its errors.
    reports: what Spark has sent of it; catch_up: waits until that is all. notes: what the analyst is
    to be told of the start. stopped: a statement has ended it; broken_off: in the midst of a
    micro-batch; ending: it begins no other one. certain: its fault would come again. tries: the restarts
    in a row that led to this run; again_at: when the next one comes. on_fault: told once it is known why
    the query failed.
    """

    plan: Run
    mode: str
    reason: str
    handle: Any
    started: datetime
    source: Source | None = None
    span: Span | None = None
    reports: Reports = field(default_factory=Reports)
    catch_up: Callable[[], None] = lambda: None
    notes: tuple[str, ...] = ()
    stopped: bool = False
    broken_off: bool = False
    ending: Ending | None = None
    ended: datetime | None = None
    fault: StreamsqlError | None = None
    certain: bool = False
    tries: int = 0
    again_at: datetime | None = None
    on_fault: Callable[[Running], None] = lambda running: None
    reported: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        return self.plan.query.name

    def status(self) -> str:
        """running, stopping (its last micro-batch runs), restarting (it failed and waits for its
        restart), stopped (by a statement), finished (its trigger was done) or FAILED.
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

    def is_active(self) -> bool:
        try:
            return bool(self.handle.isActive) or (self.ending is not None and self.ending.under_way())
        except Exception:  # the JVM is gone
            return False

    def _over(self) -> None:
        """It has ended: nobody sees that before it is decided what comes of it."""
        if self.fault is not None:
            self.on_fault(self)
        self.ended = datetime.now()

    def _find_fault(self) -> None:
        if self.fault is None and not self.broken_off:
            try:
                error = self.handle.exception()
            except Exception:  # with its JVM
                if not self.stopped:
                    self.fault = self._ended_with("its JVM has ended")
                return
            if error is not None:
                sinks = (t.sink.option("path") for t in self.plan.targets)
                places = (self.plan.checkpoint, *filter(None, sinks))
                self.fault, self.certain = query_fault(error, self.name, places), comes_again(error)
                if self.source and self.span:
                    self.fault.at(self.source, self.span)

    @property
    def over(self) -> bool:
        """Whether it is known to have ended; asks nobody."""
        return self.ended is not None or self.reports.ended

    def lost(self, cause: str) -> None:
        """Spark is gone, and the query with it."""
        with self.lock:
            if self.ended is None:
                if not self.stopped:
                    self.fault = self._ended_with(cause)
                self._over()

    def _ended_with(self, cause: str) -> QueryFault:
        return QueryFault(
            cause,
            subject=f"query {self.name} ended with Spark",
            hint=f"START QUERY {self.name}; resumes from its checkpoint",
        )

    def give_up(self) -> None:
        """It failed and was to be started again: it is not."""
        with self.lock:
            self.again_at, self.fault, self.stopped = None, None, True

    def when_again(self) -> str:
        """When it is started again, in words; empty when it is not."""
        rule, at = self.plan.query.restart, self.again_at
        if rule is None or at is None:
            return ""
        return f"it is started again at {at:%H:%M:%S} (try {self.tries + 1} of {rule.times})"

    def progress(self, last: int = 1) -> list[dict[str, Any]]:
        """The newest progress reports of Spark, oldest first, as plain values."""
        self.catch_up()
        return self.reports.newest(last)

    @property
    def batch(self) -> int:
        """The number of the micro-batch that it was at; -1 when that is not known."""
        try:
            return int(self.handle._jsq.streamingQuery().getLatestExecutionContext().batchId())
        except Exception:  # its JVM is gone, or it runs without micro-batches
            last = self.reports.newest(1)
            return int(last[-1].get("batchId", -2)) + 1 if last else -1
