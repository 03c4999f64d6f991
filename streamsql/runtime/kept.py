"""What the console keeps of micro-batches that are done: their rows and duration, which Spark's log does
not have.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from streamsql.connectors.base import Places
from streamsql.runtime.queries import Running

KEPT = 1000
"""Micro-batches kept of each query; Spark's own log has 100 unless a setting says otherwise."""
FILE = "batches.jsonl"


class Kept:
    """The rows and milliseconds of micro-batches, by (id of the query's checkpoint, number). file: where
    they are kept beyond the console; None for nowhere.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.done: dict[tuple[str, int], tuple[int, int | None]] = {}
        self._lines = 0
        self._lock = threading.Lock()
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
                self._take((known["id"], known["batch"]), (known["rows"], known["ms"]))
            except (ValueError, KeyError, TypeError):
                pass  # half a line, written when the console was killed

    def _take(self, key: tuple[str, int], numbers: tuple[int, int | None]) -> None:
        self.done.pop(key, None)  # one that was repeated is the newest again
        self.done[key] = numbers
        if len(self.done) > KEPT:
            del self.done[next(iter(self.done))]

    def add(self, report: dict[str, Any]) -> None:
        """Take up a progress report. Called on Spark's callback thread, never while a key is pressed."""
        key = (str(report.get("id", "")), int(report.get("batchId", -1)))
        numbers = (report.get("numInputRows", 0), report.get("durationMs", {}).get("triggerExecution"))
        with self._lock:
            self._take(key, numbers)
            try:
                self._write(key)
            except OSError:
                pass  # the folder is gone, or full: the numbers are here as long as the console is

    def _write(self, newest: tuple[str, int]) -> None:
        if self.file is None:
            return
        if self._lines < 2 * KEPT:
            with self.file.open("a", encoding="utf-8") as out:
                out.write(self._line(newest))
            self._lines += 1
            return
        part = self.file.with_name(FILE + ".part")
        part.write_text("".join(map(self._line, self.done)), "utf-8")
        part.replace(self.file)
        self._lines = len(self.done)

    def _line(self, key: tuple[str, int]) -> str:
        rows, milliseconds = self.done[key]
        return json.dumps({"id": key[0], "batch": key[1], "rows": rows, "ms": milliseconds}) + "\n"


class KeptBatches:
    """What is kept of all queries. places: the console's folders; lasting: whether they outlive it."""

    def __init__(self, places: Places, *, lasting: bool) -> None:
        self.places = places
        self.lasting = lasting
        self._all: dict[str, Kept] = {}

    def of(self, query: str) -> Kept:
        """What is kept of a query; of one that another console runs, as it is now."""
        folder = Path(self.places.checkpoint(query)).parent
        return self._all.get(query.casefold()) or Kept(folder / FILE if self.lasting else None)

    def follow(self, running: Running) -> None:
        """Keep what a query reports from now on."""
        kept = self._all.setdefault(running.name.casefold(), self.of(running.name))
        if kept.file is not None:
            try:
                kept.file.parent.mkdir(parents=True, exist_ok=True)
            except OSError:
                pass
        running.reports.tell(kept.add)

    def forget(self, query: str) -> None:
        """A query is dropped; its file goes with its folder."""
        self._all.pop(query.casefold(), None)
