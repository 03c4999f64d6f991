"""Formats rows as lines without line ends. Pure functions."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

from streamsql.errors import cells
from streamsql.output.cells import cut, json_text, moments, plain, short, text, texts
from streamsql.output.colors import BOLD, DIM, paint
from streamsql.output.control_characters import visible
from streamsql.results import Rows


@dataclass(frozen=True)
class Style:
    """The display of rows on a terminal; the default is for files.

    null: the text for NULL in table, vertical and markdown. In a table: max_cell: the largest width of a
    value in cells, 0 for no limit; width: the largest width of a line, 0 for no limit; narrow: the
    widest texts are cut before a column is omitted. delimiter: of csv. compact: without blanks beside the
    names of columns.
    """

    null: str = "NULL"
    color: bool = False
    max_cell: int = 0
    width: int = 0
    narrow: bool = False
    delimiter: str = ","
    compact: bool = False


PLAIN = Style()

SHOWN_AS_THEY_ARE = frozenset({int, float, str, dt.date})
"""The types of values whose text is that of Python."""
TIMES = frozenset({dt.datetime})

LEAST = 8
"""The cells of a text that stay where it is cut to make room for other columns."""
BLOCK = 1_000
"""The rows that are formatted at a time."""


@dataclass
class Drawn:
    """A table as lines. width: of each line, in cells; cut: whether a value was cut; left_out: the number
    of columns that did not fit; hidden: their names.
    """

    lines: list[str] = field(default_factory=list)
    width: int = 0
    cut: bool = False
    left_out: int = 0
    hidden: tuple[str, ...] = ()


def draw(rows: Rows, style: Style = PLAIN) -> Drawn:
    """An outlined table with right-aligned numbers; columns that do not fit are omitted in the middle."""
    drawn = Drawn()

    def shorten(value: str, limit: int) -> str:
        short = cut(value, limit)
        drawn.cut = drawn.cut or short != value
        return short

    names = [shorten(visible(c), style.max_cell) for c in rows.columns]
    body = [[shorten(visible(v), style.max_cell) for v in row] for row in texts(rows.rows, null=style.null)]
    blanks = 0 if style.compact else 2
    widths = _widths(names, body, blanks)
    least = _least(names, widths, rows, blanks) if style.narrow else widths
    shown = _that_fit(least, style.width)
    drawn.hidden = tuple(name for i, name in enumerate(names) if i not in shown)
    drawn.left_out = len(drawn.hidden)
    line = style.width - (len(" … |") if drawn.left_out else 0)
    room = line - len("|  |")
    squeezed = bool(style.width and shown and least[0] > room > 0)
    if squeezed:
        # Not even the first column fits.
        names[0] = shorten(names[0], room)
        body = [[shorten(row[0], room), *row[1:]] for row in body]
    elif style.narrow:
        limits = _narrowed(widths, least, [i for i in shown if i is not None], line)
        body = [[shorten(v, limit) for v, limit in zip(row, limits, strict=True)] for row in body]
    right = rows.numeric or (False,) * len(names)
    body = [
        [_painted(row[i], values[i], style) if i is not None else "…" for i in shown]
        for row, values in zip(body, rows.rows, strict=True)
    ]
    drawn.lines = _outlined(
        ["…" if i is None else _header(names[i], right[i], style, 0 if squeezed else blanks) for i in shown],
        body,
        ["right" if i is not None and right[i] else "left" for i in shown],
    )
    drawn.width = cells(drawn.lines[0])
    return drawn


def _painted(shown: str, value: object, style: Style) -> str:
    return paint(shown, DIM) if style.color and value is None else shown


def _header(name: str, right: bool, style: Style, blanks: int) -> str:
    """The name of a column with blanks, which separate columns of narrow numbers."""
    shown = paint(name, BOLD) if style.color else name
    return " " * blanks + shown if right else shown + " " * blanks


def _outlined(names: list[str], body: list[list[str]], align: list[str]) -> list[str]:
    """Draw the outlines with tabulate, without its own conversion of values."""
    import tabulate

    tabulate.MIN_PADDING = 0
    text = tabulate.tabulate(
        body,
        names,
        tablefmt="psql",
        colalign=align if body else None,
        disable_numparse=True,
        preserve_whitespace=True,
    )
    return text.split("\n")


def _widths(names: list[str], body: list[list[str]], blanks: int) -> list[int]:
    """The width of each column in cells: that of its widest value, or of its name and the blanks."""
    columns = zip(*body, strict=True) if body else ([] for _ in names)
    return [
        max(cells(name) + blanks, max(map(cells, column), default=0))
        for name, column in zip(names, columns, strict=True)
    ]


def _least(names: list[str], widths: list[int], rows: Rows, blanks: int) -> list[int]:
    """The cells that the columns keep when texts are cut: of numbers and times all, of texts LEAST or those
    of their name.
    """
    whole = (any(isinstance(row[i], _NEVER_CUT) for row in rows.rows) for i in range(len(names)))
    return [
        width if never else min(width, max(LEAST, cells(name) + blanks))
        for name, width, never in zip(names, widths, whole, strict=True)
    ]


_NEVER_CUT = (int, float, Decimal, dt.date, dt.timedelta)


def _narrowed(widths: list[int], least: list[int], shown: list[int], line: int) -> list[int]:
    """The widths of the columns when, of those shown, the widest texts are cut until they fit the line."""
    widths = [max(n, min(w, line)) for w, n in zip(widths, least, strict=True)]
    over = sum(widths[i] + 3 for i in shown) + 1 - line
    while over > 0 and (wide := [i for i in shown if widths[i] > least[i]]):
        widths[max(wide, key=widths.__getitem__)] -= 1
        over -= 1
    return widths


def _that_fit(widths: list[int], room: int) -> list[int | None]:
    """The indexes of the columns to show, None in place of the omitted ones. room: the width of a line, 0
    for no limit. Columns are taken in turn from both ends, the first one always.
    """
    everything: list[int | None] = list(range(len(widths)))
    if not room or len(widths) < 2 or sum(w + 3 for w in widths) + 1 <= room:
        return everything
    left, right = 1, len(widths)  # the columns before left and from right on are shown
    used = 1 + (widths[0] + 3) + len(" … |")
    while True:
        before = left, right
        if right - 1 > left and used + widths[right - 1] + 3 <= room:
            right -= 1
            used += widths[right] + 3
        if right - 1 > left and used + widths[left] + 3 <= room:
            used += widths[left] + 3
            left += 1
        if (left, right) == before:
            return [*everything[:left], None, *everything[right:]]


def table(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    yield from draw(rows, style).lines


def vertical(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    """A block for each row, a line for each column."""
    names = [visible(c) for c in rows.columns]
    width = max(map(cells, names), default=0)
    labels = [n + " " * (width - cells(n)) for n in names]
    if style.color:
        labels = [paint(n, BOLD) for n in labels]
    for number, row in enumerate(rows.rows, 1):
        yield f"-[ row {number} ]" + "-" * max(0, width)
        for label, value in zip(labels, row, strict=True):
            shown = visible(short(value, null=style.null))
            yield f"{label} | {paint(shown, DIM) if style.color and value is None else shown}"


def markdown(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    def line(row: list[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|") for c in row) + " |"

    yield line([visible(c) for c in rows.columns])
    right = rows.numeric or (False,) * len(rows.columns)
    yield "|" + "|".join("---:" if r else "---" for r in right) + "|"
    for row in rows.rows:
        yield line([visible(text(v, null=style.null)) for v in row])


def csv(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    """RFC 4180; NULL is an empty field, an empty text is "".

    Without csv.writer, which in Python 3.11 writes both the same (QUOTE_NOTNULL needs 3.12).
    """
    quoted = re.compile(rf'[{re.escape(style.delimiter)}"\n\r]|\A\s|\s\Z|\A\Z').search

    def field(value: str) -> str:
        return '"' + value.replace('"', '""') + '"' if quoted(value) else value

    return _delimited(rows, style.delimiter, field, "")


def tsv(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    """Tabs between fields; \\N is NULL, and tabs and line ends in a value are escaped."""
    escaped = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
    return _delimited(rows, "\t", lambda value: value.translate(escaped), "\\N")


def _delimited(rows: Rows, delimiter: str, field: Callable[[str], str], null: str) -> Iterator[str]:
    """Lines of fields. Rows are converted many at a time, by columns. field: makes a field of a text."""

    def fields(column: Sequence[Any]) -> Iterable[str]:
        if SHOWN_AS_THEY_ARE.issuperset(map(type, column)):
            return map(field, map(str, column))
        if TIMES.issuperset(map(type, column)):
            return map(field, moments(column))
        return [null if value is None else field(text(value)) for value in column]

    yield delimiter.join(map(field, rows.columns))
    yield from map(delimiter.join, _by_columns(rows, fields))


def _by_columns(rows: Rows, converted: Callable[[Sequence[Any]], Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    """The rows with the values of each column converted, many rows at a time."""
    for block in blocks(rows.rows):
        yield from zip(*map(converted, zip(*block, strict=True)), strict=True)


Item = TypeVar("Item")


def blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The items many at a time. Those before an error are not lost."""
    block: list[Item] = []
    try:
        for item in items:
            block.append(item)
            if len(block) == BLOCK:
                yield block
                block = []
    except Exception:
        if block:
            yield block
        raise
    if block:
        yield block


def jsonl(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    for values in _by_columns(rows, lambda column: map(plain, column)):
        yield json_text(dict(zip(rows.columns, values, strict=True)))


def json(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    yield "["
    before = None
    for line in jsonl(rows):
        if before is not None:
            yield f"  {before},"
        before = line
    if before is not None:
        yield f"  {before}"
    yield "]"


FORMATS: dict[str, Callable[..., Iterator[str]]] = {
    "table": table,
    "csv": csv,
    "tsv": tsv,
    "json": json,
    "jsonl": jsonl,
    "markdown": markdown,
    "vertical": vertical,
}
# Formats for programs: values are not escaped for terminals.
RAW = frozenset({"csv", "tsv", "json", "jsonl"})
