"""A lock between processes: a file, whose lock the kernel releases when its process is killed. It is taken
before the first prompt, so this module imports little.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from streamsql.runtime.embedded.durable_files import only_owner

_POLL = 0.01


class Locked(Exception):
    """Another process holds the lock."""


class Lock:
    """Held from now on until it is released."""

    def __init__(self, file: Path, wait: float) -> None:
        """wait: the seconds to wait for it. Raises Locked, OSError when the file cannot be locked."""
        self._file = file
        until = time.monotonic() + wait
        while (taken := _try(file)) is None:
            if time.monotonic() >= until:
                raise Locked
            time.sleep(_POLL)
        self._opened = taken

    def release(self) -> None:
        with contextlib.suppress(OSError):  # other users could not see who locks a file that stays
            self._file.unlink()
        os.close(self._opened)


def _try(file: Path) -> int | None:
    """The file, open and locked; None if another process has locked it."""
    opened = only_owner(str(file), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(opened).st_nlink:  # another process may have released, and so removed it
            return opened
    except BlockingIOError:
        pass
    except BaseException:
        os.close(opened)
        raise
    os.close(opened)
    return None
