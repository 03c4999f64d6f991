"""A status line with the progress of a long statement, erased before anything else is printed."""

from __future__ import annotations

import re
import threading
import time

from streamsql.errors import cells
from streamsql.output.cells import cut
from streamsql.output.terminal import Terminal, window
from streamsql.runtime.console_session import Activity, ConsoleSession
from streamsql.runtime.engine.cancel import CancelToken

PATIENCE = 1.0
"""The seconds after which the progress of a statement is shown."""
STEP = 0.25
"""The seconds between two updates."""


_KEYS = re.compile(r" (?=\d+ s; )")
"""Before the seconds that a statement has taken, and what follows them."""


def in_one_line(text: str, width: int) -> str:
    """A status that fits a line, since only one line is erased: the seconds and the keys stay."""
    if cells(text) <= width:
        return text
    what, keys = _KEYS.split(text, maxsplit=1) if _KEYS.search(text) else (text, "")
    room = width - cells(keys) - 1
    return f"{cut(what, room)} {keys}" if keys and room > 0 else cut(text, width)


class ProgressLine:
    """Overwrites its own line on a terminal that can move its cursor (moving); otherwise prints it once.
    The session is asked on a thread of its own: while Spark answers slowly, the seconds go on.
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
        self._activity: Activity | None = None
        self._began = began = time.monotonic()
        for act in (self._ask, self._watch):
            threading.Thread(target=act, args=(cancel, began), daemon=True, name="progress").start()

    def cancelling(self) -> None:
        """Show at once that the statement is being cancelled."""
        self._cancelling = True
        self._said = False
        self._draw("cancelling…")

    def stop(self) -> None:
        self._running.clear()
        self.terminal.erase_status()

    def _goes_on(self, began: float) -> bool:
        return self._running.is_set() and self._began == began

    def _ask(self, cancel: CancelToken, began: float) -> None:
        while self._goes_on(began):
            if time.monotonic() - began > PATIENCE - STEP:
                activity = self.session.activity(cancel)
                if self._goes_on(began):
                    self._activity = activity
            time.sleep(STEP)

    def _watch(self, cancel: CancelToken, began: float) -> None:
        while self._goes_on(began):
            took = time.monotonic() - began
            text = self._text(took) if took > PATIENCE and not self._cancelling else ""
            if text and self._goes_on(began):
                self._draw(text)
                if self._cancelling:
                    self._draw("cancelling…")  # it was meanwhile
                if not self._running.is_set():
                    self.terminal.erase_status()  # it was stopped meanwhile
            time.sleep(STEP)

    def _text(self, took: float) -> str:
        """What is shown. While no Spark job runs, Spark plans the statement or hands over its rows."""
        activity = self._activity or Activity()
        if not activity.started:
            return f"waiting for Spark to start… {took:.0f} s; Ctrl-C cancels"
        progress = activity.jobs
        if progress is None or not progress.tasks:
            return f"{activity.doing or 'running'}… {took:.0f} s; Ctrl-C cancels"
        stages = f"stage {min(progress.stages_done + 1, progress.stages)} of {progress.stages}"
        return f"{stages}, {progress.tasks_done} of {progress.tasks} tasks, {took:.0f} s; Ctrl-C cancels"

    def _draw(self, text: str) -> None:
        if self.moving:
            self.terminal.status(in_one_line(text, window().columns - 1), moving=True)
        elif not self._said and self.terminal.words.isatty():
            self._said = self.terminal.status(text, moving=False)
