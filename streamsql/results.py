"""What executing a statement gives. The runtime makes these; only output/ and shell/ print them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Result:
    """Base. notes: what is to be known beside the result, a line each (they go to stderr)."""

    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Done(Result):
    """Nothing but a word: what was done."""

    message: str = ""


@dataclass(frozen=True)
class Text(Result):
    """Text that is the answer, such as a program or a help page."""

    text: str = ""


@dataclass(frozen=True)
class Rows(Result):
    """A table. numeric: whether each column is aligned to the right; seconds: how long it took."""

    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[Any, ...]] = field(default_factory=tuple)
    numeric: tuple[bool, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class Started(Result):
    """A streaming query that runs now. durable: whether it writes something that outlives the console."""

    query: str = ""
    message: str = ""
    durable: bool = False


@dataclass(frozen=True)
class Leave(Result):
    """The console or the script is to end."""
