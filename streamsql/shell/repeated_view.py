"""\\watch: what a statement prints, refreshed in place until the user leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from io import StringIO
from typing import Any, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import FormattedTextControl, Layout, Window
from prompt_toolkit.styles import BaseStyle

from streamsql.output.live_frames import one_line
from streamsql.output.printer import Printer
from streamsql.output.terminal import window
from streamsql.results import Live
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.shell.live_view import LIMITS


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


class RepeatedView:
    """Shows the lines that a statement has printed last. every: the seconds between two runs; cancel: the
    token of the statement, set when the user leaves.
    """

    def __init__(self, every: float, cancel: CancelToken, style: BaseStyle, **options: Any) -> None:
        self.every = every
        self.cancel = cancel
        self.style = style
        self.options = options
        self.lines: list[str] = []
        self.updated = ""
        self.left = threading.Event()
        """Set once the user has left, or the view has ended."""
        self._paused = False
        self._wake = threading.Event()
        self._app: Application[None] | None = None

    def take(self, lines: list[str]) -> None:
        """Show what a run has printed."""
        self.lines, self.updated = lines, f"{datetime.now():%H:%M:%S}"
        if self._app is not None:
            self._app.invalidate()

    def repeat(
        self, run: Callable[[], list[str] | None], times: int, begin: Callable[[], threading.Event]
    ) -> None:
        """Run a statement again and again, on its thread. run: returns what it has printed, None to end;
        times: at most so often, 0 for no limit; begin: lets the main thread call `run`.
        """
        shown: threading.Event | None = None
        while (lines := run()) is not None and not self.left.is_set():
            self.take(lines)
            shown = shown or begin()
            times -= 1
            if not times:
                break
            self.wait()
        self.end()
        if shown is not None:
            shown.wait()

    def wait(self) -> None:
        """Wait until the statement is to run again, or the view has ended."""
        while not self.left.is_set():
            self._wake.clear()
            woken = self._wake.wait(self.every)
            if not (woken or self._paused):
                return

    def run(self) -> None:
        """Show the view. Returns when the user leaves, or after `end`."""
        control = FormattedTextControl(self._text, focusable=True, show_cursor=False)
        self._app = Application(
            Layout(Window(control, wrap_lines=False, dont_extend_height=True)),
            key_bindings=self._keys(),
            erase_when_done=True,
            min_redraw_interval=0.05,
            style=self.style,
            **self.options,
        )
        try:
            self._app.run(handle_sigint=False, pre_run=self._leave_if_ended)
        finally:
            self._leave()
            self.cancel.cancel()

    def end(self) -> None:
        """End the view, from the thread of the statement."""
        self._leave()
        app = self._app
        if app is not None and app.loop is not None:
            app.loop.call_soon_threadsafe(self._leave_if_ended)

    def _leave(self) -> None:
        self.left.set()
        self._wake.set()

    def _leave_if_ended(self) -> None:
        app = self._app
        if self.left.is_set() and app is not None and app.is_running and not app.is_done:
            app.exit()

    def _text(self) -> StyleAndTextTuples:
        width, height = window()
        room = height - 2
        shown = self.lines[:room]
        much = f"lines 1-{room} of {len(self.lines):,}" if len(self.lines) > room else ""
        pace = "PAUSED" if self._paused else f"every {self.every:.3g} s"
        parts = [
            (0, much),
            (1, pace),
            (2, f"updated {self.updated}"),
            (0, "q leave"),
            (3, "p pause · + - pace"),
        ]
        footer = one_line([part for part in parts if part[1]], width)
        return [*to_formatted_text(ANSI("\n".join(shown))), ("", "\n"), ("class:footer", footer)]

    # ---- keys -----------------------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        actions: dict[str, Callable[[], None]] = {
            "p": self._pause,
            "+": lambda: self._pace(0.5),
            "-": lambda: self._pace(2.0),
            **dict.fromkeys(("q", "c-c", "c-d"), self._quit),
        }
        for name, act in actions.items():
            keys.add(name, eager=True)(lambda event, act=act: act())
        return keys

    def _quit(self) -> None:
        self._leave()
        self._leave_if_ended()

    def _pause(self) -> None:
        self._paused = not self._paused
        self._wake.set()

    def _pace(self, factor: float) -> None:
        self.every = min(max(self.every * factor, LIMITS[0]), max(LIMITS[1], self.every))
        self._wake.set()
