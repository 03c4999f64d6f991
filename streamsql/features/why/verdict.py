"""What WHY finds: one sentence, the evidence for it, and what resolves it."""

from __future__ import annotations

from dataclasses import dataclass

Fact = tuple[str, object]


@dataclass(frozen=True)
class Verdict:
    """situation: its code, one of error_codes.VERDICTS; sentence: a whole one, without full stop; facts:
    property and value; proposal: statements that can be typed, "" where there is nothing to type. healthy:
    nothing is wrong.
    """

    situation: str
    sentence: str
    facts: tuple[Fact, ...] = ()
    proposal: str = ""
    healthy: bool = False

    @property
    def lead(self) -> str:
        """What the proposal does: some only show the data or the state."""
        return f"{'examine' if self.proposal.startswith(_SHOWING) else 'resolve'} it with:"


_SHOWING = ("PREVIEW ", "SHOW ", "SELECT * FROM STATE ", "SELECT 'left' AS side")
"""How the statements begin that show what there is, where none can resolve a situation."""


def some(values: list[object], most: int = 5) -> str:
    """Values for a person, not too many of them."""
    texts = [repr(v) if isinstance(v, str) else str(v) for v in values[:most]]
    return ", ".join(texts) + (", …" if len(values) > most else "")
