"""Where the console keeps what is its own: by the XDG base directory rules on Linux."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import PlatformDirs

_NAME = "streamsql"


def _dirs() -> PlatformDirs:
    if not os.path.isabs(os.path.expanduser("~")):
        os.environ["HOME"] = "/"  # a user without a name and without HOME: as container engines set it
    return PlatformDirs(_NAME, appauthor=False)


def config_folder() -> Path:
    """Where a person's config.toml and init.sql are looked for; never written."""
    return _dirs().user_config_path


def state_folder() -> Path:
    """What the prompt remembers from one time to the next: its history."""
    return _dirs().user_state_path


def data_folder() -> Path:
    """Where the prompt's workspace is, unless another one is named."""
    return _dirs().user_data_path


def cache_folder() -> Path:
    """What can be made again: start-up caches and the log of Spark. Created when missing; for its owner
    only.
    """
    folder = _dirs().user_cache_path
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_mode & 0o077 and folder.stat().st_uid == os.geteuid():
            folder.chmod(0o700)  # one that an older console made; the log may hold rows
    except OSError:
        import tempfile

        folder = Path(tempfile.mkdtemp(prefix="streamsql-cache-"))
    return folder
