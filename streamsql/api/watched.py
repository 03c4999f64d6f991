"""The changes of a live table, as they come."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from streamsql.results import Live

EVERY = 0.05
"""The seconds between two looks for changes, which run no job of Spark."""
AT_ONCE = 100_000
"""The changes that are taken at a time."""


class Change(NamedTuple):
    """op: +I a new row, -U and +U a row before and after a change, -D a deleted row; row: its values."""

    op: str
    row: tuple[Any, ...]


@dataclass(frozen=True)
class Changes:
    """What a micro-batch has changed. batch: its number; version: of the live table then, as
    Connection.table gives it; columns: the names of the values of a row; lost: the number of changes before
    these that had come faster than they were read, and are no longer kept (1,000,000 are).
    """

    batch: int
    version: int
    columns: tuple[str, ...]
    changes: tuple[Change, ...]
    lost: int = 0


class Watch:
    """An iterator, also for `async for`, of Changes: first the rows that there are, as new ones, then what
    each micro-batch changes. It ends when the query of the live table has ended, and when it is closed, also
    by another thread or by Ctrl-C. It raises Error if the query has failed, or the server was lost. The query
    itself goes on.
    """

    def __init__(self, live: Live, left: deque[Live] | None = None) -> None:
        """left: takes the live result of a Watch that nobody has closed; it is closed later, as Python may
        collect this object at any step of any thread.
        """
        self.notes = [str(note) for note in live.notes]
        self._live = live
        self._left = left
        self._ready = deque[Changes]()
        self._seen = 0
        self._dropped = 0
        self._over = False
        self._closed = threading.Event()

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> Changes:
        """The next changes; waits for them."""
        try:
            while not self._ready and not self._ended():
                if not self._take():
                    self._closed.wait(EVERY)
        except BaseException:
            self.close()
            raise
        if self._ready:
            return self._ready.popleft()
        self.close()
        raise StopIteration

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> Changes:
        """The same without blocking the event loop."""
        try:
            while not self._ready and not self._ended():
                if not await asyncio.to_thread(self._take):
                    await asyncio.sleep(EVERY)
        except BaseException:
            self.close()
            raise
        if self._ready:
            return self._ready.popleft()
        self.close()
        raise StopAsyncIteration

    def _ended(self) -> bool:
        return self._over or self._closed.is_set()

    def _take(self) -> bool:
        """Take the changes since; whether there were some. Raises the error of the query."""
        over = self._live.status().over  # before the changes, which are complete then
        snapshot = self._live.changes(AT_ONCE, max(0, self._seen - self._dropped), None)
        start = snapshot.first + snapshot.dropped
        if start > self._seen and snapshot.dropped != self._dropped:  # changes were dropped meanwhile
            self._dropped = snapshot.dropped
            snapshot = self._live.changes(AT_ONCE, max(0, self._seen - self._dropped), None)
            start = snapshot.first + snapshot.dropped
        self._dropped = snapshot.dropped
        lost, known = max(0, start - self._seen), max(0, self._seen - start)
        rows, columns = list(snapshot.rows)[known:], snapshot.columns[1:]
        marks = list(zip(snapshot.versions, snapshot.batches, strict=True))[known:]
        for (version, batch), group in groupby(zip(marks, rows, strict=True), key=lambda pair: pair[0]):
            changes = tuple(Change(str(op), tuple(row)) for _, (op, *row) in group)
            self._ready.append(Changes(batch, version, columns, changes, lost))
            lost = 0
        self._seen = max(self._seen, start) + len(rows) if rows else self._seen
        if over and self._seen >= snapshot.total + snapshot.dropped:
            self._end()
        return bool(rows)

    def _end(self) -> None:
        fault = self._live.fault()
        if fault is not None and not self._closed.is_set():
            raise fault
        self._over = True

    def close(self) -> None:
        """Watch no more. May be called again, and by another thread."""
        if not self._closed.is_set():
            self._closed.set()
            self._live.close()
            self._live.said()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._closed.is_set() and self._left is not None:
            self._left.append(self._live)
