"""What WHY adds to other results: an empty SELECT, AWAIT, the end of a script, WATCH, VERIFY, tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from streamsql.errors import Cancelled, Note
from streamsql.features.why.diagnose import diagnose, losses
from streamsql.features.why.open_groups import gave_none
from streamsql.features.why.outcome_situations import nothing_in_files
from streamsql.features.why.verdict import Verdict
from streamsql.plan.plans import Refresh, Run
from streamsql.results import counted as count
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.explanations import Explanations, WatchedQuery
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running


class Explainer(Explanations):
    """Explains with the verdicts of WHY."""

    def empty_select(self, parts: SessionParts, running: Running) -> tuple[Note, ...]:
        return _note(diagnose(Evidence(parts, running.plan, running)))

    def awaited(self, parts: SessionParts, running: Running) -> tuple[Note, ...]:
        evidence = Evidence(parts, running.plan, running)
        if isinstance(running.plan, Refresh) or not gave_none(evidence):
            return ()
        running.explained = True
        return _why_none(evidence, True, "ALL_READ_BEFORE")

    def at_end_of_script(self, parts: SessionParts, running: Running) -> tuple[Note, ...]:
        evidence = Evidence(parts, running.plan, running)
        lost = f"{running.name}: {evidence.account.line()}"
        said = [] if evidence.account.closes else [Note("ROWS_LOST", lost)]
        durable = len(running.plan.live) < len(running.plan.targets)
        return (*said, *(_unsaid(running, evidence) if durable else ()))

    def watched(self, parts: SessionParts, current: Callable[[], Running | None]) -> WatchedQuery:
        return LiveVerdict(parts, current)

    def missing_rows(self, parts: SessionParts, running: Running) -> tuple[str, str]:
        verdict = diagnose(Evidence(parts, running.plan, running))
        if verdict.healthy or verdict.situation == "NOT_EXPLAINED":
            return "", ""
        return verdict.sentence, verdict.proposal

    def losses(self, parts: SessionParts, plan: Run, running: Running | None) -> list[str]:
        found = losses(Evidence(parts, plan, running))
        return [verdict.sentence for verdict in found if verdict.situation != "ROWS_LATE"]


def _note(verdict: Verdict, of: str = "") -> tuple[Note, ...]:
    """A verdict as a note beside another result. of: the query, where it is not clear which."""
    more = f"; {verdict.lead} {' '.join(verdict.proposal.split())}" if verdict.proposal else ""
    return (Note("NO_ROWS", f"{of}{verdict.sentence}{more}"),)


def _unsaid(running: Running, evidence: Evidence) -> tuple[Note, ...]:
    """Why a query has written nothing."""
    if running.explained or not evidence.took_input or running.fault:
        return ()
    empty = evidence.rows_out is None and nothing_in_files(evidence)
    if not empty and not gave_none(evidence):
        return ()
    return _why_none(evidence, empty or evidence.rows_out is not None)


def _why_none(evidence: Evidence, written_none: bool, expected: str = "") -> tuple[Note, ...]:
    """Why a query gave no rows, behind what it has read and holds back. written_none: whether it is certain
    that it has written nothing; expected: a situation that is not told.
    """
    verdict = diagnose(evidence)
    unclear = evidence.rows_out is None and verdict.situation == "NOT_EXPLAINED"
    if verdict.healthy or unclear or verdict.situation == expected:
        return ()
    if not evidence.took_input:
        return _note(verdict, f"{evidence.name}: ")
    held = f", {evidence.state_rows:,} held back in state" if evidence.state_rows else ""
    written = ", none written" if written_none else ""
    return _note(verdict, f"{evidence.name}: {count(evidence.rows_in, 'row')} read{written}{held}: ")


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
        reports = running.reports
        seen = (running, reports.latest.get("batchId", -1), reports.run.read, running.over)
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
