"""Reports background events above the prompt: failed queries, and a Spark that has ended.

Spark's callbacks only set an event; a separate thread prints the messages, so that neither Spark nor a key
press waits for the terminal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from streamsql.errors import StreamsqlError
from streamsql.runtime.engine.events import ClusterNews, SparkLost
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.progress import QueryReported
from streamsql.runtime.queries.restart_supervisor import QueryRestarting
from streamsql.runtime.queries.run import Running


class Announcer:
    """Reports each failure once. say: prints a line above the prompt; failed: receives it whole."""

    def __init__(
        self,
        parts: SessionParts,
        say: Callable[[str], None],
        failed: Callable[[StreamsqlError], None] = lambda fault: None,
    ) -> None:
        self.parts = parts
        self.say = say
        self.failed = failed
        self._wake = threading.Event()
        self._free = threading.Event()
        self._free.set()
        self._lost: list[str] = []
        self._cluster: list[str] = []
        parts.events.subscribe(ClusterNews, lambda event: self._cluster_news(event.words))
        self._restarts: list[str] = []
        parts.events.subscribe(QueryReported, lambda event: self._wake.set())
        parts.events.subscribe(SparkLost, lambda event: self._spark_lost(event.cause))
        parts.events.subscribe(QueryRestarting, lambda event: self._restarting(event.running))
        threading.Thread(target=self._run, daemon=True, name="announcer").start()

    def hold(self) -> None:
        """Delay all messages while a live view is shown."""
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    def _spark_lost(self, cause: str) -> None:
        self._lost.append(cause)
        self._wake.set()

    def _cluster_news(self, words: str) -> None:
        self._cluster.append(words)
        self._wake.set()

    def _restarting(self, running: Running) -> None:
        if running.fault:
            self._restarts.append(f"{running.fault.message}; {running.when_again()}")
            self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            self._free.wait()
            for line in self._news():
                self.say(line)

    def _news(self) -> list[str]:
        lines, self._cluster = self._cluster, []
        for cause in self._lost:
            ran = [q.name for q in self.parts.queries.all.values() if q.fault and not q.reported]
            lines.append(
                f"Spark has ended: {cause}. Definitions are kept; the next statement that needs "
                "Spark restarts it" + (", START QUERY ALL; resumes the queries" if ran else "")
            )
            for running in self.parts.queries.all.values():
                running.reported = True  # this line reports it
        self._lost.clear()
        lines += [self._restarts.pop(0) for _ in list(self._restarts)]
        for running in self.parts.queries.all.values():
            if running.reported or running.stopped or not running.over:
                continue
            if running.name.casefold() not in self.parts.catalog.queries:
                continue  # a SELECT: its view reports it
            if running.status() == "FAILED" and running.fault:
                running.reported = True
                self.failed(running.fault)
                lines.append(f"{running.fault.message}; DESCRIBE QUERY {running.name}; shows more")
        return lines


SILENT = 60.0
"""Seconds after which a query that has read rows and given none is named in the toolbar."""


def silent_query(parts: SessionParts) -> tuple[str, float] | None:
    """The running query that has had input and no output for the longest time, at least a minute: its name,
    and for how many seconds.
    """
    known = [parts.queries.all.get(key) for key in parts.catalog.queries]
    waiting = [(q.reports.waiting or 0.0, q.name) for q in known if q is not None and not q.over]
    seconds, name = max(waiting, default=(0.0, ""))
    return (name, seconds) if seconds >= SILENT else None


BEHIND = 10.0
"""Seconds after which a live table that is behind its inputs is named in the toolbar."""


def stale_table(parts: SessionParts) -> tuple[str, float] | None:
    """The live table over live tables that is behind its inputs for the longest time: its name, and for how
    many seconds. None if that is no time to speak of.
    """
    running = [parts.queries.all.get(key) for key in parts.catalog.queries]
    refreshed = [q for q in running if q is not None and q.is_refresh and not q.over]
    stale, name = max(((q.handle.stale, q.name) for q in refreshed), default=(0.0, ""))
    return (name, stale) if stale >= BEHIND else None


def toolbar_numbers(parts: SessionParts) -> tuple[int, int, float]:
    """(running queries, failed queries, rows per second read by all). Does not call Spark."""
    known = [
        parts.queries.all.get(key) for key in map(str.casefold, (q.name for q in parts.catalog.named(None)))
    ]
    running = [q for q in known if q is not None and not q.over]
    failed = sum(q is not None and q.fault is not None and q.again_at is None for q in known)
    return len(running), failed, sum(q.reports.rate() for q in running)
