"""The Python Data Source that reads a spool. Spark's workers import this module.

An offset names a segment and a byte in it: the next commit. Options: path, the folder; maxRowsPerTrigger;
startingOffsets and endingOffsets, as JSON, of a static DataFrame.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from streamsql.features.receivers.segments import HEADER, Segment, segments_of

Offset = dict[str, int]


@dataclass
class Range(InputPartition):
    """The commits of a segment between two bytes."""

    segment: Segment
    start: int
    end: int


def _newest(folder: Path) -> Offset:
    """The offset behind all that is there."""
    segments = segments_of(folder)
    return {"segment": segments[-1].number, "byte": segments[-1].end()} if segments else _oldest(folder)


def _oldest(folder: Path) -> Offset:
    segments = segments_of(folder)
    return {"segment": segments[0].number if segments else 1, "byte": 0}


def _ranges(folder: Path, start: Offset, end: Offset) -> list[Range]:
    """The commits from one offset to another. Raises ValueError where some have been deleted."""
    wanted = range(start["segment"], end["segment"] + 1)
    by_number = {segment.number: segment for segment in segments_of(folder)}
    ranges = []
    for number in wanted:
        segment = by_number.get(number)
        if segment is None:
            if start == end:
                return []
            raise ValueError(
                "messages that were not read yet have been deleted, since they were older than the option "
                "retention of the stream. START QUERY … FROM BEGINNING; goes on with the oldest message"
            )
        first = start["byte"] if number == start["segment"] else 0
        last = end["byte"] if number == end["segment"] else segment.end()
        if first < last and last > HEADER:
            ranges.append(Range(segment, first, last))
    return ranges


def _rows(partition: InputPartition | None) -> Iterator[Any]:
    """The commits of a partition. Spark reads one that is None where there is none."""
    return (
        partition.segment.batches(partition.start, partition.end)
        if isinstance(partition, Range)
        else iter(())
    )


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what is appended."""

    def __init__(self, folder: Path, most: int | None) -> None:
        self.folder = folder
        self.most = most
        self.target: Offset | None = None

    def initialOffset(self) -> Offset:
        return _oldest(self.folder)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.most) if self.most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = _newest(self.folder)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        newest = self.target or _newest(self.folder)
        if not isinstance(limit, ReadMaxRows):
            return newest
        rows, end = 0, start
        for part in _ranges(self.folder, start, newest):
            for batch, byte in part.segment.commits(part.start, part.end):
                rows, end = rows + batch.num_rows, {"segment": part.segment.number, "byte": byte}
                if rows >= limit.max_rows:
                    return end
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return _ranges(self.folder, start, end)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _rows(partition)


class Reader(DataSourceReader):
    """Reads what is there."""

    def __init__(self, folder: Path, start: str, end: str) -> None:
        self.folder = folder
        self.start: Offset = json.loads(start or "null") or _oldest(folder)
        self.end: Offset = json.loads(end or "null") or _newest(folder)

    def partitions(self) -> Sequence[InputPartition]:
        return _ranges(self.folder, self.start, self.end)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _rows(partition)


class Spool(DataSource):
    """The spool in a folder, as a stream and as a static DataFrame."""

    @classmethod
    def name(cls) -> str:
        return "streamsql_spool"

    def schema(self) -> str:
        return "value BINARY, received TIMESTAMP, event STRING, id STRING"

    def streamReader(self, schema: Any) -> StreamReader:
        most = self.options.get("maxRowsPerTrigger")
        return StreamReader(Path(self.options["path"]), int(most) if most else None)

    def reader(self, schema: Any) -> Reader:
        offsets = (self.options.get(name) or "" for name in ("startingOffsets", "endingOffsets"))
        return Reader(Path(self.options["path"]), *offsets)
