"""Reads a checkpoint without Spark: its write-ahead log, and which state stores it has.

The formats are those of Spark 4.3 (OffsetSeqLog, CommitLog, OperatorStateMetadata):

    metadata            {"id": …}, the query's id
    offsets/N           the input of micro-batch N: `v1` or `v2`, a line of JSON {batchWatermarkMs,
                        batchTimestampMs, conf} (empty for continuous queries), then a line for each source:
                        its offset as JSON, or `-` for none; in v2 after the source's id, `id:offset`
    commits/N           exists once N is committed: `v1` or `v2`, {"nextBatchWatermarkMs": …}; v2 (state
                        checkpoint format 2) also names the state's files
    state/OPERATOR/     _metadata/metadata (v1) or _metadata/v2/BATCH: its name, stores and partitions
    sources/            the files that the file source has read
    streamsql.json      the query that owns it, if the console has created it

Beside them are `.N.crc`, `.N.uuid.tmp` (an incomplete write) and `N.compact`, which are skipped. With
asynchronous progress tracking not every micro-batch is in the log: numbers may have gaps.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from streamsql.errors import InputFault, did_you_mean
from streamsql.runtime.checkpoints.checkpoint_files import (
    CheckpointFolder,
    Entry,
    Files,
    LocalFiles,
    local_path,
)

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
RETAINED = "spark.sql.streaming.minBatchesToRetain"
"""The setting for the number of micro-batches that Spark keeps, 100 by default; it is not in the log."""

DETAILED = 1_000
"""The newest micro-batches, whose files are read where all are asked for; older ones are only counted."""


_Entry = TypeVar("_Entry")


@dataclass(frozen=True)
class Planned:
    """offsets/N. watermark, at: milliseconds since 1970, None if the log has none (a watermark of 0 is
    none). conf: the settings that the checkpoint keeps; offsets: the end offset of each source as JSON
    text, by its number or id; None if it has none yet.
    """

    version: int
    offsets: Mapping[str, str | None]
    watermark: int | None = None
    at: int | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Committed:
    """commits/N. watermark: that of the next micro-batch, as in Planned. version 2: the state has checkpoint
    format 2.
    """

    version: int
    watermark: int | None = None


@dataclass(frozen=True)
class Batch:
    """A micro-batch of the log. planned: None if only its commit exists; committed: None until it is
    committed; damage: a message if one of its files cannot be read.
    """

    number: int
    planned: Planned | None
    committed: Committed | None
    damage: str = ""

    @property
    def status(self) -> str:
        """committed, planned or damaged."""
        return "damaged" if self.damage else "committed" if self.committed else "planned"


@dataclass(frozen=True)
class Store:
    """A state store of an operator."""

    name: str
    partitions: int


@dataclass(frozen=True)
class Operator:
    """A stateful operator. properties: its other metadata, such as stateVariables."""

    number: int
    name: str
    stores: tuple[Store, ...]
    properties: Mapping[str, Any] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        """The states of a stateful processor: name → kind (ValueState, ListState, MapState)."""
        listed = self.properties.get("stateVariables", ())
        return {
            v["stateName"]: v["stateVariableType"] for v in listed if v["stateVariableType"] != "TimerState"
        }

    @property
    def is_processor(self) -> bool:
        return "stateVariables" in self.properties

    @property
    def is_join(self) -> bool:
        return self.name == "symmetricHashJoin"


class Checkpoint(CheckpointFolder):
    """A checkpoint folder. Each call reads the current files. folder: as it was given."""

    def __init__(self, folder: str, files: Files | None = None) -> None:
        """files: gives access to the folder; without, it must be on the local file system (`local_path`).
        Raises InputFault when there is no such folder, or it is not a checkpoint.
        """
        root = folder if files else local_path(folder)
        if root is None:
            raise InputFault(f"{folder} is not on the local file system", code="NOT_A_CHECKPOINT")
        super().__init__(files or LocalFiles(), root.rstrip("/"))
        self.folder = folder
        try:
            names = {e.name for e in self.files.entries(self.root)}
        except FileNotFoundError:
            raise InputFault(
                f"there is no folder {self.folder}",
                hint=self._near() or "a checkpoint is a folder",
                code="MISSING_PATH",
            ) from None
        except NotADirectoryError:
            raise InputFault(
                f"{self.folder} is a file; a checkpoint is a folder", code="NOT_A_CHECKPOINT"
            ) from None
        except OSError as error:
            raise InputFault(
                f"{self.folder} cannot be read: {error.strerror or error}", code="NOT_A_CHECKPOINT"
            ) from None
        if not names & {"metadata", "offsets", "commits"}:
            within = sorted(n for n in names if not n.startswith("."))
            raise InputFault(
                f"{self.folder} is not a checkpoint",
                detail="a checkpoint holds metadata, offsets/ and commits/; "
                + (f"there is {', '.join(within[:5])}" if within else "this folder is empty"),
                code="NOT_A_CHECKPOINT",
            )

    def _near(self) -> str:
        parent, name = os.path.split(self.root)
        try:
            return did_you_mean(name, [e.name for e in self.files.entries(parent or ".") if e.is_folder])
        except OSError:
            return ""

    # ---- the query ------------------------------------------------------------------------

    @cached_property
    def id(self) -> str:
        """The query's id; "" when it cannot be read."""
        try:
            return self.query_id()
        except OSError:
            return ""

    # ---- the log --------------------------------------------------------------------------

    def planned_numbers(self) -> list[int]:
        """The numbers of the planned micro-batches in the log, oldest first."""
        return self._numbers("offsets")

    def committed_numbers(self) -> list[int]:
        """The numbers of the committed micro-batches."""
        return self._numbers("commits")

    def batches(self, last: int | None = None) -> list[Batch]:
        """The micro-batches in the log, oldest first; the newest `last` of them if that is given."""
        # Commits are listed first: a committed micro-batch has been planned before.
        done = set(self.committed_numbers())
        numbers = sorted(done | set(self.planned_numbers()))
        read = (self.batch(n, n in done) for n in (numbers[-last:] if last else numbers))
        return [b for b in read if b is not None]

    def batch(self, number: int, done: bool | None = None) -> Batch | None:
        """One micro-batch; None when the log does not have it (any more)."""
        damage = list[str]()
        planned = self._parsed(f"offsets/{number}", _planned, damage)
        committed = self._parsed(f"commits/{number}", _committed, damage) if done is not False else None
        if planned is None and committed is None and not damage:
            return None
        return Batch(number, planned, committed, " and ".join(damage))

    def _parsed(self, name: str, parse: Callable[[bytes], _Entry], damage: list[str]) -> _Entry | None:
        """A file of the log; None where it does not exist, or is damaged, which is added to damage."""
        try:
            return parse(self.files.read(f"{self.root}/{name}"))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            damage.append(f"{name} {_words(error)}")
        return None

    def last_written(self) -> float | None:
        """When the log was last written, in seconds since 1970; None when there is none."""
        times = []
        for name in ("offsets", "commits"):
            for number in self._numbers(name)[-1:]:
                try:
                    times.append(self.files.written(f"{self.root}/{name}/{number}"))
                except OSError:
                    pass  # it was removed
        return max(times, default=None)

    def unfinished(self) -> list[str]:
        """Files of the log whose write was aborted (`.N.uuid.tmp`)."""
        return [f"{n}/{e}" for n in ("offsets", "commits") for e in self._names(n) if e.endswith(".tmp")]

    def _numbers(self, name: str) -> list[int]:
        return sorted(int(e) for e in self._names(name) if e.isdigit())

    def _names(self, name: str) -> list[str]:
        try:
            return self.files.names(f"{self.root}/{name}")
        except OSError:
            return []

    def _entries(self, name: str) -> list[Entry]:
        try:
            return self.files.entries(f"{self.root}/{name}")
        except OSError:
            return []

    # ---- the state ------------------------------------------------------------------------

    def operators(self) -> list[Operator]:
        """The stateful operators; none for a query without state."""
        numbers = sorted(int(e.name) for e in self._entries("state") if e.is_folder and e.name.isdigit())
        return [self._operator(n) for n in numbers]

    def has_files(self, folder: str, ending: str) -> bool:
        """Whether a folder of the checkpoint has files whose names have that ending."""
        return any(name.endswith(ending) for name in self._names(folder))

    def _operator(self, number: int) -> Operator:
        place = f"state/{number}/_metadata"
        newest = max((int(e.name) for e in self._entries(f"{place}/v2") if e.name.isdigit()), default=None)
        path = f"{place}/metadata" if newest is None else f"{place}/v2/{newest}"
        try:
            metadata = json.loads(_lines(self.files.read(f"{self.root}/{path}"))[1])
            properties = json.loads(metadata.get("operatorPropertiesJson") or "{}")
            stores = tuple(Store(s["storeName"], s["numPartitions"]) for s in metadata["stateStoreInfo"])
            return Operator(number, metadata["operatorInfo"]["operatorName"], stores, properties)
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            # Spark before 3.5 wrote no such file: there are only the folders of the partitions.
            folders = [e for e in self._entries(f"state/{number}") if e.is_folder and e.name.isdigit()]
            return Operator(number, "", (Store("", len(folders)),))

    # ---- beside the log -------------------------------------------------------------------

    def file_read(self, source: str) -> str:
        """The path of a file that a source has read; "" if it is not a file source."""
        entries = [e for e in self._entries(f"sources/{source}") if e.name.isdigit()]
        for entry in sorted(entries, key=lambda e: e.size)[:1]:
            try:
                content = json.loads(_lines(self.files.read(f"{self.root}/sources/{source}/{entry.name}"))[1])
                return str(content["path"])
            except (OSError, ValueError, KeyError, IndexError, TypeError):
                pass  # a file of another kind of source
        return ""

    def size(self) -> tuple[int, int]:
        """(bytes, number of files) of the folder, including its sub-folders."""
        return self.files.size(self.root)


