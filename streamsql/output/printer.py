"""Prints results: data on one stream, messages on the other."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TextIO

from streamsql.config.preferences import PREFIX, Preferences
from streamsql.errors import Note, cells
from streamsql.output.colors import is_terminal, unpainted
from streamsql.output.control_characters import harmless
from streamsql.output.copy_file import copy_to_file
from streamsql.output.cursor_places import placed
from streamsql.output.fitting import cut_note, listed, renamed_columns
from streamsql.output.formats import FORMATS, RAW, Style, draw
from streamsql.output.glance import at_a_glance, is_properties, prose, readable
from streamsql.output.line_breaks import wrap
from streamsql.output.messages import Messages
from streamsql.output.pager import page, pager_command
from streamsql.output.row_streams import in_blocks, print_stream
from streamsql.output.terminal import Terminal
from streamsql.output.window import window
from streamsql.results import (
    Copied,
    Done,
    Live,
    Preview,
    Result,
    Rows,
    RowStream,
    Snapshot,
    Started,
    Text,
    Why,
    counted,
    unique_names,
)

CHANGES_AT_ONCE = 1_000

PAGE = 120
"""The width of a page of HELP without a window, and its largest one."""
FOOTER = 2
"""The lines of a window that are reserved for the footer and the next prompt."""


class Printer(Messages):
    """preferences: read for each result, so that a SET applies at once; or only a format. out: for data;
    words: for messages, notes and errors.

    quiet: omit the messages of statements without rows (the output of a script may be read by a program),
    but not notes and errors. width, height: the size of the window, 0 for none: with a window, results are
    fitted to it or shown in the pager; without one they are written in full.
    """

    def __init__(
        self,
        preferences: Preferences | str,
        out: TextIO,
        words: TextIO,
        *,
        quiet: bool = False,
        width: Callable[[], int] = lambda: 0,
        height: Callable[[], int] = lambda: 0,
    ) -> None:
        if isinstance(preferences, str):
            preferences = Preferences(format=preferences)
        super().__init__(preferences, Terminal(out, words), quiet=quiet, width=width)
        self.height = height
        self.file: TextIO | None = None
        """Where data goes instead of the terminal."""
        self.file_format = ""
        """The format of that file, where its name says it."""
        self.present: Callable[[Live], None] = self._follow
        self.last: Rows | Text | None = None
        self.expanded = False
        """Whether tables are vertical for now, as with \\gx."""
        self.paging = threading.Event()
        """Set while a pager runs: Ctrl-C is for the pager then."""
        self.fetching = threading.Event()
        """Set while a pager waits for rows: Ctrl-C is for the statement, too."""

    @classmethod
    def beside(cls, messages: Messages, height: Callable[[], int] = lambda: 0) -> Printer:
        """A printer that shares the terminal, preferences and width of messages."""
        printer = cls(
            messages.preferences,
            messages.out,
            messages.words,
            quiet=messages.quiet,
            width=messages.width,
            height=height,
        )
        printer.terminal = messages.terminal
        return printer

    @property
    def out(self) -> TextIO:
        """The current stream for data."""
        return self.file or self.terminal.out

    def show(
        self, result: Result, *, background: bool = False, check: Callable[[], None] = lambda: None
    ) -> None:
        """Show a result, its footer and notes. background: it does not belong to a statement, such as a
        batch of a console sink: it is neither paged nor kept as the last result. check: raises Cancelled
        when nothing more is to be printed. Raises what the rest of a RowStream raises.
        """
        if isinstance(result, Live):
            with self.terminal.held():
                self._notes(result.notes)
            self.present(result)
            return
        with self.terminal.held():
            self._show(result, background, check)

    def _show(self, result: Result, background: bool, check: Callable[[], None]) -> None:
        notes = list(result.notes)
        if isinstance(result, (Rows, RowStream)):
            columns, renamed = renamed_columns(result)
            result, notes = replace(result, columns=columns), renamed + notes
        if isinstance(result, (Rows, Text)) and not background:
            self.last = result
        if isinstance(result, Why):
            result = self._verdict(result)
        if isinstance(result, Rows) and result.nothing and not result.rows and self._tabular():
            self.say(result.nothing)
        elif isinstance(result, Rows):
            shown, hidden, more = self._rows(result, paging=not background)
            if not (isinstance(result, Why) or (is_properties(result) and self._tabular())):
                self.say(self.footer(result, shown, hidden))
            notes = more + notes
            if isinstance(result, (Preview, Why)) and result.proposal:
                self._notes(notes)
                self._word(result.proposal, sql=True)
                notes = self.offer(result.proposal)
        elif isinstance(result, Copied):
            self.say(copy_to_file(result, check))
        elif isinstance(result, RowStream):
            notes = print_stream(self, result, check) + notes
        elif isinstance(result, Text) and result.text:
            self._text(result, paging=not background)
        elif isinstance(result, (Done, Started)) and result.message:
            self.say(result.message)
        self._notes(notes)

    def _verdict(self, why: Why) -> Why:
        """Write the verdict of WHY before its facts; a format for programs has all of it as rows."""
        if self.format() == "table":
            self.write(wrap(harmless(why.verdict), self.width() or 10_000))
            return why
        more = [("try", why.proposal)] if why.proposal else []
        return replace(why, rows=[("verdict", why.verdict), ("code", why.code), *why.rows, *more])

    def _follow(self, live: Live) -> None:
        """Print a result that refreshes when there is no terminal: a block for each refresh with changes,
        until its query has ended. With CHANGES, only the new changes.
        """
        seen, written = 0, 0
        while True:
            over = live.status().over
            if live.mode == "changes":
                snapshot = live.changes(CHANGES_AT_ONCE, 0, None)
                new = snapshot.total + snapshot.dropped - written
                start = max(0, len(snapshot.rows) - new)
                snapshot = replace(snapshot, rows=snapshot.rows[start:], batches=snapshot.batches[start:])
                written += new
            else:
                # The table is converted to values only if it has changed.
                snapshot = live.take(0, 0, None)
                if snapshot.version != seen:
                    snapshot = live.take(sys.maxsize, 0, None)
            if snapshot.version != seen and (snapshot.rows or live.mode != "changes"):
                self._block(live, snapshot)
            seen = snapshot.version
            if over:
                break
            time.sleep(live.every or 0.05)
        live.close()
        fault = live.fault()
        if fault is not None:
            raise fault

    def show_final(self, live: Live) -> None:
        """Write the rows, or the changes, that a result which refreshes has now."""
        snapshot = (live.changes if live.mode == "changes" else live.take)(sys.maxsize, 0, None)
        columns = unique_names(snapshot.columns)
        self.show(Rows((), columns, snapshot.rows, snapshot.numeric), background=True)

    def _block(self, live: Live, snapshot: Snapshot) -> None:
        if live.mode == "chart":
            from streamsql.output.frames import chart_lines

            lines = chart_lines(live, snapshot, self.width() or 80, 20)
        else:
            lines = self.lines(self._rows_of(snapshot))
        what = "change" if snapshot.changes else "row"
        with self.terminal.held():
            self.write(lines)
            self.say(f"({counted(len(snapshot.rows), what)}, batch {snapshot.batch})")

    def _rows_of(self, snapshot: Snapshot) -> Rows:
        """The rows of a block; as JSON, each with its micro-batch."""
        rows = Rows((), unique_names(snapshot.columns), snapshot.rows, snapshot.numeric)
        if self.format() != "jsonl" or "batch_id" in rows.columns:
            return rows
        batches = snapshot.batches or [snapshot.batch] * len(rows.rows)
        return replace(
            rows,
            columns=("batch_id", *rows.columns),
            rows=[(batch, *row) for batch, row in zip(batches, rows.rows, strict=True)],
            numeric=(True, *rows.numeric),
        )

    def _tabular(self) -> bool:
        """Whether a table is shown in a window."""
        return bool(self.width()) and self.format() == "table"

    def show_last(self) -> None:
        """Show the last rows or text again in full: no value is cut and no column omitted."""
        with self.terminal.held():
            self._show_last()

    def _show_last(self) -> None:
        if self.last is None:
            self.say("there is no result yet")
            return
        if isinstance(self.last, Text):
            self._text(self.last)
        else:
            lines = list(self.formatted(self.format(), self.last, replace(self.style(), max_cell=0)))
            if not self._page(lines):
                self.write(lines)
            self.say(self.footer(self.last, len(self.last.rows)))

    def lines(self, rows: Rows) -> list[str]:
        """The lines of rows as they are printed without a pager, fitted to the window if there is one."""
        return self.fitted(rows)[0]

    def lines_as_they_are(self, lines: Iterable[str]) -> None:
        """Write lines that are formatted for this terminal already, such as the last frame of a live view."""
        with self.terminal.held():
            self.write(list(lines))

    # ---- how ------------------------------------------------------------------------------

    def style(self, glance: bool = False) -> Style:
        """The style of rows. Values are cut only in a window, and never in a result that is fitted to it."""
        max_cell = self.preferences.count("max_cell") if self.width() and not glance else 0
        return Style(self.preferences["null"], self._color(self.out), max_cell)

    def format(self) -> str:
        """The output format; a table becomes vertical with expanded = on."""
        format = self.file_format or self.preferences["format"]
        expanded = self.expanded or self.preferences["expanded"] == "on"
        return "vertical" if format == "table" and expanded else format

    def room(self) -> int:
        """The width of the window that rows are written to, also by a script; 0 for a file or pipe."""
        return self.width() or (window().columns if is_terminal(self.out) else 0)

    def format_that_fits(self, rows: Rows) -> str:
        """The output format of a script: at a terminal a table that is wider than it becomes vertical, as
        with `\\x auto` of psql.
        """
        format, room = self.format(), self.room()
        wide = bool(rows.rows) and format == "table" and 0 < room < draw(rows, self.style()).width
        return "vertical" if wide else format

    def footer(self, rows: Rows, shown: int, hidden: int = 0) -> str:
        """shown: the number of rows that were written; hidden: that of columns without room."""
        count = len(rows.rows)
        seconds = rows.seconds if self.preferences["timing"] == "on" else None
        took = f", {seconds:.2f} s" if seconds is not None else ""
        part = f"{shown:,} of " if shown < count else ""
        less = f", no room for {counted(hidden, 'column')}" if hidden else ""
        return f"({part}{counted(count, 'row')}{less}{took})"

    # ---- rows -----------------------------------------------------------------------------

    def _rows(self, rows: Rows, *, paging: bool) -> tuple[int, int, list[Note]]:
        """Write rows. Returns the number of rows written, that of columns without room, and notes."""
        if rows.glance and self.format() == "table" and (self.width() or (rows.rows and self.room())):
            return self._glance(rows, paging=paging)
        if rows.glance and self.width() and self.format() == "vertical":
            rows = readable(rows)
        if not self.width():
            self.write(self.formatted(self.format_that_fits(rows), rows, self.style()))
            return len(rows.rows), 0, []
        if paging and self.pager():
            lines, notes = self._whole(rows)
            if self._page(lines):
                return len(rows.rows), 0, notes
        lines, shown, notes = self.fitted(rows)
        self.write(lines)
        return shown, 0, notes

    def _glance(self, rows: Rows, *, paging: bool) -> tuple[int, int, list[Note]]:
        """Write a table about the console, fitted to the window; one that is higher is paged. See _rows."""
        style = self.style(glance=True)
        shown = at_a_glance(rows, self.room(), style)
        lines, hidden, notes = shown.lines, len(shown.left_out), list(shown.notes)
        if shown.left_out and (self.preferences["expanded"] == "auto" or not self.width()):
            lines, hidden, notes = list(self.formatted("vertical", rows, style)), 0, []
        tall = bool(self.width()) and len(lines) > self.height() - FOOTER
        if not (paging and tall and self.pager() and self._page(lines)):
            self.write(lines)
        return len(rows.rows), hidden, notes

    def _whole(self, rows: Rows) -> tuple[list[str], list[Note]]:
        """(lines, notes) of all rows and columns, for a pager."""
        format, style = self.format(), self.style(rows.glance)
        if format != "table":
            return list(self.formatted(format, rows, style)), []
        drawn = draw(rows, style)
        if drawn.width > self.width() and self.preferences["expanded"] == "auto" and rows.rows:
            return list(self.formatted("vertical", rows, style)), []
        return drawn.lines, [cut_note(style.max_cell)] if drawn.cut else []

    def fitted(self, rows: Rows) -> tuple[list[str], int, list[Note]]:
        """(lines, number of rows, notes) of the rows that fit the window."""
        limit = self.preferences.count("max_rows") if self.width() else 0
        part = replace(rows, rows=rows.rows[:limit]) if limit else rows
        format, style = self.format(), self.style(rows.glance)
        notes: list[Note] = []
        if len(part.rows) < len(rows.rows):
            notes.append(Note("NOT_ALL_SHOWN", f"SET {PREFIX}max_rows = 0; shows all rows"))
        if format != "table":
            return list(self.formatted(format, part, style)), len(part.rows), notes
        drawn = draw(part, replace(style, width=self.width()))
        if drawn.left_out and self.preferences["expanded"] == "auto" and part.rows:
            return list(self.formatted("vertical", part, style)), len(part.rows), notes
        if drawn.left_out:
            text = (
                f"{drawn.left_out} of {len(rows.columns)} columns do not fit (…): {listed(drawn.hidden)}; "
                f"\\last shows all of them, SET {PREFIX}expanded = auto; row by row"
            )
            notes.append(Note("NOT_ALL_SHOWN", text))
        if drawn.cut:
            notes.append(cut_note(style.max_cell))
        return drawn.lines, len(part.rows), notes

    def formatted(self, format: str, rows: Rows, style: Style) -> Iterator[str]:
        """The lines of rows in a format, with control characters escaped for a terminal."""
        lines = FORMATS[format](rows, style)
        return map(harmless, lines) if format in RAW and is_terminal(self.out) else lines

    def _text(self, text: Text, *, paging: bool = True) -> None:
        shown = harmless(text.text)
        lines = list(prose(shown, min(self.width() or PAGE, PAGE))) if text.prose else shown.split("\n")
        if text.outline and self.width():
            lines = [part for line in lines for part in wrap(line, self.width())]
        if not (paging and self._page(lines)):
            self.write(lines)

    def write(self, lines: Iterator[str] | list[str]) -> None:
        if is_terminal(self.out):
            lines = placed(lines, self.room())
        for text in in_blocks(lines):
            self.out.write(text)
        self.out.flush()

    # ---- pager ----------------------------------------------------------------------------

    def pager(self) -> str:
        """The pager's command; empty if there is none, or no terminal."""
        if not self.width() or not is_terminal(self.out):
            return ""
        return pager_command(self.preferences["pager"], os.environ)

    def _page(self, lines: list[str]) -> bool:
        """Show lines in the pager if they do not fit the window. Returns False if they did not need it, or
        it could not start.
        """
        command = self.pager()
        if not command or not self._too_large(lines):
            return False
        self.out.flush()
        self.paging.set()
        try:
            shown = page("".join(f"{line}\n" for line in lines), command)
        finally:
            self.paging.clear()
        if not shown:
            self._notes([Note("PAGER_NOT_STARTED", f"the pager could not start: {command}")])
        return shown

    def _too_large(self, lines: list[str]) -> bool:
        """Whether lines do not fit the window. Lines of text wrap, so only tables can be too wide."""
        width, room = self.width(), self.height() - FOOTER
        if self.format() == "table" and lines and lines[0].startswith("+-"):
            return len(lines) > room or len(lines[0]) > width
        if len(lines) > room:
            return True
        inner = (part for line in lines for part in unpainted(line).split("\n"))
        return sum(max(1, -(-cells(part) // width)) for part in inner) > room
