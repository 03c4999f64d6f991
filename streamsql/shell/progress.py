"""One line that tells how far a long statement is, gone before anything else is printed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TextIO

from streamsql.runtime.engine import Engine

PATIENCE = 1.0
"""Seconds that a statement may take before anything is said of it."""


class ProgressLine:
    """Draws over its own line on a terminal that can move its cursor; else says it once.

    muted: whether the terminal is somebody else's, such as a pager's. engine is asked on a thread of
    its own, since Spark may take its time to answer.
    """

    def __init__(self, engine: Engine, out: TextIO, *, moving: bool, muted: Callable[[], bool]) -> None:
        self.engine = engine
        self.out = out
        self.moving = moving
        self.muted = muted
        self._lock = threading.Lock()
        self._shown = False
        self._running = threading.Event()
        self._said = False

    def start(self) -> None:
        self._running.set()
        self._said = False
        self._began = time.monotonic()
        threading.Thread(target=self._watch, daemon=True, name="progress").start()

    def stop(self) -> None:
        self._running.clear()
        self.clear()

    def clear(self) -> None:
        """Take the line away; to be called before anything is printed."""
        with self._lock:
            if self._shown:
                self.out.write("\r\x1b[K")
                self.out.flush()
                self._shown = False

    def _watch(self) -> None:
        began = self._began
        while self._running.is_set() and self._began == began:
            took = time.monotonic() - began
            text = self._text(took) if took > PATIENCE else ""
            with self._lock:
                if text and not self.muted() and self._running.is_set() and self._began == began:
                    self._draw(text)
            time.sleep(0.25)

    def _text(self, took: float) -> str:
        if not self.engine.started:
            return f"waiting for Spark to start… {took:.0f} s"
        if self.engine.doing:
            return f"{self.engine.doing}… {took:.0f} s; Ctrl-C cancels"
        progress = self.engine.progress()
        if progress is None:
            return ""
        stages = f"stage {min(progress.stages_done + 1, progress.stages)} of {progress.stages}"
        return f"{stages}, {progress.tasks_done} of {progress.tasks} tasks, {took:.0f} s; Ctrl-C cancels"

    def _draw(self, text: str) -> None:
        if self.moving:
            self.out.write(f"\r{text}\x1b[K")
            self._shown = True
        elif not self._said and self.out.isatty():
            self.out.write(text + "\n")
            self._said = True
        self.out.flush()
