"""The spool of a stream: the messages that the console has received, in files that only grow.

A folder has segments 00000001.arrow, 00000002.arrow …; one is the number of its bytes that are valid, then a
record batch of Arrow's IPC format for each commit. A commit is on the disk before that number counts it, and
the number is on the disk before the commit is confirmed. What is behind the valid part is not read.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from streamsql.features.receivers.segments import HEADER, SCHEMA, header_of, segments_of
from streamsql.runtime.embedded.durable_files import only_owner, sync_folder

SEGMENT_BYTES = 32 << 20
"""The size at which the next segment begins."""


@dataclass(frozen=True)
class Message:
    """A message that came in. event, id: of a server-sent event; None for others."""

    value: bytes
    event: str | None = None
    id: str | None = None


@dataclass
class _Commit:
    """Messages that are to be on the disk together, and what became of them."""

    messages: list[Message] = field(default_factory=list)
    done: bool = False
    error: Exception | None = None


class Spool:
    """Writes the spool in a folder, which exists. One process writes it; its threads may append at any time.

    retention: the seconds after which a segment is deleted; None keeps all.
    """

    def __init__(self, folder: Path, retention: float | None = None) -> None:
        self.folder = folder
        self.retention = retention
        self.messages = 0
        """The number of messages since it was opened."""
        self.newest = 0.0
        """The time of the newest of these, in seconds since 1970; 0 without one."""
        self._id = ""
        self._writing = threading.Lock()
        self._waiting = threading.Lock()
        self._next = _Commit()
        self._file: int | None = None
        self._end = 0
        self._begun = 0.0

    def append(self, messages: Sequence[Message]) -> None:
        """Write messages; they are on the disk when it returns. Calls that come together share a commit.
        Raises OSError; then none of these messages counts.
        """
        with self._waiting:
            commit = self._next
            commit.messages += messages
        with self._writing:
            if not commit.done:
                with self._waiting:
                    self._next = _Commit()
                self._write(commit)
        if commit.error is not None:
            raise commit.error

    def _write(self, commit: _Commit) -> None:
        try:
            if commit.messages:
                self._commit(commit.messages)
        except Exception as error:
            commit.error = error
            self._close()  # what the file holds behind its valid part is not read
        commit.done = True

    def _commit(self, messages: Sequence[Message]) -> None:
        now = time.time()
        old = self.retention is not None and now - self._begun > self.retention / 4
        if self._file is None or self._end > SEGMENT_BYTES or old:
            self._begin_segment(now)
        assert self._file is not None
        columns = [
            pa.array([m.value for m in messages], pa.binary()),
            pa.array([int(now * 1_000_000)] * len(messages), pa.int64()).cast(pa.timestamp("us", "UTC")),
            pa.array([m.event for m in messages], pa.string()),
            pa.array([m.id for m in messages], pa.string()),
        ]
        data = pa.record_batch(columns, schema=SCHEMA).serialize()
        _write_all(self._file, data, self._end)
        _sync(self._file)
        end = self._end + data.size
        _write_all(self._file, header_of(end), 0)
        try:
            _sync(self._file)
        except OSError:
            _write_all(self._file, header_of(self._end), 0)  # the sender will send it again
            raise
        self._end = end
        self.messages += len(messages)
        self.newest = now
        self._id = next((m.id for m in reversed(messages) if m.id), self._id)

    def _begin_segment(self, now: float) -> None:
        self._close()
        segments = segments_of(self.folder)
        if self.retention is not None:
            for segment in segments[:-1]:
                if now - segment.path.stat().st_mtime > self.retention:
                    segment.path.unlink(missing_ok=True)
        number = segments[-1].number + 1 if segments else 1
        path = self.folder / f"{number:08}.arrow"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        self._file = only_owner(path, flags)
        self._begun, self._end = now, HEADER
        _write_all(self._file, header_of(HEADER), 0)
        os.fsync(self._file)
        sync_folder(str(self.folder))

    def is_empty(self) -> bool:
        """Whether it has no message."""
        return all(segment.end() == HEADER for segment in segments_of(self.folder))

    def last_id(self) -> str:
        """The newest id of a server-sent event in the last two segments; "" if there is none."""
        if self._id:
            return self._id
        for segment in reversed(segments_of(self.folder)[-2:]):
            ids = [id for batch in segment.batches() for id in batch.column("id").to_pylist() if id]
            if ids:
                return str(ids[-1])
        return ""

    def close(self) -> None:
        """Close its file, after what is being written."""
        with self._writing:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _write_all(file: int, data: bytes | pa.Buffer, at: int) -> None:
    view = memoryview(data).cast("B")
    while view:
        written = os.pwrite(file, view, at)
        view, at = view[written:], at + written


def _sync(file: int) -> None:
    os.fdatasync(file) if hasattr(os, "fdatasync") else os.fsync(file)  # macOS has no fdatasync
