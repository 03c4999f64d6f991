"""What WHY finds: one sentence, the evidence for it, and what resolves it; and how a situation is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from streamsql.definitions import Stream
from streamsql.runtime.engine.moments import brief
from streamsql.runtime.evidence.evidence import Evidence

Fact = tuple[str, object]


@dataclass(frozen=True)
class Verdict:
    """sentence: a whole one, without full stop; facts: property and value; proposal: statements that can be
    typed, "" where there is nothing to type; healthy: nothing is wrong; situation: its code, one of
    error_codes.VERDICTS.
    """

    sentence: str
    facts: tuple[Fact, ...] = ()
    proposal: str = ""
    healthy: bool = False
    situation: str = ""

    @property
    def lead(self) -> str:
        """What the proposal does: some only show the data or the state."""
        return f"{'examine' if self.proposal.startswith(_SHOWING) else 'resolve'} it with:"


_SHOWING = ("PREVIEW ", "SHOW ", "SELECT * FROM STATE ", "SELECT 'left' AS side")
"""How the statements begin that show what there is, where none can resolve a situation."""


Situation = Callable[[Evidence], Verdict | None]
"""The verdict of a situation that holds; None where it does not."""


def situation(
    code: str,
    when: Callable[[Evidence], bool] = lambda evidence: True,
    of: Callable[[Evidence], Iterable[Any]] | None = None,
) -> Callable[[Callable[..., Verdict | None]], Situation]:
    """Make a situation of the function that finds its verdict. code: of verdicts that have no other; when:
    whether it can hold, asked first; of: what the function examines one by one, such as the streams.
    """

    def made(find: Callable[..., Verdict | None]) -> Situation:
        def verdict(evidence: Evidence) -> Verdict | None:
            if not when(evidence):
                return None
            found = (find(evidence),) if of is None else (find(evidence, part) for part in of(evidence))
            first = next(filter(None, found), None)
            return replace(first, situation=first.situation or code) if first else None

        return verdict

    return made


def silent(evidence: Evidence) -> bool:
    """Whether rows were read that no output has followed."""
    return evidence.silent


def goes_on(evidence: Evidence) -> bool:
    """Whether the query runs."""
    return evidence.goes_on


def unfed(evidence: Evidence) -> bool:
    """Whether the query runs, and has read nothing since its start."""
    return evidence.goes_on and not evidence.took_input


def streams(evidence: Evidence) -> list[Stream]:
    """The streams of a connector that the query reads."""
    return evidence.streams


def last_output(evidence: Evidence) -> str:
    """How long ago the newest rows came out, as the end of a sentence; "" if that is not known."""
    output = evidence.running.reports.output if evidence.running else None
    return f", the last {brief(time.time() - output.at)} ago" if output is not None and output.at else ""


def are(number: int) -> str:
    """The verb for a number of things."""
    return "is" if number == 1 else "are"


def were(number: int) -> str:
    """The same in the past."""
    return "was" if number == 1 else "were"


def some(values: list[object], most: int = 5) -> str:
    """Values for a person, not too many of them."""
    texts = [repr(v) if isinstance(v, str) else str(v) for v in values[:most]]
    return ", ".join(texts) + (", …" if len(values) > most else "")
