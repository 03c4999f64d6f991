"""The files of a checkpoint, on the local file system without Spark or with Hadoop's on any other."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from streamsql.runtime.embedded.durable_files import move, remove_file, write_file

MARKER = "streamsql.json"
"""The file in which the console records the query that owns a checkpoint."""


class Entry(NamedTuple):
    """A file or folder. size: bytes."""

    name: str
    is_folder: bool
    size: int


class Files(Protocol):
    """A file system. All methods raise FileNotFoundError or OSError."""

    def entries(self, folder: str) -> list[Entry]: ...

    def names(self, folder: str) -> list[str]:
        """The names of the entries, without the checksums that Hadoop hides; of many files quicker than
        these.
        """
        ...

    def written(self, path: str) -> float:
        """When a file or folder was written, in seconds since 1970."""
        ...

    def read(self, path: str) -> bytes: ...

    def size(self, folder: str) -> tuple[int, int]:
        """(bytes, number of files) of a folder, including its sub-folders."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Create or replace a file at once, so that a crash leaves no part of it."""
        ...

    def rename(self, path: str, other: str) -> None: ...

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it."""
        ...


class LocalFiles:
    """The local file system."""

    def entries(self, folder: str) -> list[Entry]:
        entries = []
        with os.scandir(folder) as found:
            for entry in found:
                try:
                    stat = entry.stat()
                    entries.append(Entry(entry.name, entry.is_dir(), stat.st_size))
                except FileNotFoundError:
                    pass  # a running query has just removed it
        return entries

    def names(self, folder: str) -> list[str]:
        return [name for name in os.listdir(folder) if not (name[0] == "." and name.endswith(".crc"))]

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

    def write(self, path: str, content: bytes) -> None:
        remove_file(_checksum_of(path))
        write_file(path, lambda out: out.write(content))

    def rename(self, path: str, other: str) -> None:
        move(path, other)

    def delete(self, path: str) -> None:
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            remove_file(_checksum_of(path))
            os.unlink(path)


def _checksum_of(path: str) -> str:
    """The file in which Hadoop keeps the checksum of another."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.crc")


class CheckpointFolder:
    """The files of a checkpoint, by their paths in its folder. Its methods raise OSError."""

    def __init__(self, files: Files, root: str) -> None:
        self.files = files
        self.root = root

    def read(self, name: str) -> str:
        """The text of a file; empty if it does not exist."""
        try:
            return self.files.read(f"{self.root}/{name}").decode("utf-8")
        except FileNotFoundError:
            return ""

    def has(self, name: str) -> bool:
        try:
            self.files.written(f"{self.root}/{name}")
        except FileNotFoundError:
            return False
        return True  # a store of objects may have no time of a folder

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder; none if it does not exist."""
        try:
            return self.files.names(f"{self.root}/{folder}")
        except FileNotFoundError:
            return []

    def newest(self, log: str) -> int:
        """The number of the newest micro-batch in one of Spark's logs; -1 when there is none."""
        numbers = (name.partition(".")[0] for name in self.names(log))
        return max((int(number) for number in numbers if number.isdigit()), default=-1)

    def record(self) -> dict[str, Any]:
        """The record of the query that owns the checkpoint (query, text, facts, code); {} without one. Raises
        ValueError where it is damaged.
        """
        if not self.has(MARKER):
            return {}
        content = json.loads(self.read(MARKER))
        if not isinstance(content, dict) or not isinstance(content.get("facts", {}), dict):
            raise ValueError("it is no record of a query")
        return content

    def marker(self) -> dict[str, Any]:
        """The same; {} also where it is damaged or cannot be read."""
        with suppress(OSError, ValueError):
            return self.record()
        return {}

    def query_id(self) -> str:
        """The id of the checkpoint, as Spark has written it; "" without one."""
        try:
            return str(uuid.UUID(json.loads(self.read("metadata"))["id"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return ""


def local_folder(checkpoint: str) -> CheckpointFolder | None:
    """A checkpoint that can be read without Spark; None for another."""
    path = local_path(checkpoint)
    return None if path is None else CheckpointFolder(LocalFiles(), path)


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
    folder = local_folder(checkpoint)
    if folder is None:
        return ""
    number = committed = -1
    with suppress(OSError):
        number, committed = folder.newest("offsets"), folder.newest("commits")
    # The files of the first micro-batch are listed before it has a number.
    files = sum(map(_count, Path(folder.root, "sources").glob("*/0"))) if number < 1 else 0
    if committed >= max(number, 0) or (number < 0 and not files):
        return ""
    batch = "the first micro-batch" if number < 1 else f"micro-batch {number}"
    return batch + (f": {files:,} file{'' if files == 1 else 's'}" if files else "")


def _count(log: Path) -> int:
    """The files that a micro-batch reads, by the log of a file source: a line for each, below that of its
    version. Other sources have other logs.
    """
    try:
        return log.read_bytes().count(b'\n{"path"')
    except OSError:
        return 0
