"""Breaks lines between words, so that a window does not break them within one."""

from __future__ import annotations

import re

from streamsql.errors import cells

_BREAKS = re.compile(r"[^/.,_=:;(|-]*[/.,_=:;(|-]|[^/.,_=:;(|-]+")
"""The parts of a long word such as a path; each but the last ends with a character to break after."""


_WORDS = re.compile(r"\d[\d,.:-]* \S+|(?:(?<!\w)'[^'\n]*'|\S)+")
"""Words; a number stays with its unit, a date with its time, and a text in quotes is one word."""


def wrap(value: object, room: int, *, message: bool = False) -> list[str]:
    """A value as lines of at most `room` cells, broken between words; lines that go on have two blanks more
    than the first, if that has some. A word that is longer than a line is broken after a / or the like.

    message: all lines that go on are indented, and paths and texts in quotes are left to the terminal, whose
    own break is not in what is copied.
    """
    room = max(room, 8)
    return [part for line in str(value).split("\n") for part in _wrapped(line, room, message)]


def _wrapped(line: str, room: int, message: bool) -> list[str]:
    if cells(line) <= room:
        return [line]
    lead = line[: len(line) - len(line.lstrip())][: room // 2]
    going_on = lead + "  " if lead or message or line.startswith("- ") else ""
    lines = [lead]
    end = 0
    for match in _WORDS.finditer(line):
        word, between, end = match[0], line[end : match.start()], match.end()
        blank = "" if lines[-1] in (lead, going_on) else between
        if cells(lines[-1] + blank + word) <= room:
            lines[-1] += blank + word
            continue
        if blank:
            lines.append(going_on)
        whole = message and ("/" in word or "'" in word)
        for part in [word] if whole else _parts(word, room - len(going_on)):
            if lines[-1] != going_on and cells(lines[-1] + part) > room:
                lines.append(going_on)
            lines[-1] += part
    return lines


_HUMPS = re.compile(r".*[a-z\d](?=[A-Z])")
"""The first words of a name such as FileSystemBasedCheckpoint."""


def _parts(word: str, room: int) -> list[str]:
    """A word as parts of at most `room` cells."""
    if cells(word) <= room:
        return [word]
    parts: list[str] = []
    for part in _BREAKS.findall(word):
        while cells(part) > room:
            head = part[:room]
            while cells(head) > room:
                head = head[:-1]
            hump = _HUMPS.match(part, 0, len(head) + 1)
            head = hump[0] if hump else head
            parts.append(head)
            part = part[len(head) :]
        parts.append(part)
    return parts


_NUMBER_OR_TIME = re.compile(r"[-+\d,.:]+( [\d.:]+)?")


def longest_word(value: str, most: int) -> int:
    """The cells of the longest part of a text that is not broken, if its words are to fit `most` cells. A
    number and a time are never broken.
    """
    parts = (
        [word] if _NUMBER_OR_TIME.fullmatch(word) else _parts(word, most) for word in _WORDS.findall(value)
    )
    return max((cells(part) for word in parts for part in word), default=0)
