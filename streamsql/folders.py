"""Where the console keeps what is its own, by the XDG base directory rules."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> Path:
    """What the prompt remembers from one time to the next: its history."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "streamsql"


def cache_folder() -> Path:
    """What can be made again: start-up caches and the log of Spark. Created when missing."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "streamsql"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        import tempfile

        folder = Path(tempfile.mkdtemp(prefix="streamsql-cache-"))
    return folder
