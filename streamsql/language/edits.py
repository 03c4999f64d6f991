"""Edits of a text: how a statement of another console becomes one of this one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Edit = tuple[int, int, str]
"""The characters from start to end, and what stands there instead."""


@dataclass(frozen=True)
class OwnText:
    """A statement in the console's own words. points: those of Origin; none: it has no places of its own."""

    text: str
    points: tuple[tuple[int, int], ...] = ()


def apart(edits: Iterable[Edit]) -> list[Edit]:
    """The edits in order, without those inside of another one: the text that this gives is read again."""
    outermost: list[Edit] = []
    for edit in sorted(edits, key=lambda e: (e[0], e[1] > e[0], -e[1])):
        if not outermost or edit[0] >= outermost[-1][1]:
            outermost.append(edit)
    return outermost


def edited(text: str, edits: Sequence[Edit]) -> OwnText:
    """A text with these edits, which are in order and apart."""
    own, points = with_points(text, edits)
    return OwnText(own.rstrip(), tuple(points))


def with_points(text: str, edits: Sequence[Edit]) -> tuple[str, list[tuple[int, int]]]:
    """A text with these edits, which are in order and apart; and pairs (offset in it, offset in the text
    before) where the two begin to differ.
    """
    parts, points, old, new = [], [(0, 0)], 0, 0
    for start, end, own in edits:
        parts += [text[old:start], own]
        new += start - old
        points.append((new, start))
        new, old = new + len(own), end
        points.append((new, old))
    return "".join([*parts, text[old:]]), points
