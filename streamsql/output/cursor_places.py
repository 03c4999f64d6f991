"""Keeps columns aligned behind emoji that terminals draw with different widths."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from streamsql.errors import cells
from streamsql.output.colors import unpainted

_UNSURE = re.compile("[\U0001f1e6-\U0001f1ff]{2}|\\S(?:[\ufe0f\U0001f3fb-\U0001f3ff]|\u200d\\S)+")
"""Flags, and characters with a variation selector, a colour of the skin or a joiner."""


def placed(lines: Iterable[str], width: int) -> Iterator[str]:
    """Lines for a terminal of that width, where the cursor is told its column behind such emoji. Lines that
    the terminal breaks stay as they are.
    """
    knows_columns = os.environ.get("TERM", "dumb") not in ("", "dumb")
    for line in lines:
        unsure = knows_columns and not line.isascii() and _UNSURE.search(line)
        yield _placed(line) if unsure and cells(unpainted(line)) <= width else line


def one_by_one(line: str) -> str:
    """A line for a screen that is drawn one character at a time, such as a live view: of such an emoji, only
    the character that it begins with, in as many cells; the letters of a flag.
    """
    return line if line.isascii() else _UNSURE.sub(_first, line)


def _first(emoji: re.Match[str]) -> str:
    first = emoji[0][0]
    if first in _FLAGS:
        return "".join(chr(ord(letter) - ord(_FLAGS[0]) + ord("A")) for letter in emoji[0])
    return first + " " * (cells(emoji[0]) - cells(first))


_FLAGS = "".join(map(chr, range(0x1F1E6, 0x1F200)))


def _placed(line: str) -> str:
    parts, at = list[str](), 0
    for emoji in _UNSURE.finditer(line):
        before, at = at, emoji.end()
        parts += [line[before:at], f"\x1b[{cells(unpainted(line[:at])) + 1}G"]
    return "".join([*parts, line[at:]])
