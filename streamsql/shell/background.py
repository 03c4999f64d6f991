"""What happens behind the prompt and must be told: failed queries, a Spark that has ended.

Spark's callbacks only set an event; a thread of the shell's own looks what it was and says it, so
that neither Spark nor a key waits for the terminal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from streamsql.runtime.session import Session


class Announcer:
    """Says each failure once. say: prints a line above whatever is on the screen."""

    def __init__(self, session: Session, say: Callable[[str], None]) -> None:
        self.session = session
        self.say = say
        self._wake = threading.Event()
        self._free = threading.Event()
        self._free.set()
        self._lost: list[str] = []
        self._cluster: list[str] = []
        session.queries.on_event = self._wake.set
        session.engine.on_lost.append(self._spark_lost)
        session.engine.on_news.append(self._cluster_news)
        threading.Thread(target=self._run, daemon=True, name="announcer").start()

    def hold(self) -> None:
        """Say nothing for now: the screen belongs to a live view."""
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    def _spark_lost(self, cause: str) -> None:
        self._lost.append(cause)
        self._wake.set()

    def _cluster_news(self, words: str) -> None:
        self._cluster.append(words)
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
            ran = [q.name for q in self.session.queries.all.values() if q.fault and not q.reported]
            lines.append(
                f"Spark has ended: {cause}. Your definitions are kept; the next statement that needs "
                "Spark starts it again" + (", START QUERY ALL; resumes the queries" if ran else "")
            )
            for running in self.session.queries.all.values():
                running.reported = True  # said in this one line
        self._lost.clear()
        for running in list(self.session.queries.all.values()):
            if running.reported or running.stopped or not running.over:
                continue
            if running.status() == "FAILED" and running.fault:
                running.reported = True
                lines.append(f"{running.fault.message}; DESCRIBE QUERY {running.name}; tells more")
        return lines


def toolbar_numbers(session: Session) -> tuple[int, int, float]:
    """(queries that run, queries that failed, rows per second read by all); asks nobody."""
    known = [session.queries.all.get(key) for key in list(session.catalog.queries)]
    running = [q for q in known if q is not None and not q.over]
    failed = sum(q is not None and q.fault is not None for q in known)
    return len(running), failed, sum(q.reports.rate() for q in running)
