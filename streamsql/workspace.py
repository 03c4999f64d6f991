"""The folder that a prompt works in, held by one console at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import IO


class Held(Exception):
    """Another console holds the workspace; `who` tells which one."""

    def __init__(self, folder: Path, who: str) -> None:
        super().__init__(f"the workspace {folder} is held by {who}")
        self.folder = folder
        self.who = who


class Workspace:
    """A workspace that this process holds until it ends, however it ends: the lock is the kernel's.

    Checkpoints and what queries keep stand in `run`; the definitions beside it.
    """

    def __init__(self, folder: Path) -> None:
        """Raises Held when another console has it, OSError when the folder cannot be written."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock: IO[str] = open(folder / "lock", "a+", encoding="utf-8")  # noqa: SIM115
        if not _lock(self._lock):
            who = _who(folder / "lock")
            self._lock.close()
            raise Held(folder, who) from None
        with contextlib.suppress(OSError):  # on a full disk nobody is told who holds it
            _write(self._lock, json.dumps(_me()))
        self.run = folder / "run"
        self.run.mkdir(exist_ok=True)

    def close(self) -> None:
        _write(self._lock, "")
        self._lock.close()


def _lock(lock: IO[str]) -> bool:
    """Take it. Tried a few times: `holder` of another console may have it for a moment."""
    for _ in range(5):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(0.01)
    return False


def holder(folder: Path) -> str:
    """Who holds a workspace, in words; empty when nobody does. Changes nothing."""
    try:
        with open(folder / "lock", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return ""
    except OSError:
        return _who(folder / "lock")
    return ""


def _write(lock: IO[str], text: str) -> None:
    """All that the lock file is to hold; past Python's buffer, which would try again at the end."""
    os.ftruncate(lock.fileno(), 0)
    os.write(lock.fileno(), text.encode())


def _me() -> dict[str, str | int]:
    try:
        terminal = os.ttyname(sys.stdin.fileno())
    except OSError:
        terminal = ""
    return {"pid": os.getpid(), "since": datetime.now().isoformat(" ", "seconds"), "terminal": terminal}


def _who(lock: Path) -> str:
    """Who wrote the lock file, in words."""
    try:
        known = json.loads(lock.read_text("utf-8"))
        where = f" on {known['terminal']}" if known["terminal"] else ""
        return f"another console (process {known['pid']}{where}, since {known['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another console"
