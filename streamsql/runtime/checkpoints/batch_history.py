"""Saves the number of rows and the duration of completed micro-batches, which Spark's log does not have."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamsql.connectors.base import Places
from streamsql.errors import EngineFault
from streamsql.runtime.workspace.formats import BATCHES
from streamsql.runtime.workspace.owned_folders import claim, private

KEPT = 1000
"""The number of micro-batches kept of each query; Spark's own log keeps 100 by default."""
FILE = "batches.jsonl"

Key = tuple[str, int]
Numbers = tuple[int, int | None]


class Kept:
    """The rows and milliseconds of micro-batches, by (id of the query's checkpoint, number). file: where
    they are saved; None: only in memory.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.done: dict[Key, Numbers] = {}
        self._forgotten = False
        self._lines = 0
        self._lock = threading.Lock()  # for the data in memory: held only for a moment
        self._writing = threading.Lock()
        self._load()

    def _load(self) -> None:
        try:
            lines = self.file.read_text("utf-8").splitlines() if self.file else []
        except (OSError, ValueError):
            return
        self._lines = len(lines)
        for line in lines:
            try:
                known = json.loads(line)
                if known.get("version", 0) > BATCHES:
                    self.file = None  # of a later version: nothing is added to it
                    continue
                self._take((known["id"], known["batch"]), (known["rows"], known["ms"]))
            except (ValueError, KeyError, TypeError, AttributeError):
                pass  # an incomplete line, written when the console was killed

    def _take(self, key: Key, numbers: Numbers) -> None:
        self.done.pop(key, None)  # a retried micro-batch becomes the newest again
        self.done[key] = numbers
        if len(self.done) > KEPT:
            del self.done[next(iter(self.done))]

    def add(self, report: dict[str, Any]) -> Key:
        """Add a progress report. Writes nothing, so that it is quick. Returns the key for `write`."""
        key = (str(report.get("id", "")), int(report.get("batchId", -1)))
        numbers = (report.get("numInputRows", 0), report.get("durationMs", {}).get("triggerExecution"))
        with self._lock:
            self._take(key, numbers)
        return key

    def write(self, key: Key) -> None:
        """Append an added micro-batch to the file."""
        with self._writing:
            if self.file is None or self._forgotten:
                return
            try:
                self._append(self.file, key)
            except OSError:
                pass  # the folder does not exist, or is full: the numbers are kept in memory

    def forget(self) -> None:
        """Stop writing: the file is removed with its folder."""
        with self._writing:
            self._forgotten = True

    def _append(self, file: Path, newest: Key) -> None:
        with self._lock:
            known = dict(self.done)
        if self._lines < 2 * KEPT:
            if newest in known:
                with open(file, "a", encoding="utf-8", opener=private) as out:
                    out.write(_line(newest, known[newest]))
                self._lines += 1
            return
        part = file.with_name(FILE + ".part")
        with open(part, "w", encoding="utf-8", opener=private) as out:
            out.write("".join(_line(key, numbers) for key, numbers in known.items()))
        part.replace(file)
        self._lines = len(known)


def _line(key: Key, numbers: Numbers) -> str:
    rows, milliseconds = numbers
    known = {"version": BATCHES, "id": key[0], "batch": key[1], "rows": rows, "ms": milliseconds}
    return json.dumps(known) + "\n"


class KeptBatches:
    """The micro-batches of all queries. places: the console's folders; lasting: whether they outlive it.

    Reports arrive on Spark's callback thread, which must not wait for a disk: a separate thread writes
    them in the order of arrival.
    """

    def __init__(self, places: Places, *, lasting: bool) -> None:
        self.places = places
        self.lasting = lasting
        self._all: dict[str, Kept] = {}
        self._unwritten: queue.SimpleQueue[tuple[Kept, Key] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._writer: threading.Thread | None = None

    def of(self, query: str) -> Kept:
        """The micro-batches of a query; of one that another console runs, their current state."""
        folder = Path(self.places.query(query))
        return self._all.get(query.casefold()) or Kept(folder / FILE if self.lasting else None)

    def follow(self, query: str) -> Callable[[dict[str, Any]], object]:
        """Save the later reports of a query. Returns the function to call with each report."""
        kept = self._all.setdefault(query.casefold(), self.of(query))
        if kept.file is None:
            return kept.add
        try:
            claim(kept.file.parent)
        except (OSError, EngineFault):
            kept.file = None

        def add(report: dict[str, Any]) -> None:
            self._write_later(kept, kept.add(report))

        return add

    def forget(self, query: str) -> None:
        """Remove a dropped query; its file is removed with its folder."""
        kept = self._all.pop(query.casefold(), None)
        if kept is not None:
            kept.forget()

    def close(self) -> None:
        """Wait until all reports are written."""
        with self._lock:
            writer, self._writer = self._writer, None
            if writer is not None:
                self._unwritten.put(None)
        if writer is not None:
            writer.join()

    def _write_later(self, kept: Kept, key: Key) -> None:
        with self._lock:
            self._unwritten.put((kept, key))
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, daemon=True, name="batch-history")
                self._writer.start()

    def _write_all(self) -> None:
        while (item := self._unwritten.get()) is not None:
            kept, key = item
            kept.write(key)
