"""The extension point `explainer`: why a query gives no rows, or loses some, beside what is asked for."""

from __future__ import annotations

from collections.abc import Callable

from streamsql.errors import Note
from streamsql.feature_registry import extensions
from streamsql.plan.plans import Run
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running


class WatchedQuery:
    """The explanation of a query whose result is watched, as long as it is empty."""

    proposal: str = ""
    """What resolves it."""

    def lines(self) -> tuple[str, ...]:
        """What is known, () before the first explanation; never waits."""
        return ()

    def close(self) -> None:
        """Give up what is being collected."""


class Explanations:
    """Explains nothing, where no feature does."""

    def empty_select(self, parts: SessionParts, running: Running) -> tuple[Note, ...]:
        """Why a SELECT over a stream has given no rows."""
        return ()

    def awaited(self, parts: SessionParts, running: Running) -> tuple[Note, ...]:
        """Why a query that was awaited has given no rows; () when it has."""
        return ()

    def at_end_of_script(self, parts: SessionParts, running: Running) -> tuple[Note, ...]:
        """The rows that a query of a script has lost, and why it has written none."""
        return ()

    def watched(self, parts: SessionParts, current: Callable[[], Running | None]) -> WatchedQuery:
        """The explanation of a query that is watched. current: its newest run; None: it does not run here."""
        return WatchedQuery()

    def missing_rows(self, parts: SessionParts, running: Running) -> tuple[str, str]:
        """(sentence, statements that resolve it) about rows that a query has not given; "" for nothing."""
        return "", ""

    def losses(self, parts: SessionParts, plan: Run, running: Running | None) -> list[str]:
        """A sentence about each kind of rows that a query has not read, or could not read."""
        return []


def explanations() -> Explanations:
    """Those of the feature that explains."""
    made: Explanations = next(extensions("explainer"), Explanations)()
    return made
