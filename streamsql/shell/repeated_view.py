"""\\watch: what a statement prints, refreshed in place until the user leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from io import StringIO
from typing import Any, TextIO

from prompt_toolkit.styles import BaseStyle

from streamsql.output.live_frames import one_line
from streamsql.output.printer import Printer
from streamsql.output.terminal import window
from streamsql.results import Live
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.shell.live_view import RefreshingView


class KeepingPrinter(Printer):
    """Prints as another printer does, but into a text. present: shows a result that refreshes
    by itself; presented: whether there was one.
    """

    def __init__(self, like: Printer, present: Callable[[Live], None]) -> None:
        self.printed = StringIO()
        super().__init__(like.preferences, self.printed, self.printed, width=like.width, height=like.height)
        self.terminal.noted = like.terminal.noted
        self.presented = False
        self._like = like
        self._present = present
        self.present = self._present_once

    def taken(self) -> list[str]:
        """The lines since the last call."""
        lines = self.printed.getvalue().rstrip("\n").split("\n")
        self.printed.seek(0)
        self.printed.truncate()
        return lines

    def _color(self, stream: TextIO) -> bool:
        return self._like.color

    def _present_once(self, live: Live) -> None:
        self.presented = True
        self._present(live)


class RepeatedView(RefreshingView):
    """Shows the lines that a statement has printed last. every: the seconds between two runs; cancel: the
    token of the statement, set when the user leaves.
    """

    def __init__(self, every: float, cancel: CancelToken, style: BaseStyle, **options: Any) -> None:
        super().__init__(every, style, options)
        self.cancel = cancel
        self.lines: list[str] = []
        self.updated = ""
        self.left = threading.Event()
        """Set once the user has left, or the view has ended."""

    def repeat(
        self, run: Callable[[], list[str] | None], times: int, begin: Callable[[], threading.Event]
    ) -> None:
        """Run a statement again and again, on its thread. run: returns what it has printed, None to end;
        times: at most so often, 0 for no limit; begin: lets the main thread call `run`.
        """
        shown: threading.Event | None = None
        while (lines := run()) is not None and not self.left.is_set():
            self.lines, self.updated = lines, f"{datetime.now():%H:%M:%S}"
            self.redraw()
            shown = shown or begin()
            times -= 1
            if not times:
                break
            self.wait()
        self.left.set()
        self.leave_soon()
        if shown is not None:
            shown.wait()

    def wait(self) -> None:
        """Wait until the statement is to run again, or the view has ended."""
        while not self.left.is_set():
            self._wake.clear()
            woken = self._wake.wait(self.every)
            if not (woken or self.paused):
                return

    def run(self) -> None:
        """Show the view. Returns when the user leaves, or once `left` is set."""
        app = self.application()
        try:
            app.run(handle_sigint=False, pre_run=lambda: self.leave() if self.left.is_set() else None)
        finally:
            self.left.set()
            self._wake.set()
            self.cancel.cancel()

    def picture(self) -> tuple[list[str], str, str]:
        width, height = window()
        room = height - 2
        shown = self.lines[:room]
        much = f"lines 1-{room} of {len(self.lines):,}" if len(self.lines) > room else ""
        pace = "PAUSED" if self.paused else f"every {self.every:.3g} s"
        parts = [
            (0, much),
            (1, pace),
            (2, f"updated {self.updated}"),
            (0, "q leave"),
            (3, "p pause · + - pace"),
        ]
        footer = one_line([part for part in parts if part[1]], width)
        return shown, "class:footer", footer
