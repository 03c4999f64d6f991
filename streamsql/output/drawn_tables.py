"""Draws tables: columns that fit a window, and rows that come block by block without holding all of them."""

from __future__ import annotations

import datetime as dt
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

from streamsql.errors import cells
from streamsql.output.cells import cut, texts
from streamsql.output.colors import BOLD, DIM, paint
from streamsql.output.control_characters import visible
from streamsql.output.document import PLAIN, Style
from streamsql.results import Rows

Values = Sequence[Any]


LEAST = 8
"""The cells of a text that stay where it is cut to make room for other columns."""
BLOCK = 1_000
"""The rows that are formatted at a time."""
MORE_DIGITS = 3
"""Numbers of later rows may be longer than those of the first, by so many digits."""


class Outline:
    """The outlines of a table. widths: the cells of each column, which must have room for its name; right:
    whether it is aligned to the right.
    """

    def __init__(
        self,
        names: Sequence[str],
        widths: Sequence[int],
        right: Sequence[bool],
        style: Style,
        gap: int | None = None,
    ) -> None:
        """gap: the place of the column that stands for omitted ones; it is not painted."""
        import tabulate

        self.widths = widths
        self.right = right
        self.style = style
        bold = [paint(name, BOLD) if style.color and at != gap else name for at, name in enumerate(names)]
        tabulate.MIN_PADDING = 0
        padded = self._padded(names, bold)
        text = tabulate.tabulate([], padded, tablefmt="psql", disable_numparse=True, preserve_whitespace=True)
        *self.header, self.end = text.split("\n")

    def line(self, shown: Sequence[str], values: Values) -> str:
        """A row. shown: the texts of its values."""
        painted = shown
        if self.style.color:
            painted = [paint(s, DIM) if v is None else s for s, v in zip(shown, values, strict=True)]
        return f"| {' | '.join(self._padded(shown, painted))} |"

    def _padded(self, plain: Sequence[str], painted: Sequence[str]) -> list[str]:
        padded = []
        for text, colored, width, right in zip(plain, painted, self.widths, self.right, strict=True):
            blanks = " " * (width - (len(text) if text.isascii() else cells(text)))
            padded.append(blanks + colored if right else colored + blanks)
        return padded


GAP = "…"
"""What stands for the columns that are omitted."""


@dataclass(frozen=True)
class Drawn:
    """A table as lines. width: of each line, in cells; cut: whether a value was cut; hidden: the names of the
    columns that did not fit.
    """

    lines: list[str] = field(default_factory=list)
    width: int = 0
    cut: bool = False
    hidden: tuple[str, ...] = ()


def draw(rows: Rows, style: Style = PLAIN) -> Drawn:
    """An outlined table with right-aligned numbers; columns that do not fit are omitted in the middle."""
    table = TableBlocks(rows.columns, rows.numeric, style)
    names, body = table.names, table.texts(rows.rows)
    if not names:
        return Drawn([""])
    table.measure(body)
    least = _least(names, table.widths, rows, table.blanks) if style.narrow else table.widths
    shown = _that_fit(least, style.width)
    hidden = tuple(name for i, name in enumerate(names) if i not in shown)
    line = style.width - (len(" … |") if hidden else 0)
    room = line - len("|  |")
    limits = [0] * len(names)
    if style.width and least[0] > room > 0:  # not even the first column fits
        limits[0], table.blanks = room, 0
        names[0] = table.shortened(names[0], room)
    elif style.narrow:
        limits = _narrowed(table.widths, least, [i for i in shown if i is not None], line)
    if any(limits):
        body = [[table.shortened(v, limit) for v, limit in zip(row, limits, strict=True)] for row in body]
        table.widths = table.least_widths()
        table.measure(body)
    pick = [i if i is not None else len(names) for i in shown]  # the last of each list is the gap's

    def picked(items: Iterable[Any], gap: Any) -> list[Any]:
        every = (*items, gap)
        return [every[i] for i in pick]

    gap = shown.index(None) if hidden else None
    right = picked(table.right, False)
    outline = Outline(picked(names, GAP), picked(table.widths, 1), right, style, gap)
    values = zip(body, rows.rows, strict=True)
    lines = [outline.line(picked(row, GAP), picked(v, GAP)) for row, v in values]
    return Drawn([*outline.header, *lines, outline.end], cells(outline.end), table.cut, hidden)


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


