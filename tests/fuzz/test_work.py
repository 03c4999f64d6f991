"""The work of `--check` grows with the length of a statement and not with its square.

Work is counted as Python's own calls and lines are: no clock. tests/benchmarks/slow_statements.py
prints the times of the full sizes.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from conftest import cases_of
from properties import Console
from slow_statements import CASES

ROOMS = ("streamsql/language/", "streamsql/plan/", "streamsql/cli/")
# Work that still grows faster, by its cause; to become empty.
KNOWN = {"streams on streams"}
SMALL, FACTOR = 40, 4


def work(text: str) -> int:
    """Lines of Python that checking a script runs; those of loops inside expressions count, too."""
    count = 0

    def tell(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return tell

    console = Console("")
    for once in ("SELECT 1 FROM a GROUP BY x;", "CREATE STREAM w (a ARRAY<) USING rate;"):
        console.refusals(once)  # what is loaded once, also for the proposals after an error
    outer = sys.gettrace()
    sys.settrace(tell)
    try:
        console.refusals(text)
    finally:
        sys.settrace(outer)
    return count


@pytest.mark.parametrize("name", cases_of({name: name for name in sorted(set(CASES) - KNOWN)}, 3))
def test_work_grows_with_the_length(name: str) -> None:
    script = CASES[name][1]
    small, large = work(script(SMALL)), work(script(SMALL * FACTOR))
    assert large < small * FACTOR * 1.5, f"{large / small:.1f} times the work for {FACTOR} times the length"
