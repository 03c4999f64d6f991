"""Where the checkpoints of queries over the same streams stand, and the numbers of their micro-batches."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint
from streamsql.runtime.embedded.durable_files import write_file
from streamsql.runtime.evidence.source_files import files_of_source

_LOGS = ("offsets", "commits")


def position(checkpoint: Path) -> dict[str, Any] | None:
    """What a stopped query has read of each source: the offset, or the names of the files. None before its
    first micro-batch. Raises OSError, ValueError.
    """
    newest = _newest(checkpoint, "commits")
    if newest < 0:
        return None
    log = Checkpoint(str(checkpoint))
    batch = log.batch(newest)
    if batch is None or batch.planned is None:
        raise ValueError(batch.damage if batch else f"offsets/{newest} is missing")
    return {source: _read_of(log, source, offset) for source, offset in batch.planned.offsets.items()}


def _read_of(checkpoint: Checkpoint, source: str, offset: str | None) -> Any:
    value = json.loads(offset) if offset else None
    is_of_files = isinstance(value, dict) and value.keys() == {"logOffset"}
    return files_of_source(checkpoint, source).keys() if is_of_files else value


def newest_batch(checkpoint: Path) -> int:
    """The number of the newest micro-batch that a checkpoint has planned; -1 without one."""
    return _newest(checkpoint, "offsets")


def keeps_state(checkpoint: Path) -> bool:
    return (checkpoint / "state").exists()


def renumber(checkpoint: Path, number: int) -> None:
    """Let the next micro-batch of a stopped query without state have a number behind this one. Raises
    OSError.
    """
    newest = _newest(checkpoint, "commits")
    if newest < 0 or newest >= number:
        return
    for log in _LOGS:
        content = (checkpoint / log / str(newest)).read_bytes()
        for n in (number - 1, number):  # Spark reads two, the newest commit last
            if n > newest:
                write_file(checkpoint / log / str(n), lambda file, content=content: file.write(content))
        for crc in (checkpoint / log).glob(".*.crc"):
            crc.unlink()


def begin_anew(checkpoint: Path, number: int) -> None:
    """Let a stopped query begin with the first rows of its streams. number: its first micro-batch has a
    number behind this one; -1 begins with 0, which a query with state does. Raises OSError.
    """
    newest = _newest(checkpoint, "offsets")
    head = (checkpoint / "offsets" / str(newest)).read_text("utf-8").splitlines() if newest >= 0 else []
    shutil.rmtree(checkpoint, ignore_errors=True)
    if number < 0 or not head:
        return
    version, settings, *offsets = head
    own = json.loads(settings) | {"batchWatermarkMs": 0}
    planned = "\n".join([version, json.dumps(own), *("-" for _ in offsets)]).encode()
    for log, content in (("offsets", planned), ("commits", b'v1\n{"nextBatchWatermarkMs":0}')):
        (checkpoint / log).mkdir(parents=True)
        for n in range(max(0, number - 1), number + 1):
            write_file(checkpoint / log / str(n), lambda file, content=content: file.write(content))
    identity = json.dumps({"id": str(uuid.uuid4())}).encode()
    write_file(checkpoint / "metadata", lambda file: file.write(identity))


def _newest(checkpoint: Path, log: str) -> int:
    names = (path.name for path in (checkpoint / log).glob("[0-9]*"))
    return max((int(name) for name in names if name.isdigit()), default=-1)
