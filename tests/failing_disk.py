"""A disk that fails, or a process that is killed, at a step that writes: in place of `os` in durable_files."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = ("open", "fsync", "replace", "mkdir", "unlink", "symlink")


class Crash(BaseException):
    """The process is killed here."""


def broken() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


class Disk:
    """In place of `os` where files are written: fails at a step, and at all later ones. at: the number of the
    step, None for none; error: makes what it raises.
    """

    def __init__(self, at: int | None, error: Callable[[], BaseException]) -> None:
        self.at, self.error, self.count = at, error, 0
        self._lock = threading.RLock()
        self._opened: dict[int, str] = {}
        self._synced: set[str] = set()
        self._undo: list[tuple[str, Callable[[], object]]] = []

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in STEPS:
            return real

        def step(*arguments: Any) -> Any:
            with self._lock:
                self.count += 1
                if self.failed:
                    # Spark would wait for ever for a callback that ends in anything but an Exception.
                    here = threading.current_thread() is threading.main_thread()
                    raise self.error() if here else broken()
                undo = getattr(self, f"_undo_{name}", None)
                if undo:
                    undo(*arguments)
                result = real(*arguments)
                if name == "open":
                    self._opened[result] = os.fspath(arguments[0])
                elif name == "fsync":
                    self._sync(self._opened[arguments[0]])
                return result

        return step

    @property
    def failed(self) -> bool:
        return self.at is not None and self.count >= self.at

    # ---- a loss of power

    def lose(self) -> None:
        """Undo what was not synced, as a loss of power may."""
        for _, undo in reversed(self._undo):
            undo()

    def _sync(self, path: str) -> None:
        self._synced.add(path)
        self._undo = [(folder, undo) for folder, undo in self._undo if folder != path]

    def _undo_replace(self, old: Any, new: Any) -> None:
        old, new = os.fspath(old), os.fspath(new)
        whole = os.path.isdir(old) or os.path.islink(old) or old in self._synced
        self._synced.discard(old)
        before = _kept(new)

        def undo() -> None:
            if os.path.isdir(new) and not os.path.islink(new):
                os.rename(new, old)
            elif not before():
                Path(new).unlink()
            if not whole and os.path.exists(new):
                Path(new).write_bytes(b"")

        self._undo.append((os.path.dirname(new), undo))

    def _undo_mkdir(self, path: Any, *mode: int) -> None:
        place = os.fspath(path)
        self._undo.append((os.path.dirname(place), lambda: shutil.rmtree(place, ignore_errors=True)))

    def _undo_unlink(self, path: Any) -> None:
        place = os.fspath(path)
        if os.path.lexists(place):
            self._undo.append((os.path.dirname(place), _kept(place)))


def _kept(place: str) -> Callable[[], bool]:
    """What puts a file or link back as it is now; returns whether there was one."""
    if os.path.islink(place):
        target = os.readlink(place)

        def link() -> bool:
            Path(place).unlink(missing_ok=True)
            os.symlink(target, place)
            return True

        return link
    if not os.path.isfile(place):
        return lambda: False
    content = Path(place).read_bytes()
    return lambda: Path(place).write_bytes(content) is not None
