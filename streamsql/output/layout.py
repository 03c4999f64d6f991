"""Results as lines, footer and notes for one place: a window, the pager, a file or a pipe."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

from streamsql.config.preferences import PREFIX
from streamsql.errors import Cancelled, Note
from streamsql.output.control_characters import harmless
from streamsql.output.document import Document, Style
from streamsql.output.drawn_tables import BLOCK, MORE_DIGITS, TableBlocks, blocks, draw
from streamsql.output.info_tables import info_document, is_properties, prose, readable
from streamsql.output.line_breaks import wrap
from streamsql.output.row_formats import FORMATS, RAW
from streamsql.results import InfoRows, Rows, RowStream, Text, Why, counted

Values = tuple[Any, ...]
PAGE = 120
"""The width of a page of HELP without a window, and its largest one."""
NAMED = 8
"""The largest number of columns that a note names."""


class RowReader:
    """Reads the rows of a result, a stream block by block. fetching: set while it waits for rows; check:
    raises Cancelled; count: the rows so far; over: whether these are all; seconds: spent on fetching them.
    """

    def __init__(
        self, result: Rows | RowStream, fetching: threading.Event, check: Callable[[], None]
    ) -> None:
        self.result = result
        self.fetching = fetching
        self.check = check
        self.count = 0
        self.over = self.cancelled = False
        self.seconds = result.seconds

    @property
    def first(self) -> Rows:
        """The rows of the first block; of a result in memory all."""
        result = self.result
        return self.of(result.rows if isinstance(result, Rows) else result.first[:BLOCK])

    def all(self) -> Rows:
        """All rows; those of a stream as an iterator."""
        if isinstance(self.result, Rows):
            self.count, self.over = len(self.result.rows), True
            return self.result
        return self.of(chain.from_iterable(self.blocks()))

    def of(self, rows: Iterable[Values]) -> Rows:
        """Some of the rows, as a table."""
        return Rows((), self.result.columns, cast(Sequence[Values], rows), self.result.numeric)

    def blocks(self) -> Iterator[Sequence[Values]]:
        """All rows. Raises Cancelled, and what the query raises."""
        if isinstance(self.result, Rows):
            yield self.all().rows
            return
        first = self.result.first
        for start in range(0, len(first), BLOCK):
            self.count += len(first[start : start + BLOCK])
            yield first[start : start + BLOCK]
        while True:
            self.check()
            block = self._next(self.result.rest)
            if block is None:
                self.over = True
                return
            self.count += len(block)
            yield block

    def _next(self, rest: Iterator[list[Values]]) -> Sequence[Values] | None:
        began = time.monotonic()
        self.fetching.set()
        try:
            return next(rest, None)
        except Cancelled:
            self.cancelled = True
            raise
        finally:
            self.fetching.clear()
            self.seconds = (self.seconds or 0.0) + time.monotonic() - began

    def footer(self, *, timing: bool, hidden: tuple[str, ...] = ()) -> str:
        """How many rows were shown, as far as that is known. hidden: the columns that have no room."""
        took = f", {self.seconds:.2f} s" if timing and self.seconds is not None else ""
        if isinstance(self.result, Rows):
            count = len(self.result.rows)
            part = f"{self.count:,} of " if self.count < count else ""
            less = f", no room for {counted(len(hidden), 'column')}" if hidden else ""
            return f"({part}{counted(count, 'row')}{less}{took})"
        if self.over:
            return f"({counted(self.count, 'row')}{took})"
        rest = "cancelled" if self.cancelled else "the others were not fetched"
        return f"(first {counted(self.count, 'row')}{took}; {rest})"


@dataclass(frozen=True)
class Layout:
    """How rows are laid out at a place. width: of the window, 0 without one; room: of the terminal, also of a
    script, 0 for a file or pipe; max_rows: the limit without a pager, 0 for none; auto: whether a table
    without room becomes vertical; terminal: whether control characters are escaped; timing: whether footers
    tell how long a result took.
    """

    format: str
    style: Style
    width: int = 0
    room: int = 0
    max_rows: int = 0
    auto: bool = False
    terminal: bool = False
    timing: bool = False

    def formatted(self, rows: Rows, format: str = "") -> Iterator[str]:
        """The lines of all rows in a format."""
        format = format or self.format
        lines = FORMATS[format](rows, self.style)
        return map(harmless, lines) if format in RAW and self.terminal else lines

    def text(self, text: Text) -> list[str]:
        """The lines of a text."""
        shown = harmless(text.text)
        if text.prose:
            return list(prose(shown, min(self.width or PAGE, PAGE)))
        lines = shown.split("\n")
        if text.outline and self.width:
            return [part for line in lines for part in wrap(line, self.width)]
        return lines

    @property
    def is_window(self) -> bool:
        """Whether a table is shown in a window."""
        return bool(self.width) and self.format == "table"

    def document(self, reader: RowReader) -> Document:
        """The rows of a result, without a pager."""
        if isinstance(reader.result, InfoRows) and (info := self._info(reader, reader.result)):
            return info
        self._make_readable(reader)
        notes = list[Note]()
        lines = self._in_window(reader, notes) if self.width else self._for_file(reader)
        return self._with_footer(Document(lines, notes), reader)

    def for_pager(self, reader: RowReader) -> Document:
        """All rows and columns of a result, for the pager, which gets those of a stream as it reads."""
        self._make_readable(reader)
        notes = list[Note]()
        return self._with_footer(Document(self._for_pager(reader, notes), notes), reader)

    def _make_readable(self, reader: RowReader) -> None:
        """Let a table about the console that is shown row by row in a window be read as in a table."""
        if isinstance(reader.result, InfoRows) and self.width and self.format == "vertical":
            reader.result = readable(reader.result)

    def _with_footer(self, document: Document, reader: RowReader) -> Document:
        if not isinstance(reader.result, Why):
            document.footer = lambda: reader.footer(timing=self.timing, hidden=document.hidden)
        return document

    def _info(self, reader: RowReader, rows: InfoRows) -> Document | None:
        """A table about the console, fitted to the window; None where it is laid out as other rows are."""
        if self.format != "table" or not (self.width or (rows.rows and self.room)):
            return None
        document = info_document(rows, self.room, self.style)
        if document.hidden and (self.auto or not self.width):
            document = Document(list(self.formatted(rows, "vertical")))
        reader.all()
        return document if self.is_window and is_properties(rows) else self._with_footer(document, reader)

    def _for_file(self, reader: RowReader) -> Iterator[str]:
        """All rows; at the terminal of a script, a table that is wider than it becomes vertical, as with
        `\\x auto` of psql.
        """
        first = reader.first
        wide = bool(first.rows) and self.format == "table" and 0 < self.room < draw(first, self.style).width
        return self.formatted(reader.all(), "vertical" if wide else self.format)

    def _for_pager(self, reader: RowReader, notes: list[Note]) -> Iterator[str]:
        if self.format != "table":
            yield from self.formatted(reader.all())
            return
        result = reader.result
        more_digits = 0 if isinstance(result, Rows) else MORE_DIGITS
        table = TableBlocks(result.columns, result.numeric, self.style, more_digits)
        unread = reader.blocks()
        first = next(unread, ())
        lines = table.block(first)
        if table.width > self.width and self.auto and first:
            yield from self.formatted(reader.of(chain(first, chain.from_iterable(unread))), "vertical")
            return
        yield from lines
        for block in unread:
            yield from table.block(block)
        yield table.end()
        if table.cut:
            notes.append(self._cut())

    def _in_window(self, reader: RowReader, notes: list[Note]) -> Iterator[str]:
        """As many rows as the preferences allow, in tables of a block each, of the columns that fit."""
        shown = 0
        for block in reader.blocks():
            part = block[: self.max_rows - shown] if self.max_rows else block
            shown += len(part)
            fitted = self._fitted(reader.of(part))
            yield from fitted.lines
            notes += [note for note in fitted.notes if note not in notes]
            if self.max_rows and shown >= self.max_rows:
                break
        if self.max_rows and not (reader.over and shown == reader.count):
            notes.insert(0, Note("NOT_ALL_SHOWN", f"SET {PREFIX}max_rows = 0; shows all rows"))
        reader.count = shown

    def _fitted(self, rows: Rows) -> Document:
        """All rows, of a table the columns that fit the window."""
        if self.format != "table":
            return Document(self.formatted(rows))
        drawn = draw(rows, replace(self.style, width=self.width))
        if drawn.hidden and self.auto and rows.rows:
            return Document(self.formatted(rows, "vertical"))
        notes = list[Note]()
        if drawn.hidden:
            names, more = ", ".join(drawn.hidden[:NAMED]), len(drawn.hidden) - NAMED
            text = (
                f"{len(drawn.hidden)} of {len(rows.columns)} columns do not fit (…): "
                f"{names}{f' and {more} more' if more > 0 else ''}; "
                f"\\last shows all of them, SET {PREFIX}expanded = auto; row by row"
            )
            notes.append(Note("NOT_ALL_SHOWN", text))
        return Document(drawn.lines, [*notes, self._cut()] if drawn.cut else notes)

    def _cut(self) -> Note:
        """The note of a result whose long values are cut."""
        most = self.style.max_cell
        in_full = f"{most} cells are cut: SET {PREFIX}max_cell = 0; shows them in full"
        return Note("NOT_ALL_SHOWN", f"values longer than {in_full if most else 'the window are cut'}")


def in_blocks(lines: Iterable[str]) -> Iterator[str]:
    """Lines with their ends, many at a time."""
    return ("\n".join(block) + "\n" for block in blocks(lines))
