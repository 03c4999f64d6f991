"""A list of statements that fail today. It only shrinks: a new failure fails the test, and so does a line whose
statement no longer fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from filelock import FileLock

SHRINK = "STREAMSQL_SHRINK_LISTS"
"""The environment variable with which a test removes the lines whose statements no longer fail."""


class ShrinkingList:
    """The lines `KEY KIND` of a file; lines that begin with # are comments."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[str]:
        """The lines, without comments."""
        return [line for line in self.path.read_text("utf-8").splitlines() if line and line[0] != "#"]

    def compare(self, failures: Mapping[str, str], belongs: Callable[[str], bool]) -> str:
        """What is wrong with the list, "" if nothing is. failures: what to say of each failure, by its line;
        belongs: whether a line of the list is about a statement that was tried. With SHRINK, removes the
        lines that are no longer failures.
        """
        listed = {line for line in self.lines() if belongs(line)}
        mended = sorted(listed - failures.keys())
        if mended and os.environ.get(SHRINK):
            self._remove(set(mended))
            mended = []
        new = [f"{line}\n{said}" for line, said in failures.items() if line not in listed]
        parts = []
        if new:
            parts.append(f"{len(new)} statements fail that are not in {self.path.name}:\n" + "\n\n".join(new))
        if mended:
            parts.append(
                f"{len(mended)} statements of {self.path.name} no longer fail; the list only shrinks: remove these"
                f" lines, by hand or with {SHRINK}=1:\n" + "\n".join(mended)
            )
        return "\n\n".join(parts)

    def _remove(self, lines: set[str]) -> None:
        with FileLock(self.path.with_suffix(".lock")):  # the tests may run on several workers
            kept = [line for line in self.path.read_text("utf-8").splitlines() if line not in lines]
            self.path.write_text("\n".join(kept) + "\n", "utf-8")


FAILS_TODAY = ShrinkingList(Path(__file__).parent / "fails_today.txt")
"""What `--check` refuses or changes."""
DIFFERS_TODAY = ShrinkingList(Path(__file__).parent / "differs_today.txt")
"""What the console answers otherwise than `spark.sql`."""
