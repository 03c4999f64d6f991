"""Access to the files of a checkpoint: the interface, and the local file system, from which the micro-batch
under way is read without Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol


class Entry(NamedTuple):
    """A file or folder. size: bytes; written: seconds since 1970."""

    name: str
    is_folder: bool
    size: int
    written: float


class Files(Protocol):
    """Access to the files of a checkpoint. All methods raise FileNotFoundError or OSError."""

    def entries(self, folder: str) -> list[Entry]: ...

    def names(self, folder: str) -> list[str]:
        """The names of the entries; of many files quicker than these."""
        ...

    def written(self, path: str) -> float:
        """When a file was written, in seconds since 1970."""
        ...

    def read(self, path: str) -> bytes: ...

    def size(self, folder: str) -> tuple[int, int]:
        """(bytes, number of files) of a folder, including its sub-folders."""
        ...


class LocalFiles:
    """The local file system."""

    def entries(self, folder: str) -> list[Entry]:
        entries = []
        with os.scandir(folder) as found:
            for entry in found:
                try:
                    stat = entry.stat()
                    entries.append(Entry(entry.name, entry.is_dir(), stat.st_size, stat.st_mtime))
                except FileNotFoundError:
                    pass  # a running query has just removed it
        return entries

    def names(self, folder: str) -> list[str]:
        return os.listdir(folder)

    def written(self, path: str) -> float:
        return os.stat(path).st_mtime

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def size(self, folder: str) -> tuple[int, int]:
        total, count = 0, 0
        for place, _, names in os.walk(folder):
            for name in names:
                try:
                    total += os.stat(f"{place}/{name}").st_size
                    count += 1
                except OSError:
                    pass  # a running query has just removed it
        return total, count


def local_path(folder: str) -> str | None:
    """The path of a folder on the local file system (no scheme, or `file:`); None for another folder."""
    if folder.startswith("file:"):
        return "/" + folder.removeprefix("file:").lstrip("/")
    scheme, colon, _ = folder.partition(":/")
    return None if colon and scheme.isalnum() else folder


def batch_under_way(checkpoint: str) -> str:
    """What a query reads now, `the first micro-batch: 1,900 files`; "" if no micro-batch is under way, or the
    checkpoint is not local.
    """
    place = local_path(checkpoint)
    if place is None:
        return ""
    folder = Path(place)
    number = max(_numbers(folder / "offsets"), default=-1)
    committed = max(_numbers(folder / "commits"), default=-1)
    # The files of the first micro-batch are listed before it has a number.
    files = sum(_count(source / "0") for source in _sources(folder)) if number < 1 else 0
    if committed >= max(number, 0) or (number < 0 and not files):
        return ""
    batch = "the first micro-batch" if number < 1 else f"micro-batch {number}"
    return batch + (f": {files:,} file{'' if files == 1 else 's'}" if files else "")


def _sources(folder: Path) -> list[Path]:
    """The logs of file sources: a file for each micro-batch, with a line for each file that it reads."""
    try:
        return list((folder / "sources").iterdir())
    except OSError:
        return []


def _numbers(folder: Path) -> Iterator[int]:
    try:
        yield from (int(file.name) for file in folder.iterdir() if file.name.isdigit())
    except OSError:
        return


def _count(log: Path) -> int:
    """The files that a log lists, below the line with its version; other sources have other logs."""
    try:
        return log.read_bytes().count(b'\n{"path"')
    except OSError:
        return 0