# ---- the files ----------------------------------------------------------------------------------


def _words(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read ({(error.strerror or str(error)).lower()})"
    return "is incomplete" if not isinstance(error, _Newer) else str(error)


_NEWEST = 2
"""The newest version of the files of both logs."""


class _Newer(ValueError):
    """A file has a version that only a newer Spark writes."""


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8").split("\n")


def _metadata(data: bytes) -> tuple[int, Any, list[str]]:
    """The version of a file of a log, its metadata and its further lines. Raises ValueError."""
    first, *rest = _lines(data)
    if not first.startswith("v") or not first[1:].strip().isdigit():
        raise ValueError
    version = int(first[1:])
    if version > _NEWEST:
        raise _Newer(f"has version {version}, which a newer Spark has written")
    metadata = json.loads(rest[0]) if rest and rest[0].strip() else {}
    if not isinstance(metadata, dict):
        raise ValueError
    return version, metadata, rest


def _planned(data: bytes) -> Planned:
    """Parse a file of the offset log. Raises ValueError."""
    version, metadata, rest = _metadata(data)
    if not rest:
        raise ValueError
    lines = [line for line in rest[1:] if line.strip()]
    pairs = [line.partition(":")[::2] for line in lines] if version == 2 else enumerate(lines)
    offsets = {str(source): None if offset == "-" else offset for source, offset in pairs}
    conf = {str(k): str(v) for k, v in (metadata.get("conf") or {}).items()}
    return Planned(
        version, offsets, metadata.get("batchWatermarkMs") or None, metadata.get("batchTimestampMs"), conf
    )


def _committed(data: bytes) -> Committed:
    """Parse a file of the commit log. Raises ValueError."""
    version, metadata, _ = _metadata(data)
    return Committed(version, metadata.get("nextBatchWatermarkMs") or None)
