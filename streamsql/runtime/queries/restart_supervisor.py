"""Works in the background for the queries of a session: saves their status and restarts failed ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from streamsql.errors import Cancelled, InputFault, NameFault, QueryFault, RuleFault, SyntaxFault
from streamsql.guard import log
from streamsql.plan.planner import start_plan
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.events import Event
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.queries.program_parts import QueryParts
from streamsql.runtime.queries.progress_reports import QueryReported
from streamsql.runtime.queries.run import Running
from streamsql.runtime.queries.start import start_query

CLOSING = 5
"""The seconds that the end of a session waits for a query that is being started."""
_CERTAIN = (InputFault, NameFault, RuleFault, SyntaxFault)
"""Faults of a start that are certain to recur."""


@dataclass(frozen=True)
class QueryRestarting(Event):
    """A query has failed and waits for its restart."""

    running: Running


class RestartSupervisor:
    """Saves the status of queries and restarts failed ones on its own thread, so that neither Spark's
    callbacks nor a key press waits for that. Its restarts have their own cancel token. Publishes
    QueryRestarting. save_status: writes the status of all queries.
    """

    def __init__(self, parts: QueryParts, save_status: Callable[[], object]) -> None:
        self.parts = parts.under(CancelToken())
        self._save_status = save_status
        self._wake = threading.Event()
        self._closed = False
        self._last_states: dict[str, tuple[int, str, int]] = {}
        parts.events.subscribe(QueryReported, lambda event: self._wake.set())
        threading.Thread(target=self._run, daemon=True, name="restart-supervisor").start()

    def close(self) -> None:
        """Stop restarting and saving. Waits up to CLOSING seconds for a start that is in progress."""
        self._closed = True
        self.parts.cancel.cancel()
        if self.parts.queries.starting.acquire(timeout=CLOSING):
            self.parts.queries.starting.release()
        self._wake.set()

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(self._until_the_next())
            self._wake.clear()
            if self._closed:
                return
            try:
                self._work()
            except Cancelled:
                return  # the session is being closed
            except Exception as error:  # the thread serves all queries
                log(error, "the status of the queries is not saved")

    def _work(self) -> None:
        """Save the status of queries that have ended, and start those whose time has come."""
        if self._news() and not self._closed:
            self._save_status()
        for running in self.parts.queries.all.values():
            if running.again_at is not None and running.again_at <= time.monotonic():
                self._start(running)

    def _until_the_next(self) -> float | None:
        times = [q.again_at for q in self.parts.queries.all.values() if q.again_at is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _news(self) -> bool:
        """Whether a query has ended since the last call."""
        news = False
        for name, running in self.parts.queries.all.items():
            if running.over:
                state = (id(running), running.status(), running.tries)
                if self._last_states.get(name) != state:
                    news = True
                    self._last_states[name] = state
                    if running.again_at is not None and running.fault is not None:
                        running.reported = True
                        self.parts.events.publish(QueryRestarting(running))
        return news

    def _start(self, running: Running) -> None:
        """Restart a failed query. A restart that fails counts as a failure of the query."""
        queries, key = self.parts.queries, running.name.casefold()
        with self.parts.cancel.holding(queries.starting):
            query = self.parts.catalog.queries.get(key)
            if self._closed or query is None or queries.all.get(key) is not running or not running.again_at:
                return  # it was stopped, started or dropped meanwhile
            try:
                start_query(self.parts, start_plan(query, self.parts.context()))
                queries.restart_counts[key] += running.fault is not None
            except Exception as error:
                if self.parts.cancel.cancelled:
                    return  # the session is being closed
                fault = translate(error)
                running.fault = running.placed(QueryFault.caused_by(fault, running.name))
                running.certain = isinstance(fault, _CERTAIN)
                running.reported = False
                running.tries += 1
                queries.failed(running, worked=False)
