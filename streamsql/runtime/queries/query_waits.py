"""Waiting for one query: until it has ended, or has processed all available input."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from streamsql.errors import TimeFault
from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.queries.run import Running

POLL = 0.1
"""Seconds between two checks."""


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
            if not running.is_active():
                return  # it failed: its status has the cause
            raise


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


def idle_event(running: Running) -> threading.Event:
    """An event that is set once the query has processed all available input, or has ended."""
    done = threading.Event()

    def work() -> None:
        try:
            if running.plan.shape.watches_the_clock:
                _until_nothing_read(running)
            else:
                running.handle.processAllAvailable()
            running.reports.looked = True  # Spark reports it somewhat later
            if running.late is not None:
                running.late.settle()
        except Exception:
            while running.is_active():  # it is failing or being stopped
                time.sleep(POLL)
        finally:
            done.set()

    threading.Thread(target=work, daemon=True, name=f"idle-{running.name}").start()
    return done


def _until_nothing_read(running: Running) -> None:
    """Wait for a micro-batch that is planned after this call and reads no rows.

    A query with processing-time timers runs micro-batches without a pause, so that Spark's
    processAllAvailable never returns.
    """
    last = running.handle.lastProgress
    # The next one may be running already, and was planned before this call.
    first = (last["batchId"] if last else -1) + 2
    while running.is_active():
        last = running.handle.lastProgress
        if last and last["batchId"] >= first and last["numInputRows"] == 0:
            return
        time.sleep(POLL)
