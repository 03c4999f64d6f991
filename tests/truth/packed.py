"""Unpacks the collections of tests/truth/data. Its README says what each of them is."""

from __future__ import annotations

import atexit
import tarfile
import tempfile
from functools import cache
from pathlib import Path

DATA = Path(__file__).with_name("data")


@cache
def unpacked(collection: str) -> Path:
    """The folder with the files of a collection, such as nexmark. It is unpacked once in a process, and removed
    at the end of the process. Raises FileNotFoundError for a name without a packed file.
    """
    folder = tempfile.TemporaryDirectory(prefix=f"streamsql-{collection}-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    with tarfile.open(DATA / f"{collection}.tar.xz") as packed:
        packed.extractall(folder.name, filter="data")
    return Path(folder.name) / collection
