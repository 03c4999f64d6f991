"""Fits tables about the console itself, such as SHOW QUERIES, to a window. Pure functions.

No word is broken: cells wrap, and what matters least is left out where there is no room for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from streamsql.errors import Note, cells
from streamsql.output.cells import text
from streamsql.output.colors import BOLD, paint
from streamsql.output.control_characters import harmless, visible
from streamsql.output.document import Document, Style
from streamsql.output.drawn_tables import draw
from streamsql.output.line_breaks import longest_word, wrap
from streamsql.results import InfoRows

UNGROUPED = ("batch", "ms", "refresh ms")
"""The columns of numbers that have no commas between thousands."""
BELOW = ("last error", "remark")
"""The columns of texts that are told below a table that has no room for them."""
LABELS = 40
"""The cells that names of properties may take, and those in a first column without being broken."""
NARROW = 16
"""The cells that a column of texts has at least, if its values are that long."""
UNBROKEN = 20
"""The cells that a word may have and is not broken in a column."""
SHORT = 8
"""The cells of a value that stands beside a name that is longer than the others."""
BESIDE = 30
"""The cells beside the name of a property that a value needs to be wrapped there, and not below it."""


def info_document(rows: InfoRows, width: int, style: Style) -> Document:
    """A table about the console in a window of that width. Texts of some columns without room are notes."""
    if is_properties(rows):
        return Document(list(_properties(rows, width, style)))
    style = replace(style, compact=True)
    rows = _without_repeats(readable(rows))
    drawn = draw(rows, style)
    if drawn.width <= width:
        return Document(drawn.lines)
    whole = _as_texts(rows, style)
    rows, left_out = _that_fit(whole, width)
    if left_out and (whole.in_full or set(left_out) & set(whole.matters[: whole.needed])):
        return Document(list(_cards(whole, width, style)))
    lines = draw(_wrapped(rows, width), replace(style, width=width)).lines
    notes = list[Note]()
    for name in (name for name in left_out if name in BELOW):
        at = whole.columns.index(name)
        notes += [Note("NOT_ALL_SHOWN", f"{row[0]}: {row[at]}") for row in whole.rows if row[at]]
    return Document(lines, notes, tuple(name for name in left_out if name not in BELOW))


def readable(rows: InfoRows) -> InfoRows:
    """A table about the console with commas in its numbers, without columns that have no value."""
    return _filled(replace(rows, rows=[tuple(map(_grouped, rows.columns, row)) for row in rows.rows]))


def is_properties(rows: InfoRows) -> bool:
    """Whether rows are names and values of one thing, or stand under titles."""
    return rows.columns == ("property", "value") or bool(rows.sections)


# ---- properties ---------------------------------------------------------------------------


def _properties(rows: InfoRows, width: int, style: Style) -> Iterator[str]:
    """Names and values without rules, under the titles of their sections."""
    titles, indent = dict(rows.sections), "  " if rows.sections else ""
    names = [visible(str(name)) for name, _ in rows.rows]
    label = _label(names, width)
    for number, (name, (_, value)) in enumerate(zip(names, rows.rows, strict=True)):
        if number in titles:
            yield paint(titles[number], BOLD) if style.color else titles[number]
        shown = harmless(text(_grouped(name, value), null=style.null))
        yield from _property(indent, name, shown, label, width) if name else _below(indent, shown, width)


def _grouped(name: str, value: Any) -> Any:
    """A value of that name; a number with commas between thousands; "" for None."""
    if value is None:
        return ""
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and name not in UNGROUPED
    return f"{value:,}" if number else value


def _label(names: list[str], width: int) -> int:
    """The cells of the names that values stand beside; below longer ones."""
    most = min(LABELS, width * 9 // 20)
    return max((cells(name) for name in names if cells(name) <= most), default=0)


def prose(text: str, width: int) -> Iterator[str]:
    """The lines of a text in a window of that width, broken between words; its tables are aligned."""
    for is_table, lines in groupby(text.split("\n"), lambda line: bool(_ROW.fullmatch(line))):
        if not is_table:
            yield from (part for line in lines for part in wrap(line, width))
            continue
        rows = [line.strip().partition("\t")[::2] for line in lines]
        label = _label([name for name, _ in rows], width)
        for name, value in rows:
            yield from _property("    ", name, value, label, width)


_ROW = re.compile(r" {4}\S[^\t]*\t[^\t]*")


def _property(indent: str, name: str, value: str, label: int, width: int) -> Iterator[str]:
    if (
        label < cells(name)
        and cells(value) <= SHORT
        and len(indent) + cells(name) + cells(value) + 2 <= width
    ):
        label = cells(name)
    room = width - len(indent) - label - 2
    fits = cells(name) <= label and "\n" not in value
    if not fits or (cells(value) > room and room < BESIDE):
        yield from _below(indent, name, width)
        yield from _below(indent + "  ", value, width)
        return
    first = indent + name + " " * (label - cells(name) + 2)
    for number, line in enumerate(wrap(value, room)):
        yield (" " * cells(first) if number else first) + line


def _cards(rows: InfoRows, width: int, style: Style) -> Iterator[str]:
    """Each row as a title, the value of its first column, and the other values below it, with their names."""
    label = _label(list(rows.columns[1:]), width)
    for title, *values in rows.rows:
        yield paint(title, BOLD) if style.color else title
        for name, value in zip(rows.columns[1:], values, strict=True):
            if value:
                yield from _property("  ", name, value, label, width)


def _below(indent: str, value: str, width: int) -> Iterator[str]:
    for line in wrap(value, width - len(indent)):
        yield indent + line


# ---- columns ------------------------------------------------------------------------------


def _filled(rows: InfoRows) -> InfoRows:
    """The rows without the columns that have no value."""
    return _of_columns(
        rows, [i for i, _ in enumerate(rows.columns) if any(r[i] not in (None, "") for r in rows.rows)]
    )


def _of_columns(rows: InfoRows, which: list[int]) -> InfoRows:
    numeric = rows.numeric or (False,) * len(rows.columns)
    return replace(
        rows,
        columns=tuple(rows.columns[i] for i in which),
        rows=[tuple(row[i] for i in which) for row in rows.rows],
        numeric=tuple(numeric[i] for i in which),
    )


def _without_repeats(rows: InfoRows) -> InfoRows:
    """The rows without the columns that equal another."""
    at = {name: i for i, name in enumerate(rows.columns)}
    gone = {
        at[column]
        for column, other in rows.same
        if column in at and other in at and all(row[at[column]] == row[at[other]] for row in rows.rows)
    }
    return _of_columns(rows, [i for i in at.values() if i not in gone])


def _as_texts(rows: InfoRows, style: Style) -> InfoRows:
    shown = [tuple(visible(text(v, null=style.null)) for v in row) for row in rows.rows]
    return replace(rows, rows=shown)


def _least(rows: InfoRows, at: int) -> int:
    """The cells that a column needs at least."""
    name, values = cells(rows.columns[at]), [row[at] for row in rows.rows]
    widest = max(map(cells, values), default=0)
    if rows.numeric[at]:
        return max(name, widest)
    word = max((longest_word(value, UNBROKEN if at else LABELS) for value in values), default=0)
    return max(name, word, min(widest, NARROW))


def _that_fit(rows: InfoRows, width: int) -> tuple[InfoRows, tuple[str, ...]]:
    """(the columns that have room, the names of the others). The first column is always there."""
    names = list(rows.columns)
    matters = [names.index(c) for c in rows.matters if c in names]
    shown, used = [0], 1 + _least(rows, 0) + 3
    for at in [*matters, *(i for i in range(len(names)) if i not in matters)]:
        need = _least(rows, at) + 3
        if at and used + need <= width:
            shown.append(at)
            used += need
    left_out = tuple(name for i, name in enumerate(names) if i not in shown)
    return _of_columns(rows, sorted(shown)), left_out


def _wrapped(rows: InfoRows, width: int) -> InfoRows:
    """The rows whose texts wrap so that the table fits; a row may take several."""
    least = [_least(rows, i) for i in range(len(rows.columns))]
    widest = [max(n, *(cells(row[i]) for row in rows.rows)) if rows.rows else n for i, n in enumerate(least)]
    spare = max(0, width - 1 - sum(n + 3 for n in least))
    rooms = list(least)
    for left, at in enumerate(sorted(range(len(least)), key=lambda i: widest[i] - least[i])):
        more = min(widest[at] - least[at], spare // (len(least) - left))
        rooms[at] += more
        spare -= more
    wrapped = []
    for row in rows.rows:
        parts = [[v] if n else wrap(v, room) for v, room, n in zip(row, rooms, rows.numeric, strict=True)]
        height = max(map(len, parts))
        wrapped += [tuple(p[line] if line < len(p) else "" for p in parts) for line in range(height)]
    return replace(rows, rows=wrapped)
