"""What a query has recorded about its micro-batches, and whether the rows of a live table fit that."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from streamsql.runtime.checkpoints.checkpoint_files import CheckpointFolder, LocalFiles

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import LiveRows

FROM_NOW = "streamsql.from_now"
"""The file in a checkpoint whose first micro-batch has passed over the input that was there."""
LATE_ROWS = "late_rows"
"""The folder in a checkpoint in which LateRowsWriter records what it has written."""


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
    committed, planned = checkpoint.newest("commits"), checkpoint.newest("offsets")
    if committed == 0 and checkpoint.has(FROM_NOW):
        committed = -1  # its rows are not in the live table
    return Recorded(checkpoint.query_id(), committed, max(planned, committed), committed >= 0)


def of_late_rows(checkpoint: CheckpointFolder) -> Recorded:
    """The record of the late rows of a streaming query: the notes of LateRowsWriter. Raises OSError."""
    query, notes = checkpoint.query_id(), checkpoint.names(LATE_ROWS)
    numbers = [int(number) for _, dash, number in (name.partition("-") for name in notes) if dash]
    own = str(uuid.uuid5(uuid.UUID(query), LATE_ROWS)) if query else ""
    return Recorded(own, -1, max(numbers, default=-1), bool(numbers))


def of_changes(folder: Path) -> Recorded:
    """The record of a query over live tables: the folder of its ChangeLog. Raises OSError, ValueError."""
    written = CheckpointFolder(LocalFiles(), str(folder))
    versions = [name.partition(".")[::2] for name in written.names("")]
    numbers = [int(version) for version, kind in versions if kind in ("all", "next")]
    query = str(json.loads(written.read("kind.json") or "{}").get("query", ""))
    return Recorded(query, -1, max(numbers, default=-1), any(kind == "all" for _, kind in versions))


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
