"""Wraps long lines of the prompt between words; prompt-toolkit itself wraps between characters."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from streamsql.errors import cells

_PARTS = re.compile(r"\s|[^\s,]+,*|,+")
"""The parts of a line that a row may end behind: each blank, and each word with its commas."""
HIDDEN = -1
"""In the place of a number of blanks: the character is not shown."""


def gaps(line: str, room: int) -> dict[int, int]:
    """The blanks to show before the characters of a line, so that rows of `room` cells break no word; blanks
    between two rows are HIDDEN. A word that is longer than a row is broken.
    """
    blanks, column = {}, 0
    for part in _PARTS.finditer(line):
        at, width = part.start(), cells(part[0])
        if column == room and part[0].isspace():
            blanks[at] = HIDDEN
            continue
        if column + width > room >= width:
            if column < room:
                blanks[at] = room - column
            column = 0
        column += width
        column = column % room or room
    return blanks


class WordWrap(Processor):
    """Moves a word that the edge of the window would break to the next row. prefix: the cells of the prompt
    before each row.
    """

    def __init__(self, prefix: int) -> None:
        self.prefix = prefix

    def apply_transformation(self, ti: TransformationInput) -> Transformation:
        line, room = fragment_list_to_text(ti.fragments), ti.width - self.prefix
        blanks = gaps(line, room) if 0 < room < cells(line) else {}
        if not blanks:
            return Transformation(ti.fragments)
        fragments: StyleAndTextTuples = []
        for at, fragment in enumerate(explode_text_fragments(ti.fragments)):
            gap = blanks.get(at, 0)
            fragments += [("", " " * gap)] if gap > 0 else []
            fragments += [fragment] if gap != HIDDEN else []
        # Where each character is shown, a hidden one as the next; the cursor may also stand behind the last.
        moved = accumulate(blanks.get(at, 0) for at in range(len(line) + 2))
        shown = [at + by + (blanks.get(at) == HIDDEN) for at, by in enumerate(moved)]
        return Transformation(
            fragments,
            source_to_display=lambda place: shown[min(place, len(shown) - 1)],
            display_to_source=lambda place: max(0, bisect_right(shown, place) - 1),
        )
