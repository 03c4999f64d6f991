"""What is done for the queries in the background: failures are saved at once, and RESTART is obeyed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from streamsql.errors import InputFault, NameFault, QueryFault, RuleFault, SyntaxFault
from streamsql.plan.planner import restart
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.events import Event
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.queries.parts import QueryParts
from streamsql.runtime.queries.progress import QueryReported
from streamsql.runtime.queries.run import Running
from streamsql.runtime.queries.start import start_query

CLOSING = 5
"""Seconds that a start may take which the end of the session finds under way."""
_CERTAIN = (InputFault, NameFault, RuleFault, SyntaxFault)
"""Faults of a start that would come again for certain."""


@dataclass(frozen=True)
class QueryRestarting(Event):
    """A query has failed and waits for its restart."""

    running: Running


class RestartSupervisor:
    """Watches over the queries of a session on a thread of its own, so that neither Spark's callbacks nor
    a key waits for files and starts. Its starts have a cancel token of their own. Publishes
    QueryRestarting. save_status: writes how the queries are.
    """

    def __init__(self, session: QueryParts, save_status: Callable[[], object]) -> None:
        self.session = session.under(CancelToken())
        self._save_status = save_status
        self._beginning = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._kept: dict[str, tuple[int, str, int]] = {}
        session.events.subscribe(QueryReported, lambda event: self._happened())

    def close(self) -> None:
        """Start nothing and keep nothing any more. Waits a little for a start that is being made."""
        self._closed = True
        self.session.cancel.cancel()
        if self.session.queries.starting.acquire(timeout=CLOSING):
            self.session.queries.starting.release()
        self._wake.set()

    def _happened(self) -> None:
        with self._beginning:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="restart-supervisor")
                self._thread.start()
        self._wake.set()

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(self._until_the_next())
            self._wake.clear()
            if self._closed:
                return
            if self._news() and not self._closed:
                self._save_status()
            for running in self.session.queries.all.values():
                if running.again_at is not None and running.again_at <= datetime.now():
                    self._start(running)

    def _until_the_next(self) -> float | None:
        times = [q.again_at for q in self.session.queries.all.values() if q.again_at is not None]
        return max(0.0, (min(times) - datetime.now()).total_seconds()) if times else None

    def _news(self) -> bool:
        """Whether a query has ended since this was asked."""
        news = False
        for name, running in self.session.queries.all.items():
            if running.over:
                state = (id(running), running.status(), running.tries)
                if self._kept.get(name) != state:
                    news = True
                    self._kept[name] = state
                    if running.again_at is not None:
                        running.reported = True
                        self.session.events.publish(QueryRestarting(running))
        return news

    def _start(self, running: Running) -> None:
        """Start a query that failed; one that cannot be started has failed again."""
        queries, key = self.session.queries, running.name.casefold()
        with queries.starting:
            found = self.session.catalog.queries.get(key)
            if self._closed or found is None or queries.all.get(key) is not running or not running.again_at:
                return  # it was stopped, started or dropped meanwhile
            try:
                start_query(self.session, restart(found, self.session.context()))
            except Exception as error:
                if self.session.cancel.cancelled:
                    return  # the session is being closed
                fault = translate(error)
                subject = f"query {running.name} failed"
                running.fault = QueryFault(
                    fault.message, subject=subject, detail=fault.detail, hint=fault.hint, code=fault.code
                )
                if running.source and running.span:
                    running.fault.at(running.source, running.span)
                running.certain = isinstance(fault, _CERTAIN)
                running.reported = False
                running.tries += 1
                queries.failed(running, worked=False)
