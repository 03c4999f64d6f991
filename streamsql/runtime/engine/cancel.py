"""Giving up a statement: each has a token of its own, handed down to whatever it waits for."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from streamsql.errors import Cancelled

_NUMBERS = itertools.count(1)


class CancelToken:
    """Set by Ctrl-C or a signal and never reset: the next statement has another one. Safe on any thread.

    jobs: the group of the Spark jobs that are run under this token. abandoned: the statement has not
    ended when it was cancelled, and nobody waits for it any more: it must not show anything.
    """

    def __init__(self) -> None:
        self.jobs = f"streamsql-statement-{next(_NUMBERS)}"
        self.abandoned = False
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._actions: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        """Give the statement up. Returns at once: what was asked for by `on_cancel` may wait for Spark, and
        is done on a thread of its own.
        """
        with self._lock:
            self._event.set()
            actions, self._actions = self._actions, []
        for act in actions:
            threading.Thread(target=act, daemon=True, name="cancel").start()

    def on_cancel(self, act: Callable[[], None]) -> None:
        """Have something done when the token is set; at once, on this thread, if it is."""
        with self._lock:
            if not self.cancelled:
                self._actions.append(act)
                return
        act()

    def check(self, message: str = "cancelled") -> None:
        """Raise Cancelled when the token is set."""
        if self.cancelled:
            raise Cancelled(message)

    def wait(self, seconds: float) -> None:
        """Wait that long. Raises Cancelled as soon as the token is set."""
        if self._event.wait(seconds):
            raise Cancelled("cancelled")
