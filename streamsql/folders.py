"""Where the console keeps what is its own, by the XDG base directory rules."""

from __future__ import annotations

import os
from pathlib import Path


def config_folder() -> Path:
    """Where a person's config.toml and init.sql are looked for; never written."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "streamsql"


def state_folder() -> Path:
    """What the prompt remembers from one time to the next: its history."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "streamsql"


def data_folder() -> Path:
    """Where the prompt's workspace is, unless another one is named."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
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
