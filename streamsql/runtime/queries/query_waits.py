"""Waiting for one query: until it has ended, or has processed all available input."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from streamsql.errors import TimeFault
from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.queries.run import Running

POLL = 0.1
"""Seconds between two checks."""
_MOMENT = 5.0
"""Seconds in which a query ends whose failure Spark has thrown."""


def wait_one(
    running: Running,
    done: threading.Event | None,
    deadline: float,
    cancel: CancelToken,
    tell: Callable[[Running], None],
) -> None:
    """Wait until a query has ended, or done is set. deadline: of time.monotonic(). tell: called in between.
    Raises Cancelled and TimeFault.
    """
    while running.is_active() and not (done and done.is_set()):
        tell(running)
        cancel.check()
        left = time_left(running, deadline, "busy" if done else "running")
        if running.late is not None and not running.in_spark():
            running.late.join(left)
            continue
        try:
            # Spark counts in whole milliseconds and refuses 0.
            done.wait(left) if done else running.handle.awaitTermination(max(left, 0.001))
        except Exception:
            if _has_ended(running, cancel):
                return  # it failed: its status has the cause
            raise


def _has_ended(running: Running, cancel: CancelToken) -> bool:
    """Whether a query has ended, or does so soon: Spark throws the cause of a failure a moment before."""
    until = time.monotonic() + _MOMENT
    while running.is_active() and time.monotonic() < until:
        cancel.wait(POLL)
    return not running.is_active()


def time_left(running: Running, deadline: float, doing: str) -> float:
    """The seconds to wait before the next check. Raises TimeFault when the time is up."""
    left = min(POLL, deadline - time.monotonic())
    if left <= 0:
        hint = (
            "AWAIT QUERY … IDLE waits for input only"
            if doing == "running"
            else f"WHY QUERY {quote_name(running.name)}; tells what it waits for"
        )
        raise TimeFault(f"the query {running.name} is still {doing}", hint=hint)
    return left


@contextmanager
def idle_event(running: Running) -> Iterator[threading.Event]:
    """A context with an event that is set once the query has processed all available input, or has ended. At
    its end nothing waits for the query any more.
    """
    wait = _IdleWait(running)
    threading.Thread(target=wait.work, daemon=True, name=f"idle-{running.name}").start()
    try:
        yield wait.done
    finally:
        wait.give_up()


class _IdleWait:
    """The wait for a query to be idle, on a thread of its own: Spark's processAllAvailable returns only then,
    and for a busy query never.
    """

    def __init__(self, running: Running) -> None:
        self.running = running
        self.done = threading.Event()
        self._given_up = threading.Event()
        self._lock = threading.Lock()
        self._blocked: Any = None
        """The thread of the JVM on which processAllAvailable is called."""

    def work(self) -> None:
        running = self.running
        try:
            if running.plan.shape.watches_the_clock:
                self._until_nothing_read()
            else:
                self._process_all_available()
            if self._given_up.is_set():
                return
            running.reports.looked = True  # Spark reports it somewhat later
            if running.late is not None:
                running.late.settle()
        except Exception:
            while running.is_active() and not self._given_up.wait(POLL):
                pass  # it is failing or being stopped
        finally:
            self.done.set()

    def give_up(self) -> None:
        """End the wait, if it has not ended."""
        self._given_up.set()
        with self._lock:
            if self._blocked is not None:
                with suppress(Exception):  # the JVM has ended
                    self._blocked.interrupt()

    def _process_all_available(self) -> None:
        query = self.running.handle
        java_query = getattr(query, "_jsq", None)
        if java_query is None:  # of a Spark Connect server
            return query.processAllAvailable()
        from py4j.java_gateway import JavaClass

        # The calls of a thread of this process all run on one thread of the JVM.
        threads = JavaClass("java.lang.Thread", java_query._gateway_client)
        try:
            with self._lock:
                if self._given_up.is_set():
                    return
                self._blocked = threads.currentThread()
            query.processAllAvailable()
        finally:
            with self._lock:
                self._blocked = None
            threads.interrupted()  # forgets an interrupt that came too late

    def _until_nothing_read(self) -> None:
        """Wait for a micro-batch that is planned after this call and reads no rows.

        A query with processing-time timers runs micro-batches without a pause, so that Spark's
        processAllAvailable never returns.
        """
        running = self.running
        last = running.handle.lastProgress
        # The next one may be running already, and was planned before this call.
        first = (last["batchId"] if last else -1) + 2
        while running.is_active():
            last = running.handle.lastProgress
            if last and last["batchId"] >= first and last["numInputRows"] == 0:
                return
            if self._given_up.wait(POLL):
                return
