"""The segments of a spool, as they are read. Spark's workers import this module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

SCHEMA = pa.schema(
    [
        pa.field("value", pa.binary()),
        pa.field("received", pa.timestamp("us", "UTC")),
        pa.field("event", pa.string()),
        pa.field("id", pa.string()),
    ]
)
HEADER = 8
"""The bytes of the number that says where the valid part of a segment ends: one word, which is written and
read at once.
"""


def header_of(end: int) -> bytes:
    """The header of a segment whose valid part ends at a byte."""
    return end.to_bytes(HEADER, "little")


@dataclass(frozen=True)
class Segment:
    """A segment."""

    number: int
    path: Path

    def end(self) -> int:
        """Where the valid part ends. Raises OSError."""
        with open(self.path, "rb") as file:
            header = file.read(HEADER)
        return int.from_bytes(header, "little") if len(header) == HEADER else HEADER

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[pa.RecordBatch]:
        """The commits between two bytes; by default all."""
        yield from (batch for batch, _ in self.commits(start, end))

    def commits(self, start: int = 0, end: int | None = None) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The same, with the byte behind each."""
        stop = self.end() if end is None else end
        with pa.OSFile(str(self.path)) as file:
            file.seek(max(start, HEADER))
            while file.tell() < stop:
                batch = pa.ipc.read_record_batch(pa.ipc.read_message(file), SCHEMA)
                yield batch, file.tell()


def segments_of(folder: Path) -> list[Segment]:
    """The segments of a spool, the oldest first; none where there is no such folder."""
    names = (path for path in folder.glob("*.arrow") if re.fullmatch(r"\d{8,}", path.stem))
    return sorted((Segment(int(path.stem), path) for path in names), key=lambda segment: segment.number)
