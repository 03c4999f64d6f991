"""Views that the thread of a statement asks for, and that the main thread shows: it owns the terminal. Lines
about background events wait for their end.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from streamsql.output.printer import Printer
from streamsql.results import Live
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.shell.highlighting import PLAIN, STYLE
from streamsql.shell.live_view import LiveView
from streamsql.shell.progress_line import ProgressLine
from streamsql.shell.repeated_view import RepeatedView


class AskedViews:
    """options: input and output of prompt_toolkit, if they are not the terminal. free: set while no view is
    shown.
    """

    def __init__(self, printer: Printer, progress: ProgressLine, options: dict[str, Any]) -> None:
        self._printer = printer
        self._progress = progress
        self._options = options
        self.free = threading.Event()
        self.free.set()
        self._asked: queue.Queue[tuple[Live | RepeatedView, threading.Event]] = queue.Queue()

    def ask(self, view: Live | RepeatedView) -> threading.Event:
        """Called on the thread of a statement. Returns what is set when the view has ended."""
        ended = threading.Event()
        self._asked.put((view, ended))
        return ended

    def show_next(self, timeout: float) -> None:
        """Called on the main thread: show a view until the user leaves it, if one is asked for within some
        seconds.
        """
        try:
            view, ended = self._asked.get(timeout=timeout)
        except queue.Empty:
            return
        self._show(view)
        ended.set()

    def refuse(self) -> None:
        """Let statements go on that wait for their view, which is not shown any more."""
        while not self._asked.empty():
            self._asked.get()[1].set()

    def repeated(self, every: float, cancel: CancelToken) -> RepeatedView:
        """A view of what a statement prints every so many seconds. cancel: the token of the statement."""
        return RepeatedView(every, cancel, STYLE if self._printer.color else PLAIN, **self._options)

    def _show(self, asked: Live | RepeatedView) -> None:
        view = asked if isinstance(asked, RepeatedView) else self._view_of(asked)
        self._progress.stop()
        self.free.clear()
        try:
            # EOFError: a signal ends the console.
            with suppress(EOFError), self._printer.terminal.prompting(sys.stdout):
                view.run()
            if isinstance(view, RepeatedView):
                return
            if view.ended_itself:
                self._printer.terminal.view_ended = time.monotonic()
            last = view.final()
            self._printer.write((*last.lines, *last.footer))
            if view.message:
                self._printer.say(view.message)
        finally:
            self.free.set()  # after the last line of the view: nothing is printed into it

    def _view_of(self, live: Live) -> LiveView:
        return LiveView(
            live,
            every=self._printer.preferences.number("refresh"),
            color=self._printer.color,
            null=self._printer.preferences["null"],
            style=STYLE if self._printer.color else PLAIN,
            **self._options,
        )
