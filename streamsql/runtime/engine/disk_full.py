"""A full disk, in plain words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

NO_SPACE = "no space left on device"
_SAID = re.compile(
    r"(?:IOException: |\[[Ee]rrno 28\] )No space left on device|"
    r"(?:IOException: |\[[Ee]rrno 122\] )Disk quota exceeded|\[SQLITE_FULL\]"
)
_LITTLE = 256 * 1024


def is_no_space(text: str) -> bool:
    """Whether the text of an exception, with its class and all, says that a disk is full."""
    return bool(_SAID.search(text))


def full_disk(places: Iterable[str]) -> str:
    """Which of some folders lies on a full disk, in words; empty when none of them does (any more)."""
    for place in places:
        folder = Path(place.removeprefix("file://").removeprefix("file:")).absolute()
        try:
            there = next(p for p in (folder, *folder.parents) if p.exists())
            disk = os.statvfs(there)
        except (OSError, StopIteration, ValueError):
            continue
        if disk.f_bavail * disk.f_frsize < _LITTLE:
            return f"the disk of {there} is full"
    return ""
