"""A start as data: steps in their order, each with what undoes it, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


def nothing() -> None:
    """Nothing has to be undone."""


@dataclass(frozen=True)
class Step:
    """do: raises where the start fails. undo: takes back what it
    did, also a part of it. final: once it is done, the steps before it stay as they are.
    """

    do: Callable[[], object]
    undo: Callable[[], object] = nothing
    final: bool = False


def run_steps(steps: Iterable[Step]) -> None:
    """Run steps in their order. Where one fails, it and those before it are undone, the newest first; raises
    what it raised.
    """
    begun = list[Step]()
    try:
        for step in steps:
            begun.append(step)
            step.do()
            if step.final:
                begun.clear()
    except BaseException:
        for step in reversed(begun):
            step.undo()
        raise
