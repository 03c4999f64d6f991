"""The workspace folder of a prompt, which one console holds at a time."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from datetime import datetime
from pathlib import Path

from streamsql.runtime.engine.file_lock import Lock, Locked
from streamsql.runtime.workspace import marker
from streamsql.runtime.workspace.owned_folders import private

_WAIT = 0.1
"""The seconds to wait for the lock: `holder` in another console may have it for a moment."""


class Held(Exception):
    """Another console holds the workspace. who: which one."""

    def __init__(self, folder: Path, who: str) -> None:
        super().__init__(f"the workspace {folder} is held by {who}")
        self.folder = folder
        self.who = who


class Workspace:
    """A workspace that this process holds until it ends; the kernel releases the lock if it is killed.

    `run` contains the checkpoints and the rows of live tables; the definitions are beside it.
    """

    def __init__(self, folder: Path, *, trusted: bool = False) -> None:
        """trusted: accept any owner. Raises UsageFault for a folder that is not a workspace and cannot become
        one, Held when another console holds it, OSError when it cannot be written.
        """
        marker.check(folder, trusted=trusted)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not trusted:  # a trusted folder may be shared on purpose
            folder.chmod(0o700)
        self.folder = folder
        try:
            self._lock = Lock(folder / "lock", _WAIT)
        except Locked:
            raise Held(folder, _who(folder)) from None
        try:
            self._take(trusted)
        except BaseException:
            self._lock.release()
            raise

    def _take(self, trusted: bool) -> None:
        """Check the folder again, now that the lock is held, and write the marker and the holder."""
        if not marker.check(self.folder, trusted=trusted) or not marker.is_of_now(self.folder):
            marker.write(self.folder)  # before anything is moved: an earlier version refuses it from now on
        with contextlib.suppress(OSError):  # on a full disk others do not see who holds it
            write_holder(self.folder)
        self.run = self.folder / "run"
        self.run.mkdir(mode=0o700, exist_ok=True)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            (self.folder / "holder.json").unlink(missing_ok=True)
        self._lock.release()


def write_holder(folder: Path, kind: str = "another console") -> None:
    """Tell others which process holds a workspace. Raises OSError."""
    try:
        terminal = os.ttyname(sys.stdin.fileno())
    except (OSError, ValueError, AttributeError):
        terminal = ""
    since = datetime.now().isoformat(" ", "seconds")
    content = {"version": 1, "pid": os.getpid(), "since": since, "terminal": terminal, "kind": kind}
    with open(folder / "holder.json", "w", encoding="utf-8", opener=private) as out:
        out.write(json.dumps(content))


def holder(folder: Path) -> str:
    """A description of the console that holds a workspace; empty when none does. Changes nothing."""
    if not (folder / "lock").exists():
        return ""
    try:
        # Without holder.json the lock may be held for a moment by another call of this function.
        wait = 0 if (folder / "holder.json").exists() else _WAIT
        Lock(folder / "lock", wait).release()
        return ""
    except (Locked, PermissionError):
        return _who(folder)
    except OSError:
        return ""  # nobody can hold a workspace on a read-only file system


def _who(folder: Path) -> str:
    """A description of the console that wrote holder.json."""
    try:
        content = json.loads((folder / "holder.json").read_text("utf-8"))
        where = f" on {content['terminal']}" if content["terminal"] else ""
        kind = content.get("kind", "another console")
        return f"{kind} (process {content['pid']}{where}, since {content['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another console"
