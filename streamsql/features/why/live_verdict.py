"""The verdict on a query whose result is being watched and is empty: collected on a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from streamsql.errors import Cancelled
from streamsql.features.why.diagnose import diagnose
from streamsql.features.why.verdict import Verdict
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.explanations import WatchedQuery
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running

EVERY = 3.0
"""Seconds between two verdicts on a query that has reported something new."""
AT_LEAST = 15.0
"""Seconds after which there is another verdict in any case: a folder or topic may have changed."""


class LiveVerdict(WatchedQuery):
    """current: the newest run of the query; None: it does not run here."""

    def __init__(self, parts: SessionParts, current: Callable[[], Running | None]) -> None:
        self._cancel = CancelToken()
        self._parts = parts.under(self._cancel)
        self._current = current
        self._lines: tuple[str, ...] = ()
        self.proposal = ""
        """What resolves the newest verdict."""
        self._thread: threading.Thread | None = None
        self._at = 0.0
        self._seen: object = None
        self._timed = False
        """Whether the newest verdict tells how long something lasts."""

    def lines(self) -> tuple[str, ...]:
        """The newest verdict, () before the first; never waits."""
        running = self._current()
        if running is not None and self._is_due(running):
            self._at = time.monotonic()
            self._thread = threading.Thread(target=self._work, args=(running,), daemon=True, name="why")
            self._thread.start()
        return self._lines

    def close(self) -> None:
        """Give up what is being collected."""
        self._cancel.cancel()

    def _is_due(self, running: Running) -> bool:
        if self._cancel.cancelled or (self._thread and self._thread.is_alive()):
            return False
        since = time.monotonic() - self._at
        if not running.reports.last and not self._lines and self._seen is None:
            self._seen, self._at = running, time.monotonic()
            return False
        newest = running.reports.newest(1)
        seen = (running, newest[-1].get("batchId") if newest else -1, running.reports.run.read, running.over)
        due = since >= (EVERY if seen != self._seen or self._timed or not self._lines else AT_LEAST)
        if due:
            self._seen = seen
        return due

    def _work(self, running: Running) -> None:
        try:
            verdict = diagnose(Evidence(self._parts, running.plan, running))
            self._lines, self.proposal = lines_of(verdict), verdict.proposal
            self._timed = verdict.situation == "NOT_READ_YET"
        except Cancelled:
            pass
        except Exception:  # Spark may have ended: the status of the query tells why
            self._lines = ()


def lines_of(verdict: Verdict) -> tuple[str, ...]:
    """A verdict as the lines of a picture: the sentence, what closes the next window, what to type."""
    facts = (f"{name}: {value}" for name, value in verdict.facts if value not in ("", None))
    typed = ("", verdict.lead, *verdict.proposal.split("\n")) if verdict.proposal else ()
    return (verdict.sentence, "", *(f"  {fact}" for fact in facts), *typed)
