"""What is done for the queries behind all statements: failures are kept at once, and RESTART is obeyed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from streamsql.errors import Cancelled, InputFault, NameFault, QueryFault, RuleFault, SyntaxFault
from streamsql.plan.planner import restart
from streamsql.runtime.faults import translate
from streamsql.runtime.running import Running
from streamsql.runtime.starting import start_query

if TYPE_CHECKING:
    from streamsql.runtime.session import Session

CLOSING = 5
"""Seconds that a start may take which the end of the session finds under way."""
_CERTAIN = (InputFault, NameFault, RuleFault, SyntaxFault)
"""Faults of a start that would come again for certain."""


class Attendant:
    """Watches over the queries of a session on a thread of its own, so that neither Spark's callbacks nor
    a key waits for files and starts. tell: called there for each query that waits for its restart.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.tell: Callable[[Running], None] = lambda running: None
        self._wake = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._kept: dict[str, tuple[int, str, int]] = {}
        session.queries.on_event.append(self._happened)

    def close(self) -> None:
        """Start nothing and keep nothing any more. Waits a little for a start that is being made."""
        self._closed = True
        if self.session.queries.starting.acquire(timeout=CLOSING):
            self.session.queries.starting.release()
        self._wake.set()

    def _happened(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="attendant")
            self._thread.start()
        self._wake.set()

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(self._until_the_next())
            self._wake.clear()
            if self._closed:
                return
            if self._news() and not self._closed:
                self.session.save_status()
            for running in list(self.session.queries.all.values()):
                if running.again_at is not None and running.again_at <= datetime.now():
                    self._start(running)

    def _until_the_next(self) -> float | None:
        times = [q.again_at for q in list(self.session.queries.all.values()) if q.again_at is not None]
        return max(0.0, (min(times) - datetime.now()).total_seconds()) if times else None

    def _news(self) -> bool:
        """Whether a query has ended since this was asked."""
        news = False
        for name, running in list(self.session.queries.all.items()):
            if running.over:
                state = (id(running), running.status(), running.tries)
                if self._kept.get(name) != state:
                    news = True
                    self._kept[name] = state
                    if running.again_at is not None:
                        running.reported = True
                        self.tell(running)
        return news

    def _start(self, running: Running) -> None:
        """Start a query that failed; one that cannot be started has failed once more."""
        queries, key = self.session.queries, running.name.casefold()
        with queries.starting:
            found = self.session.catalog.queries.get(key)
            if self._closed or found is None or queries.all.get(key) is not running or not running.again_at:
                return  # it was stopped, started or dropped meanwhile
            try:
                start_query(self.session, restart(found, self.session.context()))
            except Cancelled:  # that was meant for a statement
                running.again_at = datetime.now() + timedelta(seconds=1)
            except Exception as error:
                fault = translate(error)
                message = f"query {running.name} failed: {fault.message}"
                running.fault = QueryFault(message, detail=fault.detail, hint=fault.hint)
                if running.source and running.span:
                    running.fault.at(running.source, running.span)
                running.certain = isinstance(fault, _CERTAIN)
                running.reported = False
                running.tries += 1
                queries.failed(running, worked=False)
