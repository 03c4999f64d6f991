"""Prints results: data on one stream, messages on the other."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TextIO

from streamsql.config.preferences import Preferences
from streamsql.errors import Cancelled, Note, cells
from streamsql.output.colors import is_terminal, unpainted
from streamsql.output.console_messages import Messages
from streamsql.output.control_characters import harmless
from streamsql.output.copy_file import copy_to_file
from streamsql.output.cursor_places import placed
from streamsql.output.document import Document, Style, renamed_columns
from streamsql.output.layout import Layout, RowReader, in_blocks
from streamsql.output.line_breaks import wrap
from streamsql.output.pager import page, pager_command
from streamsql.output.terminal import Terminal, window
from streamsql.results import (
    Copied,
    Done,
    InfoRows,
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
        if isinstance(result, InfoRows) and result.nothing and not result.rows and self.layout().is_window:
            self.say(result.nothing)
        elif isinstance(result, (Rows, RowStream)):
            notes = self._rows(result, check, paging=not background) + notes
            if isinstance(result, (Preview, Why)) and result.proposal:
                self._notes(notes)
                self._word(result.proposal, sql=True)
                notes = self.offer(result.proposal)
        elif isinstance(result, Copied):
            self.say(copy_to_file(result, check))
        elif isinstance(result, Text) and result.text:
            lines = self.layout().text(result)
            if background or not self._page(lines):
                self.write(lines)
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
            from streamsql.output.live_frames import chart_lines

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

    def show_last(self) -> None:
        """Show the last rows or text again in full: no value is cut and no column omitted."""
        with self.terminal.held():
            self._show_last()

    def _show_last(self) -> None:
        if self.last is None:
            self.say("there is no result yet")
            return
        if isinstance(self.last, Text):
            lines = self.layout().text(self.last)
        else:
            layout = self.layout()
            lines = list(replace(layout, style=replace(layout.style, max_cell=0)).formatted(self.last))
        if not self._page(lines):
            self.write(lines)
        if isinstance(self.last, Rows):
            reader = RowReader(self.last, self.fetching, lambda: None)
            reader.all()
            self.say(reader.footer(timing=self.layout().timing))

    def lines(self, rows: Rows) -> list[str]:
        """The lines of rows as they are printed without a pager, fitted to the window if there is one."""
        return list(self.layout().document(RowReader(rows, self.fetching, lambda: None)).lines)

    # ---- how ------------------------------------------------------------------------------

    def layout(self, result: Result | None = None) -> Layout:
        """The layout of a result. Values are cut only in a window, and never in a result that is fitted to
        it; rows are limited in a window only.
        """
        chosen, width = self.preferences, self.width()
        cut = width and not isinstance(result, InfoRows)
        return Layout(
            self.format(),
            Style(chosen["null"], self._color(self.out), chosen.count("max_cell") if cut else 0),
            width,
            self.room(),
            chosen.count("max_rows") if width else 0,
            chosen["expanded"] == "auto",
            is_terminal(self.out),
            chosen["timing"] == "on",
        )

    def format(self) -> str:
        """The output format; a table becomes vertical with expanded = on."""
        format = self.file_format or self.preferences["format"]
        expanded = self.expanded or self.preferences["expanded"] == "on"
        return "vertical" if format == "table" and expanded else format

    def room(self) -> int:
        """The width of the window that rows are written to, also by a script; 0 for a file or pipe."""
        return self.width() or (window().columns if is_terminal(self.out) else 0)

    # ---- rows -----------------------------------------------------------------------------

    def _rows(self, result: Rows | RowStream, check: Callable[[], None], *, paging: bool) -> list[Note]:
        """Write rows and their footer; returns notes. Raises what the rest of a stream raises."""
        reader, layout = RowReader(result, self.fetching, check), self.layout(result)
        paged = paging and bool(self.pager())
        if isinstance(result, RowStream):
            self.last = Rows((), result.columns, result.first, result.numeric, result.seconds)
        began = time.monotonic()
        try:
            document = self._paged(reader, layout) if paged else None
            if document is None:
                document = layout.document(reader)
                self.write(document.lines)
            if isinstance(result, RowStream) and not paged:
                reader.seconds = result.seconds + time.monotonic() - began
        except Cancelled:
            if reader.cancelled and paged:
                self.say(reader.footer(timing=layout.timing))
            raise
        finally:
            if isinstance(result, RowStream):
                result.close()
        if footer := document.footer():
            self.say(footer)
        return document.notes

    def _paged(self, reader: RowReader, layout: Layout) -> Document | None:
        """Show rows in the pager: a stream, or what does not fit the window. Returns the document that was
        shown; None if it did not need the pager, or that could not start.
        """
        if isinstance(reader.result, InfoRows) and layout.format == "table":
            document = layout.document(reader)
            lines = list(document.lines)
            return document if len(lines) > self.height() - FOOTER and self._page(lines) else None
        document = layout.for_pager(reader)
        if isinstance(reader.result, RowStream):
            return document if self._with_pager(document.lines) else None
        return document if self._page(list(document.lines)) else None

    def write(self, lines: Iterable[str]) -> None:
        """Write lines that are formatted for this terminal already, such as the last frame of a live view."""
        with self.terminal.held():
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
        return bool(self.pager()) and self._too_large(lines) and self._with_pager(lines)

    def _with_pager(self, lines: Iterable[str]) -> bool:
        """Show lines in the pager; whether it could start."""
        command = self.pager()
        self.out.flush()
        self.paging.set()
        try:
            shown = page(in_blocks(lines), command)
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