class TableBlocks:
    """A table of blocks of rows. The first rows decide how wide its columns are; where a later value is
    wider, the header is drawn again with the new widths. more_digits: by which later numbers may be longer.
    """

    def __init__(
        self, columns: tuple[str, ...], numeric: tuple[bool, ...], style: Style, more_digits: int = 0
    ) -> None:
        self.style = style
        self.more_digits = more_digits
        self.right = numeric or (False,) * len(columns)
        self.names = [cut(visible(c), style.max_cell) for c in columns]
        self.blanks = 0 if style.compact else 2
        self.widths = self.least_widths()
        self.cut = self.names != list(map(visible, columns))
        self.outline: Outline | None = None

    def texts(self, rows: Iterable[Values]) -> list[list[str]]:
        """The values of rows as they are shown."""
        limit = self.style.max_cell
        shown = texts(rows, null=self.style.null)
        return [[self.shortened(visible(value), limit) for value in row] for row in shown]

    def shortened(self, value: str, limit: int) -> str:
        """A text cut to so many cells, 0 for no limit."""
        short = value if len(value) * 2 <= limit else cut(value, limit)
        self.cut = self.cut or short != value
        return short

    def least_widths(self) -> list[int]:
        """The widths of columns without values."""
        return [cells(name) + self.blanks for name in self.names]

    def measure(self, body: list[list[str]]) -> None:
        """Widen the columns for values."""
        for at, column in enumerate(zip(*body, strict=True)):
            self.widths[at] = max(self.widths[at], max(map(cells, column), default=0))

    def block(self, rows: Sequence[Values]) -> list[str]:
        """The lines of the next rows, after a header if it is to be drawn."""
        body = self.texts(rows)
        before = list(self.widths)
        self.measure(body)
        if self.outline is None and body:
            longest = [max(map(cells, column)) for column in zip(*body, strict=True)]
            self.widths = [
                max(width, length + self.more_digits) if right else width
                for width, length, right in zip(self.widths, longest, self.right, strict=True)
            ]
        header = list[str]()
        if self.outline is None or self.widths != before:
            self.outline = self.outlined()
            header = self.outline.header
        line = self.outline.line
        return header + [line(row, values) for row, values in zip(body, rows, strict=True)]

    @property
    def width(self) -> int:
        """The width of a line in cells."""
        return sum(w + 3 for w in self.widths) + 1

    def outlined(self) -> Outline:
        """The outlines with the widths up to now."""
        return Outline(self.names, list(self.widths), self.right, self.style)

    def end(self) -> str:
        """The last line."""
        return (self.outline or self.outlined()).end


def table(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    """The lines of a table. Rows that are an iterator are read once; they wait in a temporary file until all
    columns are measured.
    """
    if not isinstance(rows.rows, Iterator):
        yield from draw(rows, style).lines
        return
    table = TableBlocks(rows.columns, rows.numeric, style)
    with tempfile.TemporaryFile() as file:
        for block in blocks(rows.rows):
            body = table.texts(block)
            table.measure(body)
            pickle.dump((body, [[value is None for value in row] for row in block]), file)
        end = file.tell()
        file.seek(0)
        outline = table.outlined()
        yield from outline.header
        while file.tell() < end:
            body, nulls = pickle.load(file)
            for row, none in zip(body, nulls, strict=True):
                yield outline.line(row, [None if n else "" for n in none])
    yield outline.end


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
