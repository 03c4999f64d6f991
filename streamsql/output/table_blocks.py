"""Draws a table of rows that come block by block, without holding all of them."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from streamsql.errors import cells
from streamsql.output.cells import cut, texts
from streamsql.output.colors import BOLD, DIM, paint
from streamsql.output.control_characters import visible
from streamsql.output.formats import Style

MORE_DIGITS = 3
"""Numbers of later rows may be longer than those of the first, by so many digits."""

Values = Sequence[Any]


class TableBlocks:
    """An outlined table. The first rows decide how wide its columns are; where a later value is wider, the
    header is drawn again with the new widths.
    """

    def __init__(
        self, columns: tuple[str, ...], numeric: tuple[bool, ...], style: Style, *, final: bool = False
    ) -> None:
        self.style = style
        self.right = numeric or (False,) * len(columns)
        self.names = [cut(visible(c), style.max_cell) for c in columns]
        self.widths = [0 if final else cells(name) + 2 for name in self.names]
        self.cut = False
        self._begun = False
        self._final = final

    def texts(self, rows: Iterable[Values]) -> list[list[str]]:
        """The values of rows as they are shown."""
        null, limit = self.style.null, self.style.max_cell
        shown = [[visible(value) for value in row] for row in texts(rows, null=null)]
        if not limit:
            return shown
        short = [[value if len(value) * 2 <= limit else cut(value, limit) for value in row] for row in shown]
        self.cut = self.cut or short != shown
        return short

    def measure(self, body: list[list[str]]) -> bool:
        """Widen the columns for values; whether one had to be."""
        before = list(self.widths)
        for at, column in enumerate(zip(*body, strict=True)):
            self.widths[at] = max(self.widths[at], max(map(cells, column), default=0))
        return self.widths != before

    def block(self, rows: Sequence[Values]) -> list[str]:
        """The lines of the next rows, after a header if it is to be drawn."""
        body = self.texts(rows)
        wider = self.measure(body)
        if not self._begun and not self._final and body:
            longest = [max(map(cells, column)) for column in zip(*body, strict=True)]
            self.widths = [
                max(width, length + MORE_DIGITS) if right else width
                for width, length, right in zip(self.widths, longest, self.right, strict=True)
            ]
        lines = self.header() if wider or not self._begun else []
        self._begun = True
        return lines + [self._line(row, values) for row, values in zip(body, rows, strict=True)]

    @property
    def width(self) -> int:
        """The width of a line in cells."""
        return sum(w + 3 for w in self.widths) + 1

    def header(self) -> list[str]:
        names = [paint(name, BOLD) if self.style.color else name for name in self.names]
        padded = [
            _pad(name, width - cells(plain), right)
            for name, plain, width, right in zip(names, self.names, self.widths, self.right, strict=True)
        ]
        rule = "+".join("-" * (width + 2) for width in self.widths)
        return [f"+{rule}+", f"| {' | '.join(padded)} |", f"|{rule}|"]

    def end(self) -> str:
        """The last line."""
        return "+" + "+".join("-" * (width + 2) for width in self.widths) + "+"

    def _line(self, row: list[str], values: Values) -> str:
        shown = []
        for value, raw, width, right in zip(row, values, self.widths, self.right, strict=True):
            blanks = width - cells(value)
            dim = self.style.color and raw is None
            shown.append(_pad(paint(value, DIM) if dim else value, blanks, right))
        return f"| {' | '.join(shown)} |"


def _pad(value: str, blanks: int, right: bool) -> str:
    return " " * blanks + value if right else value + " " * blanks


def table_of_stream(
    columns: tuple[str, ...], numeric: tuple[bool, ...], blocks: Iterable[Sequence[Values]], style: Style
) -> Iterator[str]:
    """The lines of a table for a file, where all columns are as wide as their widest value. The values wait
    in a temporary file until all are measured.
    """
    table = TableBlocks(columns, numeric, style, final=True)
    table.widths = [cells(name) + 2 for name in table.names]
    with tempfile.TemporaryFile() as file:
        for block in blocks:
            body = table.texts(block)
            table.measure(body)
            pickle.dump((body, [[value is None for value in row] for row in block]), file)
        end = file.tell()
        file.seek(0)
        yield from table.header()
        while file.tell() < end:
            body, nulls = pickle.load(file)
            for row, none in zip(body, nulls, strict=True):
                yield table._line(row, [None if n else "" for n in none])
    yield table.end()
