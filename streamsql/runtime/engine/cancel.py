"""Cancels a statement: each has its own token, which is passed to everything that it waits for."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from streamsql.errors import Cancelled

POLL = 0.1
"""The seconds between two looks at the token while a lock is waited for."""
_NUMBERS = itertools.count(1)


class _Lock(Protocol):
    """A Lock or an RLock."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...


@dataclass(frozen=True)
class JobProgress:
    """The progress of the Spark jobs of a statement."""

    stages_done: int = 0
    stages: int = 0
    tasks_done: int = 0
    tasks: int = 0


class CancelToken:
    """Set by Ctrl-C or a signal and never reset: the next statement has its own. Thread-safe.

    jobs: the group of the Spark jobs of the statement. abandoned: the cancelled statement has not ended,
    and nobody waits for it any more: it must not print anything. only_reads: the statement changes nothing,
    so that nobody need wait for the end of a cancelled one. running: whether it is being executed. happened:
    what it has done all the same.
    """

    def __init__(self) -> None:
        self.jobs = f"streamsql-statement-{next(_NUMBERS)}"
        self.abandoned = False
        self.only_reads = False
        self.running = False
        self.happened = ""
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._actions: dict[object, Callable[[], None]] = {}

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        """Cancel the statement. Returns at once: the actions may wait for Spark, and run on their own
        threads.
        """
        with self._lock:
            self._event.set()
            actions, self._actions = self._actions, {}
        for act in actions.values():
            threading.Thread(target=act, daemon=True, name="cancel").start()

    @contextmanager
    def calling(self, act: Callable[[], None]) -> Iterator[None]:
        """A context in which a function is called when the token is set; if it is set already, now on this
        thread.
        """
        key = object()
        self._call(key, act)
        try:
            yield
        finally:
            with self._lock:
                self._actions.pop(key, None)

    def on_cancel(self, act: Callable[[], None], of: object) -> None:
        """Call a function when the token is set, as `calling` does, for as long as the token lives. of: whose
        action it is. It replaces the one before of the same owner: the token of a live table lives for hours,
        and each refresh sets the action that ends its jobs.
        """
        self._call(of, act)

    def _call(self, key: object, act: Callable[[], None]) -> None:
        with self._lock:
            if not self.cancelled:
                self._actions[key] = act
                return
        act()

    def check(self, message: str = "cancelled") -> None:
        """Raise Cancelled when the token is set."""
        if self.cancelled:
            raise Cancelled(message)

    @contextmanager
    def holding(self, lock: _Lock) -> Iterator[None]:
        """A context that holds a lock, which another statement may hold for long. Raises Cancelled when the
        token is set before the lock is free.
        """
        while not lock.acquire(timeout=POLL):
            self.check()
        try:
            self.check()
            yield
        finally:
            lock.release()

    def wait(self, seconds: float) -> None:
        """Wait for some seconds. Raises Cancelled as soon as the token is set."""
        if self._event.wait(seconds):
            raise Cancelled("cancelled")
