"""The rows of live tables on a Connect server, fetched while somebody watches them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from streamsql.language.tokens import quote_name
from streamsql.runtime.embedded.carried_values import to_arrow
from streamsql.runtime.embedded.live_rows import RowsAt
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running

EVERY = 0.5
"""The seconds between two looks whether there are new progress reports, which cost the server nothing."""
MOST = 10_000
"""The rows that are fetched at most: the newest in append mode, else the first."""

Watcher = Callable[[Any, Any, Any], None]


class ServerRows:
    """The rows of a memory sink, as views of a result read them (LiveRows of a console with its own Spark).

    frame: the sink's table; running: its query. dropped: the rows that are not fetched.
    """

    keys = None
    hidden: tuple[str, ...] = ()
    kept = ""

    def __init__(self, frame: Any, running: Running) -> None:
        self.schema = frame.schema
        self.mode = running.mode
        self.last_batch = -1
        self.version = 0
        self.dropped = 0
        self.watchers: list[Watcher] = []
        self._frame = frame
        self._now = RowsAt(frame.schema, None, -1)
        self._seen: object = None
        self._lock = threading.Lock()

    def rows(self) -> tuple[Any, int]:
        """(the rows as an Arrow table, a number that grows when they change)."""
        return self._now.table, self.version

    def now(self) -> RowsAt:
        """The current rows: the same object until they change."""
        return self._now

    def watch(self, tell: Watcher) -> Any:
        """Call a function after each fetch with the rows before and after it, and the new ones. Returns the
        current rows.
        """
        with self._lock:
            self.watchers.append(tell)
            return self._now.table

    def unwatch(self, tell: Watcher) -> None:
        """Call the function no longer."""
        with self._lock:
            self.watchers = [watcher for watcher in self.watchers if watcher != tell]

    def in_result(self, table: Any) -> Any:
        return table

    def shown(self, table: Any) -> Any:
        return table

    def fetch(self, running: Running) -> None:
        """Fetch what has come, once the query has reported another micro-batch. Raises errors of Spark."""
        batch = running.reports.latest.get("batchId", -1)
        seen = (running, running.reports.run.read, batch)
        if seen == self._seen:
            return
        whole = self.mode == "complete"
        before, count = self._now.table, int(self._frame.count())
        skipped = 0 if whole else max(0, count - MOST)
        after = to_arrow(self._frame.offset(skipped).limit(MOST))
        new = after if whole or before is None else after.slice(max(0, self._total() - skipped))
        with self._lock:
            self._seen, self.last_batch = seen, batch
            self._now, self.dropped = RowsAt(self.schema, after, batch), count - after.num_rows
            self.version += 1
            watchers = list(self.watchers)
        for tell in watchers:
            tell(before, after, new)

    def _total(self) -> int:
        return int(self.dropped + self._now.table.num_rows)


def follow(rows: ServerRows, current: Callable[[], Running | None]) -> Callable[[], None]:
    """Refresh rows in the background. current: returns the newest run of their query. Returns the function
    that ends that.
    """
    over = threading.Event()

    def work() -> None:
        while not over.wait(EVERY):
            with suppress(Exception):  # the status of the query tells what happened
                running = current()
                if running is not None:
                    rows.fetch(running)

    threading.Thread(target=work, daemon=True, name="follow-server").start()
    return over.set


class ServerTables:
    """The live tables of a session on a server, for WATCH."""

    def __init__(self, parts: SessionParts) -> None:
        self.parts = parts
        self._rows: dict[str, ServerRows] = {}

    def get(self, name: str) -> ServerRows | None:
        """The rows of a live table as they are now; None if its query does not run in the session."""
        running = self._running(name)
        if running is None:
            return None
        rows = ServerRows(self.parts.spark.table(quote_name(name)), running)
        rows.fetch(running)
        self._rows[name] = rows
        return rows

    def follow(self, name: str) -> Callable[[], None]:
        """Refresh the rows in the background. Returns the function that ends that."""
        return follow(self._rows[name], lambda: self._running(name))

    def _running(self, name: str) -> Running | None:
        feeding = self.parts.catalog.writers_of(name)
        return self.parts.queries.all.get(feeding[0].name.casefold()) if feeding else None
