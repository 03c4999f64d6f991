"""Prints a table of many rows while it is fetched: to a file, the pager, or a window without a pager."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Protocol, TextIO, cast

from streamsql.config.preferences import PREFIX, Preferences
from streamsql.errors import Cancelled, Note
from streamsql.output.fitting import cut_note
from streamsql.output.formats import BLOCK, Style, blocks
from streamsql.output.pager import page_lines
from streamsql.output.table_blocks import TableBlocks, table_of_stream
from streamsql.results import Rows, RowStream, Text, counted

Values = tuple[Any, ...]


class Printer(Protocol):
    """What this module needs of a printer."""

    preferences: Preferences
    paging: threading.Event
    fetching: threading.Event
    width: Callable[[], int]
    last: Rows | Text | None

    @property
    def out(self) -> TextIO: ...
    def pager(self) -> str: ...
    def format(self) -> str: ...
    def format_that_fits(self, rows: Rows) -> str: ...
    def style(self) -> Style: ...
    def say(self, message: str) -> None: ...
    def write(self, lines: Iterator[str] | list[str]) -> None: ...
    def fitted(self, rows: Rows) -> tuple[list[str], int, list[Note]]: ...
    def formatted(self, format: str, rows: Rows, style: Style) -> Iterator[str]: ...


class _Reader:
    """Reads a stream of rows block by block. count: the rows so far; over: whether these are all; seconds:
    spent on fetching, and on writing unless a pager shows the rows.
    """

    def __init__(self, printer: Printer, stream: RowStream, check: Callable[[], None]) -> None:
        self.printer = printer
        self.stream = stream
        self.check = check
        self.count = 0
        self.over = False
        self.cancelled = False
        self.seconds = stream.seconds

    def blocks(self) -> Iterator[Sequence[Values]]:
        """All rows. Raises Cancelled, and what the query raises."""
        first = self.stream.first
        for start in range(0, len(first), BLOCK):
            self.count += len(first[start : start + BLOCK])
            yield first[start : start + BLOCK]
        while True:
            self.check()
            block = self._next()
            if block is None:
                self.over = True
                return
            self.count += len(block)
            yield block

    def _next(self) -> Sequence[Values] | None:
        began = time.monotonic()
        self.printer.fetching.set()
        try:
            return next(self.stream.rest, None)
        except Cancelled:
            self.cancelled = True
            raise
        finally:
            self.printer.fetching.clear()
            self.seconds += time.monotonic() - began

    def rows(self) -> Iterator[Values]:
        for block in self.blocks():
            yield from block

    def footer(self) -> str:
        """How many rows there are, as far as that is known."""
        took = f", {self.seconds:.2f} s" if self.printer.preferences["timing"] == "on" else ""
        if self.over:
            return f"({counted(self.count, 'row')}{took})"
        rest = "cancelled" if self.cancelled else "the others were not fetched"
        return f"(first {counted(self.count, 'row')}{took}; {rest})"


def print_stream(printer: Printer, stream: RowStream, check: Callable[[], None]) -> list[Note]:
    """Write the rows of a stream and the footer; returns notes. check: raises Cancelled. Raises what the
    query raises.
    """
    printer.last = Rows((), stream.columns, stream.first, stream.numeric, stream.seconds)
    reader = _Reader(printer, stream, check)
    notes: list[Note] = []
    began = time.monotonic()
    try:
        if printer.width() and printer.pager():
            notes = _page(reader)
        else:
            if printer.width():
                notes = _to_window(reader)
            else:
                printer.write(_for_file(reader))
            reader.seconds = stream.seconds + time.monotonic() - began
    except Cancelled:
        if reader.cancelled and printer.pager():
            printer.say(reader.footer())
        raise
    finally:
        stream.close()
    printer.say(reader.footer())
    return notes


def _for_file(reader: _Reader) -> Iterator[str]:
    printer, stream = reader.printer, reader.stream
    format = printer.format_that_fits(Rows((), stream.columns, stream.first[:BLOCK], stream.numeric))
    if format == "table":
        return table_of_stream(stream.columns, stream.numeric, reader.blocks(), printer.style())
    return printer.formatted(format, _read_once(reader), printer.style())


def _read_once(reader: _Reader) -> Rows:
    """Rows for a format that reads them once, in their order."""
    rows = cast(Sequence[Values], reader.rows())
    return Rows((), reader.stream.columns, rows, reader.stream.numeric)


def _page(reader: _Reader) -> list[Note]:
    """Show the rows in the pager, which gets them as it reads."""
    printer = reader.printer
    notes: list[Note] = []
    printer.out.flush()
    printer.paging.set()
    try:
        started = page_lines(in_blocks(_for_pager(reader, notes)), printer.pager())
    finally:
        printer.paging.clear()
    if not started:
        notes.append(Note("PAGER_NOT_STARTED", f"the pager could not start: {printer.pager()}"))
        notes += _to_window(reader)
    return notes


def in_blocks(lines: Iterable[str]) -> Iterator[str]:
    """Lines with their ends, many at a time."""
    return ("\n".join(block) + "\n" for block in blocks(lines))


def _for_pager(reader: _Reader, notes: list[Note]) -> Iterator[str]:
    printer, stream = reader.printer, reader.stream
    format, style = printer.format(), printer.style()
    if format != "table":
        yield from printer.formatted(format, _read_once(reader), style)
        return
    table = TableBlocks(stream.columns, stream.numeric, style)
    unread = reader.blocks()
    lines = table.block(next(unread, ()))
    if table.width > printer.width() and printer.preferences["expanded"] == "auto":
        rows = cast(Sequence[Values], chain(stream.first[:BLOCK], chain.from_iterable(unread)))
        yield from printer.formatted("vertical", Rows((), stream.columns, rows, stream.numeric), style)
        return
    yield from lines
    for block in unread:
        yield from table.block(block)
    yield table.end()
    if table.cut:
        notes.append(cut_note(style.max_cell))


def _to_window(reader: _Reader) -> list[Note]:
    """Write as many rows as the preferences allow, in tables of a block each."""
    printer, stream = reader.printer, reader.stream
    limit = printer.preferences.count("max_rows")
    notes: list[Note] = []
    shown = 0
    for block in reader.blocks():
        part = list(block[: limit - shown] if limit else block)
        shown += len(part)
        lines, _, more = printer.fitted(Rows((), stream.columns, part, stream.numeric))
        printer.write(lines)
        notes += [note for note in more if note not in notes]
        if limit and shown >= limit:
            break
    if limit:
        reader.count = shown
        notes.insert(0, Note("NOT_ALL_SHOWN", f"SET {PREFIX}max_rows = 0; shows all rows"))
    return notes
