"""What holds of a view at any width, compared with the same view at the width of its golden screen."""

from __future__ import annotations

import re

from streamsql.errors import cells

WORD = re.compile(r"[A-Za-z_]{3,}")
HEADINGS = re.compile(r"^\+-.*\n(\|.*\n)+?\|-", re.MULTILINE)
CUT = ("…", "no room for")
"""What a view says where it has left something out."""


def faults(view: str, golden: str, width: int) -> list[str]:
    """What is wrong with a view in a window of a width: lines that do not fit, words that are broken, words that
    are lost without a word about it. golden: the view as it is at the golden width.
    """
    found = [f"too wide: {line}" for line in view.split("\n") if cells(line) > width]
    expected, shown = set(WORD.findall(golden)), set(WORD.findall(view))
    parts = set(re.findall(r"[A-Za-z_]+", view))
    for word in expected - shown:
        if any(word[:at] in parts and word[at:] in parts for at in range(1, len(word))):
            found.append(f"broken: {word}")
    if not any(words in view for words in CUT):
        found += [f"lost: {word}" for word in sorted(expected - shown - _headings(golden))]
    return found


def _headings(golden: str) -> set[str]:
    """The headings of tables: a table that does not fit becomes a list of names and values without headings."""
    return {word for heading in HEADINGS.finditer(golden) for word in WORD.findall(heading[0])}
