"""Writes messages, notes, warnings and errors; data is written by the printer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TextIO

from streamsql.config.preferences import Preferences
from streamsql.errors import Note, StreamsqlError, hide_in_sql
from streamsql.output.colors import is_terminal, paint_error, paint_labels, wants_color
from streamsql.output.control_characters import harmless, visible
from streamsql.output.line_breaks import wrap
from streamsql.output.terminal import Terminal, window
from streamsql.secrets import redact_text

SHOWN_ONCE = frozenset({"OTHER_MEANING"})
"""The codes of notes that are shown once: a user who has read the note and types the expression again means
it."""


class Messages:
    """preferences: read for each message. quiet: omit plain messages, but not notes, warnings and errors.
    width: of the window, 0 for none.
    """

    def __init__(
        self,
        preferences: Preferences,
        terminal: Terminal,
        *,
        quiet: bool = False,
        width: Callable[[], int] = lambda: 0,
    ) -> None:
        self.preferences = preferences
        self.terminal = terminal
        self.quiet = quiet
        self.width = width
        self.offer: Callable[[str], list[Note]] = lambda statement: []
        """Called with a proposed statement; returns notes about how to run it."""

    def say(self, message: str) -> None:
        if not self.quiet:
            self._word(message)

    def remark(self, line: str) -> None:
        """Print a line, even if quiet."""
        self._word(line)

    def warn(self, message: str) -> None:
        """Print a warning, even if quiet."""
        self._word(f"warning: {message}")

    def error(self, error: StreamsqlError) -> None:
        """Print an error."""
        from streamsql.output.error_text import format_error

        self.terminal.last_error = error
        text = self._when() + self._wrapped(harmless(format_error(error, self._columns())))
        with self.terminal.held():
            self.out.flush()
            print(paint_error(text) if self._color(self.words) else text, file=self.words, flush=True)
        proposal = error.proposal or error.corrected()
        if proposal:
            self._notes(self.offer(proposal))

    def _notes(self, notes: Iterable[Note]) -> None:
        for note in notes:
            if note.code in SHOWN_ONCE:
                if note.text in self.terminal.noted:
                    continue
                self.terminal.noted.add(note.text)
            self._word(f"note: {note.text}", sql=note.code == "READ_AS")
        self.words.flush()

    note = _notes  # those that belong to no result

    def announce(self, line: str, *, alarm: bool = False) -> None:
        """Write a line about a background event. alarm: in red, if there are colours."""
        line = self._when() + self._wrapped(visible(redact_text(line)))
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

    def _color(self, stream: TextIO) -> bool:
        return wants_color(self.preferences["color"], is_terminal(stream), os.environ)

    def _word(self, text: str, *, sql: bool = False) -> None:
        """Write a line without its secrets. sql: it is a statement, or has one."""
        text = self._when() + self._wrapped(harmless(hide_in_sql(text) if sql else redact_text(text)))
        with self.terminal.held():
            print(paint_labels(text) if self._color(self.words) else text, file=self.words, flush=True)

    def _when(self) -> str:
        return f"{datetime.now():%Y-%m-%d %H:%M:%S} " if self.terminal.timed else ""

    def _columns(self) -> int:
        """The width of the window that messages are written to, also by a script; 0 for a file or pipe."""
        return self.width() or (window(self.words).columns if is_terminal(self.words) else 0)

    def _wrapped(self, text: str) -> str:
        """Lines that are longer than the window is wide, with line ends between words; without a window as
        they are.
        """
        width = self._columns()
        return "\n".join(wrap(text, width, message=True)) if width else text
