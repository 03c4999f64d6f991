"""Recognizes errors of a full disk."""

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
    """Whether the text of an exception, including its class, says that a disk is full."""
    return bool(_SAID.search(text))


def full_disk(places: Iterable[str]) -> str:
    """A sentence about the first folder that is on a full disk; empty when none is."""
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
