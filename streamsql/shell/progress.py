"""A status line with the progress of a long statement, erased before anything else is printed."""

from __future__ import annotations

import threading
import time

from streamsql.errors import cells
from streamsql.output.cells import cut
from streamsql.output.terminal import Terminal
from streamsql.output.window import window
from streamsql.runtime.console_session import ConsoleSession
from streamsql.runtime.engine.cancel import CancelToken

PATIENCE = 1.0
"""The seconds after which the progress of a statement is shown."""


def in_one_line(text: str, width: int) -> str:
    """A status that fits a line, since only one line is erased: what follows the last `;` stays."""
    if cells(text) <= width:
        return text
    what, _, keys = text.rpartition("; ")
    room = width - cells(keys) - 2
    return f"{cut(what, room)}; {keys}" if what and room > 0 else cut(text, width)


class ProgressLine:
    """Overwrites its own line on a terminal that can move its cursor (moving); otherwise prints it once.
    Calls the session on its own thread, since Spark may answer slowly.
    """

    def __init__(self, session: ConsoleSession, terminal: Terminal, *, moving: bool) -> None:
        self.session = session
        self.terminal = terminal
        self.moving = moving
        self._running = threading.Event()
        self._said = False

    def start(self, cancel: CancelToken) -> None:
        """Show the progress of a statement. cancel: its token."""
        self._cancel = cancel
        self._running.set()
        self._said = False
        self._cancelling = False
        self._began = time.monotonic()
        threading.Thread(target=self._watch, daemon=True, name="progress").start()

    def cancelling(self) -> None:
        """Show at once that the statement is being cancelled."""
        self._cancelling = True
        self._said = False
        self._draw("cancelling…")

    def stop(self) -> None:
        self._running.clear()
        self.terminal.erase_status()

    def _watch(self) -> None:
        began = self._began
        while self._running.is_set() and self._began == began:
            took = time.monotonic() - began
            text = self._text(took) if took > PATIENCE and not self._cancelling else ""
            if text and self._running.is_set() and self._began == began:
                self._draw(text)
                if self._cancelling:
                    self._draw("cancelling…")  # it was meanwhile
                if not self._running.is_set():
                    self.terminal.erase_status()  # it was stopped meanwhile
            time.sleep(0.25)

    def _text(self, took: float) -> str:
        activity = self.session.activity(self._cancel)
        if not activity.started:
            return f"waiting for Spark to start… {took:.0f} s"
        if activity.doing:
            return f"{activity.doing}… {took:.0f} s; Ctrl-C cancels"
        progress = activity.jobs
        if progress is None:
            return ""
        stages = f"stage {min(progress.stages_done + 1, progress.stages)} of {progress.stages}"
        return f"{stages}, {progress.tasks_done} of {progress.tasks} tasks, {took:.0f} s; Ctrl-C cancels"

    def _draw(self, text: str) -> None:
        if self.moving:
            self.terminal.status(in_one_line(text, window().columns - 1), moving=True)
        elif not self._said and self.terminal.words.isatty():
            self._said = self.terminal.status(text, moving=False)
