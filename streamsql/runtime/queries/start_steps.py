"""A start as data: steps in their order, each with what undoes it, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """do: does the step; an exception ends the start. undo: takes back what `do` did, also a part of it.
    final: once it is done, the steps before it stay as they are.
    """

    do: Callable[[], object]
    undo: Callable[[], object] = lambda: None
    final: bool = False


def run_steps(steps: Iterable[Step]) -> None:
    """Run steps in their order. Where one fails, it and those before it are undone, the newest first, also
    where undoing one of them fails. Raises what the step raised, or what undoing raised last.
    """
    with ExitStack() as begun:
        for step in steps:
            begun.callback(step.undo)
            step.do()
            if step.final:
                begun.pop_all()
        begun.pop_all()
