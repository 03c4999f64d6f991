"""ON LATE INTO: the late rows of a query are written into a sink, on a thread of its own."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from streamsql.errors import QueryFault
from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.queries.progress_reports import QueryReported

if TYPE_CHECKING:
    from streamsql.runtime.engine.events import Events
    from streamsql.runtime.queries.run import Running

PAUSE = 1.0
"""The seconds after which the thread checks on its own whether the query has ended."""
LAST_REPORT = 30.0
"""The seconds to wait for the last report of an ended query: Spark sends it when the query seems to be over,
and many other queries may be in front of it.
"""


class LateWrites:
    """Writes late rows after each micro-batch that has dropped some, until the query has ended.

    A micro-batch is written after its report has come: the log in the checkpoint has it earlier, but does not
    say whether it has dropped any.

    running: the run of the query; sink: where they go; writer: a LateRowsWriter that has begun; ready: called
    first, on the thread. The subscriber on Spark's callback thread only wakes the thread.
    """

    def __init__(
        self, running: Running, sink: str, writer: Any, ready: Callable[[CancelToken], object]
    ) -> None:
        self.running = running
        self.sink = sink
        self.writer = writer
        self.cancel = CancelToken()
        self._ready = ready
        self._news = queue.SimpleQueue[threading.Event]()
        self._done = False
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"late-rows-{running.name}")

    @property
    def busy(self) -> bool:
        """Whether it has not written all late rows of an ended query."""
        return not self._done

    @property
    def written(self) -> int:
        """The newest micro-batch whose late rows are written."""
        return int(self.writer.written)

    def start(self, events: Events) -> None:
        self._events = events
        self._unsubscribe = events.subscribe(QueryReported, lambda event: self._wake())
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait until it has ended, for some seconds at most."""
        self._thread.join(seconds)

    def abandon(self) -> None:
        """End without the late rows that are not written: the next start writes them."""
        self.cancel.cancel()
        self._wake()
        self._thread.join(PAUSE)

    def settle(self) -> None:
        """Wait until the late rows of all reported micro-batches are written."""
        self.running.catch_up()
        written = threading.Event()
        self._news.put(written)
        while not written.wait(0.1) and self.busy:
            pass

    def _wake(self) -> None:
        self._news.put(threading.Event())

    def _run(self) -> None:
        try:
            self._ready(self.cancel)
            self.writer.write_left()
            over, until = False, math.inf
            while not over:
                waiting = self._wait()
                if not self.running.in_spark():
                    until = min(until, time.monotonic() + LAST_REPORT)
                    over = self.running.reports.ended or time.monotonic() >= until
                if self.cancel.cancelled:
                    return
                self._write(over)
                for written in waiting:
                    written.set()
        except Exception as error:
            if not self.cancel.cancelled:
                self._failed(error)
        finally:
            self._unsubscribe()
            self._done = True
            self._events.publish(QueryReported())

    def _wait(self) -> list[threading.Event]:
        """Wait for news, a moment at most. Returns the events to set once the late rows are written."""
        waiting = list[threading.Event]()
        with suppress(queue.Empty):
            waiting.append(self._news.get(timeout=PAUSE))
            while True:
                waiting.append(self._news.get_nowait())
        return waiting

    def _write(self, over: bool) -> None:
        reports = self.running.reports.newest()
        without = frozenset(r["batchId"] for r in reports if not _dropped(r))
        upto = max((r["batchId"] for r in reports), default=-1)
        if over or upto > self.writer.written:
            self.writer.write_new(without, None if over else upto, last=over)

    def _failed(self, error: Exception) -> None:
        fault = translate(error)
        fact = f"its late rows could not be written into {self.sink}: {fault.message}"
        hint = fault.hint or f"START QUERY {quote_name(self.running.name)}; writes them again"
        self.running.fail(QueryFault.caused_by(fault, self.running.name, fact, hint=hint))


def _dropped(report: dict[str, Any]) -> int:
    """The rows that the watermark has dropped in a micro-batch."""
    return sum(o.get("numRowsDroppedByWatermark", 0) for o in report.get("stateOperators", []))
