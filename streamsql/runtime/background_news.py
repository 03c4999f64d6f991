"""Lines about background events: failed queries, restarts, and a Spark that has ended."""

from __future__ import annotations

import threading
from collections.abc import Callable

from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.events import ClusterNews, SparkLost
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.progress_reports import QueryReported
from streamsql.runtime.queries.restart_supervisor import QueryRestarting
from streamsql.runtime.queries.run import Running


class BackgroundNews:
    """Reports each event once. say: called with a line, on a thread of its own: neither Spark's callbacks nor
    a key press waits for it. restarts_only: failed queries are reported otherwise, and a script, which may
    end at any moment, is told on the event's own thread. shared: others report the same queries to other
    readers, so that what was reported to them is news here. of: which restarts are reported.
    """

    def __init__(
        self,
        parts: SessionParts,
        say: Callable[[str], None],
        *,
        restarts_only: bool = False,
        shared: bool = False,
        of: Callable[[Running], bool] = lambda running: True,
    ) -> None:
        self.parts = parts
        self.say = say
        self.restarts_only = restarts_only
        self.shared = shared
        self.of = of
        self._reported = {id(q) for q in parts.queries.all.values() if q.over} if shared else set[int]()
        self._wake = threading.Event()
        self._closed = False
        self._lost: list[str] = []
        self._lines: list[str] = []
        subscribe = parts.events.subscribe
        self._subscriptions = [
            subscribe(ClusterNews, lambda event: self._line(event.words)),
            subscribe(QueryRestarting, lambda event: self._restarting(event.running)),
        ]
        if not restarts_only:
            self._subscriptions += [
                subscribe(QueryReported, lambda event: self._wake.set()),
                subscribe(SparkLost, lambda event: self._spark_lost(event.cause)),
            ]
            threading.Thread(target=self._run, daemon=True, name="announcer").start()

    def close(self) -> None:
        """Report nothing more."""
        self._closed = True
        for unsubscribe in self._subscriptions:
            unsubscribe()
        self._wake.set()

    def _line(self, words: str) -> None:
        if self.restarts_only:
            return self.say(words)
        self._lines.append(words)
        self._wake.set()

    def _spark_lost(self, cause: str) -> None:
        self._lost.append(cause)
        self._wake.set()

    def _restarting(self, running: Running) -> None:
        if running.fault and self.of(running):
            self._line(f"{running.fault.message}; {running.when_again()}")

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            if not self._closed:
                for line in self._news():
                    self.say(line)

    def _is_reported(self, running: Running) -> bool:
        return id(running) in self._reported if self.shared else running.reported

    def _tell(self, running: Running) -> None:
        if self.shared:
            self._reported.add(id(running))
        else:
            running.reported = True

    def _news(self) -> list[str]:
        lines, self._lines = self._lines, []
        lost, self._lost = self._lost, []
        queries = self.parts.queries.all.values()
        for cause in lost:
            ran = [q.name for q in queries if q.fault and not self._is_reported(q)]
            restarts = (
                "Definitions are kept; the next statement that needs Spark restarts it"
                + (", START QUERY ALL; resumes the queries" if ran else "")
                if self.parts.hosting.host is None
                else "The server starts it again and resumes its queries"
            )
            lines.append(f"Spark has ended: {cause}. {restarts}")
            for running in queries:
                self._tell(running)  # this line reports it
        for running in queries:
            if self._is_reported(running) or running.stopped or not running.over:
                continue
            if running is self.parts.queries.awaited and not self.shared:
                continue  # AWAIT raises its fault
            if running.name.casefold() not in self.parts.catalog.queries:
                continue  # a SELECT: its view reports it
            if running.status() == "FAILED" and running.fault:
                self._tell(running)
                owner = self.parts.queries.all.get(running.plan.query.owner.casefold())
                if owner is not None and owner.status() == "FAILED":
                    continue  # a stage: its query has failed with it
                lines.append(
                    f"{running.fault.message}; DESCRIBE QUERY {quote_name(running.name)}; shows more"
                )
        return lines
