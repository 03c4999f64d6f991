"""The owner of the terminal: everything written to standard output and standard error goes through it.
The size of its window, too.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from streamsql.errors import StreamsqlError


class Terminal:
    """out: data; words: messages, notes and errors. Thread-safe.

    A writer holds the terminal until its whole block is written, so that background messages never appear
    between the lines of a result. A status line shows the progress of a statement: it is erased before
    anything else is written. While a prompt is shown, everything is written above it.
    """

    def __init__(self, out: TextIO, words: TextIO) -> None:
        self._out = out
        self._words = words
        self._above: TextIO | None = None
        self._lock = threading.RLock()
        self._status_shown = False
        self.last_error: StreamsqlError | None = None
        """The newest error, also of what happens in the background."""
        self.noted: set[str] = set()
        """The notes that are told once, however often their expression is typed."""
        self.view_ended = 0.0
        """When a view has ended by itself, in seconds of time.monotonic(): the q that follows is for it."""
        self.timed = False
        """Whether messages begin with the time: they go to the log of a server."""

    @property
    def out(self) -> TextIO:
        return self._above or self._out

    @property
    def words(self) -> TextIO:
        return self._above or self._words

    @contextmanager
    def prompting(self, above: TextIO) -> Iterator[None]:
        """A context in which a prompt or live view is shown. above: a stream that writes above it."""
        with self._lock:
            self._erase()
            self._above = above if self._out.isatty() else None
        try:
            yield
        finally:
            with self._lock:
                above.flush()
                self._above = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """A context in which no other thread writes."""
        with self._lock:
            self._erase()
            yield

    def status(self, text: str, *, moving: bool) -> bool:
        """Write the status line of a statement. moving: overwrite the previous one, which needs a terminal
        that can move its cursor. Returns False when another thread holds the terminal.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self.words.write(f"\r{text}\x1b[K" if moving else f"{text}\n")
            self.words.flush()
            self._status_shown = moving
        finally:
            self._lock.release()
        return True

    def erase_status(self) -> None:
        with self._lock:
            self._erase()

    def _erase(self) -> None:
        if self._status_shown:
            self.words.write("\r\x1b[K")
            self.words.flush()
            self._status_shown = False


def window(stream: TextIO | None = None) -> os.terminal_size:
    """The current size of the window that a stream, else standard output, writes to. COLUMNS and LINES may be
    outdated, and are used only if there is no window.
    """
    stream = stream or sys.__stdout__
    try:
        return os.get_terminal_size(stream.fileno() if stream else 1)
    except (OSError, ValueError):
        return shutil.get_terminal_size()
