"""Prints results: data on one stream, messages on the other."""

from __future__ import annotations

import os
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TextIO

from streamsql.config.preferences import PREFIX, Preferences
from streamsql.errors import Note, StreamsqlError, cells
from streamsql.output.cells import harmless, visible, wrap
from streamsql.output.colors import is_terminal, paint_error, paint_labels, unpainted, wants_color
from streamsql.output.formats import FORMATS, RAW, Style, draw
from streamsql.output.pager import page, pager_command
from streamsql.output.terminal import Terminal
from streamsql.results import (
    Done,
    Live,
    Preview,
    Result,
    Rows,
    Snapshot,
    Started,
    Text,
    Why,
    unique_names,
)
from streamsql.secrets import redact_text

CHANGES_AT_ONCE = 1_000

FOOTER = 2
"""The lines of a window that are reserved for the footer and the next prompt."""


class Printer:
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
        self.preferences = Preferences(format=preferences) if isinstance(preferences, str) else preferences
        self.terminal = Terminal(out, words)
        self.quiet = quiet
        self.width = width
        self.height = height
        self.present: Callable[[Live], None] = self._follow
        self.offer: Callable[[str], list[Note]] = lambda statement: []
        """Called with a proposed statement; returns notes about how to run it."""
        self.last: Rows | Text | None = None
        self.last_error: StreamsqlError | None = None
        self.paging = threading.Event()
        """Set while a pager runs: Ctrl-C is for the pager then."""

    def show(self, result: Result, *, background: bool = False) -> None:
        """Show a result, its footer and notes. background: it does not belong to a statement, such as a
        batch of a console sink: it is neither paged nor kept as the last result.
        """
        if isinstance(result, Live):
            with self.terminal.held():
                self._notes(result.notes)
            self.present(result)
            return
        with self.terminal.held():
            self._show(result, background=background)

    def _show(self, result: Result, *, background: bool) -> None:
        notes = list(result.notes)
        if isinstance(result, Rows):
            result, renamed = _with_unique_names(result)
            notes = renamed + notes
        if isinstance(result, (Rows, Text)) and not background:
            self.last = result
        if isinstance(result, Why):
            result = self._verdict(result)
        if isinstance(result, Rows):
            shown, more = self._rows(result, paging=not background)
            if not isinstance(result, Why):
                self.say(self._footer(result, shown))
            notes = more + notes
            if isinstance(result, (Preview, Why)) and result.proposal:
                self._notes(notes)
                self._word(result.proposal)
                notes = self.offer(result.proposal)
        elif isinstance(result, Text) and result.text:
            self._text(result.text, paging=not background)
        elif isinstance(result, (Done, Started)) and result.message:
            self.say(result.message)
        self._notes(notes)

    def _verdict(self, why: Why) -> Why:
        """Write the verdict of WHY before its facts; a format for programs has all of it as rows."""
        if self._format() == "table":
            self._write(textwrap.wrap(harmless(why.verdict), self.width() or 10_000))
            return why
        more = [("try", why.proposal)] if why.proposal else []
        return replace(why, rows=[("verdict", why.verdict), ("code", why.code), *why.rows, *more])

    def _notes(self, notes: Iterable[Note]) -> None:
        for note in notes:
            self._word(f"note: {note.text}")
        self.words.flush()

    note = _notes  # those that belong to no result

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
                snapshot = replace(snapshot, rows=snapshot.rows[max(0, len(snapshot.rows) - new) :])
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

    def _block(self, live: Live, snapshot: Snapshot) -> None:
        with self.terminal.held():
            self._write_block(live, snapshot)

    def _write_block(self, live: Live, snapshot: Snapshot) -> None:
        if live.mode == "chart":
            from streamsql.output.frames import chart_lines

            lines = chart_lines(live, snapshot, self.width() or 80, 20)
        else:
            lines = self.lines(Rows((), unique_names(snapshot.columns), snapshot.rows, snapshot.numeric))
        self._write(lines)
        what = "changes" if snapshot.changes else "rows"
        self.say(f"({len(snapshot.rows)} {what}, batch {snapshot.batch})")

    def show_last(self) -> None:
        """Show the last rows or text again in full: no value is cut and no column omitted."""
        with self.terminal.held():
            self._show_last()

    def _show_last(self) -> None:
        if self.last is None:
            self.say("there is no result yet")
            return
        if isinstance(self.last, Text):
            self._text(self.last.text)
        else:
            lines = list(self._formatted(self._format(), self.last, replace(self._style(), max_cell=0)))
            if not self._page(lines):
                self._write(lines)
            self.say(self._footer(self.last, len(self.last.rows)))

    def lines(self, rows: Rows) -> list[str]:
        """The lines of rows as they are printed without a pager, fitted to the window if there is one."""
        return self._fitted(rows)[0]

    def say(self, message: str) -> None:
        if not self.quiet:
            self._word(message)

    def warn(self, message: str) -> None:
        """Print a warning, even if quiet."""
        self._word(f"warning: {message}")

    def error(self, error: StreamsqlError) -> None:
        from streamsql.output.error_text import format_error

        self.last_error = error
        text = harmless(format_error(error, self.width()))
        with self.terminal.held():
            self.out.flush()
            print(paint_error(text) if self._color(self.words) else text, file=self.words, flush=True)
        if error.proposal:
            self._notes(self.offer(error.proposal))

    def lines_as_they_are(self, lines: Iterable[str]) -> None:
        """Write lines that are formatted for this terminal already, such as the last frame of a live view."""
        with self.terminal.held():
            self._write(list(lines))

    def announce(self, line: str, *, alarm: bool = False) -> None:
        """Write a line about a background event. alarm: in red, if there are colours."""
        line = visible(redact_text(line))
        with self.terminal.held():
            print(f"\x1b[31m{line}\x1b[0m" if alarm and self.color else line, file=self.out, flush=True)

    @property
    def out(self) -> TextIO:
        """The current stream for data."""
        return self.terminal.out

    @property
    def words(self) -> TextIO:
        """The current stream for messages, notes and errors."""
        return self.terminal.words

    @property
    def color(self) -> bool:
        """Whether messages and live views are coloured."""
        return self._color(self.words)

    # ---- how ------------------------------------------------------------------------------

    def _color(self, stream: TextIO) -> bool:
        return wants_color(self.preferences["color"], is_terminal(stream), os.environ)

    def _safe(self, text: str) -> str:
        """A line of a format for programs: control characters are escaped only for a terminal."""
        return harmless(text) if is_terminal(self.out) else text

    def _word(self, text: str) -> None:
        text = harmless(redact_text(text))
        with self.terminal.held():
            print(paint_labels(text) if self._color(self.words) else text, file=self.words, flush=True)

    def _style(self, glance: bool = False) -> Style:
        """The style of rows. Values are cut only in a window, and never in a result that is fitted to it."""
        max_cell = self.preferences.count("max_cell") if self.width() and not glance else 0
        return Style(self.preferences["null"], self._color(self.out), max_cell)

    def _format(self) -> str:
        """The output format; a table becomes vertical with expanded = on."""
        format = self.preferences["format"]
        return "vertical" if format == "table" and self.preferences["expanded"] == "on" else format

    def _footer(self, rows: Rows, shown: int) -> str:
        count = len(rows.rows)
        seconds = rows.seconds if self.preferences["timing"] == "on" else None
        took = f", {seconds:.2f} s" if seconds is not None else ""
        part = f"{shown} of " if shown < count else ""
        return f"({part}{count} row{'' if count == 1 else 's'}{took})"

    # ---- rows -----------------------------------------------------------------------------

    def _rows(self, rows: Rows, *, paging: bool) -> tuple[int, list[Note]]:
        """Write rows. Returns the number of rows written, and notes."""
        if not self.width():
            self._write(self._formatted(self._format(), rows, self._style()))
            return len(rows.rows), []
        brief = rows.glance and self._format() == "table"
        if brief:
            rows = self._at_a_glance(rows)
        if paging and self._pager() and not (brief and len(rows.rows) < self.height() - FOOTER):
            lines, notes = self._whole(rows)
            if self._page(lines):
                return len(rows.rows), notes
        lines, shown, notes = self._fitted(rows)
        self._write(lines)
        return shown, notes

    def _at_a_glance(self, rows: Rows) -> Rows:
        """A result fitted to the window: if it is too wide, without empty columns or with wrapped values."""
        if not rows.rows or draw(rows, self._style(glance=True)).width <= self.width():
            return rows
        if len(rows.columns) == 2:
            room = self.width() - max(cells(str(r[0])) for r in rows.rows) - 7
            wrapped = [
                (r[0] if n == 0 else "", part) for r in rows.rows for n, part in enumerate(wrap(r[1], room))
            ]
            return replace(rows, rows=wrapped)
        filled = [i for i, _ in enumerate(rows.columns) if any(r[i] not in (None, "") for r in rows.rows)]
        return replace(
            rows,
            columns=tuple(rows.columns[i] for i in filled),
            rows=[tuple(r[i] for i in filled) for r in rows.rows],
            numeric=tuple(rows.numeric[i] for i in filled),
        )

    def _whole(self, rows: Rows) -> tuple[list[str], list[Note]]:
        """(lines, notes) of all rows and columns, for a pager."""
        format, style = self._format(), self._style(rows.glance)
        if format != "table":
            return list(self._formatted(format, rows, style)), []
        drawn = draw(rows, style)
        if drawn.width > self.width() and self.preferences["expanded"] == "auto" and rows.rows:
            return list(self._formatted("vertical", rows, style)), []
        return drawn.lines, [_cut_note(style.max_cell)] if drawn.cut else []

    def _fitted(self, rows: Rows) -> tuple[list[str], int, list[Note]]:
        """(lines, number of rows, notes) of the rows that fit the window."""
        limit = self.preferences.count("max_rows") if self.width() else 0
        part = replace(rows, rows=rows.rows[:limit]) if limit else rows
        format, style = self._format(), self._style(rows.glance)
        notes: list[Note] = []
        if len(part.rows) < len(rows.rows):
            notes.append(Note("NOT_ALL_SHOWN", f"SET {PREFIX}max_rows = 0; shows all rows"))
        if format != "table":
            return list(self._formatted(format, part, style)), len(part.rows), notes
        drawn = draw(part, replace(style, width=self.width()))
        if drawn.left_out and self.preferences["expanded"] == "auto" and part.rows:
            return list(self._formatted("vertical", part, style)), len(part.rows), notes
        if drawn.left_out:
            text = (
                f"{drawn.left_out} of {len(rows.columns)} columns do not fit (…): "
                f"SET {PREFIX}expanded = auto; shows them row by row"
            )
            notes.append(Note("NOT_ALL_SHOWN", text))
        if drawn.cut:
            notes.append(_cut_note(style.max_cell))
        return drawn.lines, len(part.rows), notes

    def _formatted(self, format: str, rows: Rows, style: Style) -> Iterator[str]:
        """The lines of rows in a format, with control characters escaped for a terminal."""
        lines = FORMATS[format](rows, style)
        return (self._safe(line) for line in lines) if format in RAW else lines

    def _text(self, text: str, *, paging: bool = True) -> None:
        lines = harmless(text).split("\n")
        if not (paging and self._page(lines)):
            self._write(lines)

    def _write(self, lines: Iterator[str] | list[str]) -> None:
        for line in lines:
            print(line, file=self.out)
        self.out.flush()

    # ---- pager ----------------------------------------------------------------------------

    def _pager(self) -> str:
        """The pager's command; empty if there is none, or no terminal."""
        if not self.width() or not is_terminal(self.out):
            return ""
        return pager_command(self.preferences["pager"], os.environ)

    def _page(self, lines: list[str]) -> bool:
        """Show lines in the pager if they do not fit the window. Returns False if they did not need it, or
        it could not start.
        """
        command = self._pager()
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
        if self._format() == "table" and lines and lines[0].startswith("+-"):
            return len(lines) > room or len(lines[0]) > width
        if len(lines) > room:
            return True
        inner = (part for line in lines for part in unpainted(line).split("\n"))
        return sum(max(1, -(-cells(part) // width)) for part in inner) > room


def _with_unique_names(rows: Rows) -> tuple[Rows, list[Note]]:
    """(rows with unique column names, notes about renamed columns): JSON would drop all but the last column
    of a name, and other programs would confuse them.
    """
    columns = unique_names(rows.columns)
    renamed = [
        f"{new} is a second column named {old}"
        for old, new in zip(rows.columns, columns, strict=True)
        if old != new
    ]
    notes = [Note("COLUMNS_RENAMED", f"{', '.join(renamed)}: name it with AS")] if renamed else []
    return replace(rows, columns=columns), notes


def _cut_note(max_cell: int) -> Note:
    in_full = f"{max_cell} cells are cut: SET {PREFIX}max_cell = 0; shows them in full"
    return Note("NOT_ALL_SHOWN", f"values longer than {in_full if max_cell else 'the window are cut'}")
