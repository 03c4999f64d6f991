"""What a query has recorded about its micro-batches, and whether the rows of a live table fit that."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from streamsql.runtime.checkpoints.checkpoint_files import local_path

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import LiveRows

FROM_NOW = "streamsql.from_now"
"""The file in a checkpoint whose first micro-batch has passed over the input that was there."""
LATE_ROWS = "late_rows"
"""The folder in a checkpoint in which LateRowsWriter records what it has written."""


class CheckpointFolder(Protocol):
    """The files of a checkpoint."""

    def read(self, name: str) -> str:
        """The text of a file; empty if it does not exist."""
        ...

    def has(self, name: str) -> bool: ...

    def names(self, folder: str) -> Iterable[str]:
        """The names of the files in a folder; none if it does not exist."""
        ...


class LocalCheckpoint:
    """A checkpoint on the local file system. Its methods raise OSError."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text("utf-8")
        except FileNotFoundError:
            return ""

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def names(self, folder: str) -> list[str]:
        try:
            # Hadoop hides its checksums, too.
            return [name for name in os.listdir(self.folder / folder) if not name.startswith(".")]
        except FileNotFoundError:
            return []


@dataclass(frozen=True)
class Recorded:
    """What is recorded about the micro-batches whose rows a live table has.

    query: the id that the rows carry; "" where nothing is recorded. written: the newest micro-batch whose
    rows are certainly in the live table; -1 if that is not known. planned: the newest one whose rows may be
    there. begun: the live table was begun, so that it has files.
    """

    query: str
    written: int
    planned: int
    begun: bool


def of_checkpoint(checkpoint: CheckpointFolder) -> Recorded:
    """The record of a streaming query: its checkpoint. Raises OSError."""
    committed, planned = _newest(checkpoint, "commits"), _newest(checkpoint, "offsets")
    if committed == 0 and checkpoint.has(FROM_NOW):
        committed = -1  # its rows are not in the live table
    return Recorded(checkpoint_id(checkpoint), committed, max(planned, committed), committed >= 0)


def of_late_rows(checkpoint: CheckpointFolder) -> Recorded:
    """The record of the late rows of a streaming query: the notes of LateRowsWriter. Raises OSError."""
    query, notes = checkpoint_id(checkpoint), list(checkpoint.names(LATE_ROWS))
    numbers = [int(number) for _, dash, number in (name.partition("-") for name in notes) if dash]
    own = str(uuid.uuid5(uuid.UUID(query), LATE_ROWS)) if query else ""
    return Recorded(own, -1, max(numbers, default=-1), bool(numbers))


def of_changes(folder: Path) -> Recorded:
    """The record of a query over live tables: the folder of its ChangeLog. Raises OSError, ValueError."""
    written, names = LocalCheckpoint(str(folder)), os.listdir(folder) if folder.is_dir() else []
    versions = [name.partition(".")[::2] for name in names]
    numbers = [int(version) for version, kind in versions if kind in ("all", "next")]
    query = str(json.loads(written.read("kind.json") or "{}").get("query", ""))
    return Recorded(query, -1, max(numbers, default=-1), any(kind == "all" for _, kind in versions))


def is_local(checkpoint: str) -> bool:
    """Whether a checkpoint can be read without Spark."""
    return local_path(checkpoint) is not None


def local(checkpoint: str) -> LocalCheckpoint:
    """A checkpoint for which `is_local` holds."""
    path = local_path(checkpoint)
    assert path is not None
    return LocalCheckpoint(path)


def misfit(rows: LiveRows | None, recorded: Recorded) -> str:
    """Why rows do not fit what is recorded about their query; empty if they do."""
    if rows is None:
        return "the files of its rows are gone, and its query has written rows" if recorded.begun else ""
    last = rows.last_batch
    if last >= 0 and not recorded.query:
        return f"it has rows up to micro-batch {last}, and the checkpoint of its query is gone"
    if rows.query is not None and rows.query != recorded.query:
        return "its rows are of another checkpoint than the one that its query has now"
    if last < recorded.written:
        has = f"its rows end with micro-batch {last}" if last >= 0 else "it has no rows"
        return f"{has}, and the checkpoint of its query has committed micro-batch {recorded.written}"
    if last > recorded.planned:
        has = f"the checkpoint of its query ends with micro-batch {recorded.planned}"
        return f"its rows end with micro-batch {last}, and {has if recorded.planned >= 0 else 'it is empty'}"
    return ""


def checkpoint_id(checkpoint: CheckpointFolder) -> str:
    """The id of a checkpoint, as Spark has written it; "" without one. Raises OSError."""
    try:
        return str(uuid.UUID(json.loads(checkpoint.read("metadata"))["id"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""


def _newest(checkpoint: CheckpointFolder, log: str) -> int:
    return max((int(name) for name in checkpoint.names(log) if name.isdigit()), default=-1)
