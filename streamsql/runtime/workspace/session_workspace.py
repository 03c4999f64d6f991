"""The workspace of a session: saves and reads the definitions and the status of queries."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamsql.catalog import CurrentCatalog
from streamsql.connectors.base import Places
from streamsql.errors import Note
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.engine.temporary_views import TemporaryViews
from streamsql.runtime.queries.query_runs import Queries
from streamsql.runtime.workspace.folder import holder
from streamsql.runtime.workspace.store import Past, Store, past_of


@dataclass(eq=False)
class SessionWorkspace:
    """store: the files of the workspace; None without one: nothing is saved. read_only: another console
    holds the workspace. resuming: the queries that ran when it was last held are about to be started.
    """

    store: Store | None
    current: CurrentCatalog
    settings: Settings
    places: Places
    temporary: TemporaryViews
    queries: Queries
    read_only: bool = field(kw_only=True)
    resuming: bool = False
    _saving: threading.Lock = field(default_factory=threading.Lock)

    # ---- writing --------------------------------------------------------------------------

    def save(self, console: str = "") -> tuple[Note, ...]:
        """Write the definitions and the status of queries. Returns notes.

        console: how it is about to end, LEFT or LOST; empty if it goes on.
        """
        if self.store is None or self.read_only:
            return ()
        views = self.temporary.statements()
        try:
            with self._saving:
                self.store.save(self.current.snapshot, self.settings.changed, views)
        except OSError as error:
            return (_not_written(error),)
        return self.save_status(console)

    def save_status(self, console: str = "") -> tuple[Note, ...]:
        """Write the status of queries. Thread-safe. Returns notes."""
        if self.store is None or self.read_only:
            return ()
        catalog = self.current.snapshot
        with self._saving:
            past = {n: p for n, p in self.store.past.items() if n in catalog.queries}
            for name in catalog.queries:
                running = self.queries.all.get(name)
                if running is not None:
                    past[name] = past_of(running, self.queries.failures.get(name, ()), console)
            self.store.past = past
            try:
                self.store.save_status(past, catalog.all_functions)
            except OSError as error:
                return (_not_written(error),)
        return ()

    def note_reported(self) -> None:
        """Record that the prompt has named the queries that stopped with the last console."""
        if self.store is None or self.read_only:
            return
        named = {n: replace(p, told=bool(p.console)) for n, p in self.store.past.items()}
        if named != self.store.past:
            self.store.past = named
            self.save_status()

    # ---- reading --------------------------------------------------------------------------

    def past(self, query: str) -> Past:
        """The last known status of a query that has not run in this console; in a read-only console, its
        current status.
        """
        if self.store is None:
            return Past("stopped")
        if not self.read_only:
            last = self.store.past.get(query.casefold()) or Past("stopped")
            return replace(last, status="resuming") if self.resuming and last.console else last
        self.store.read_status(runs=bool(holder(self.store.folder)))
        last = self.store.past.get(query.casefold()) or Past("stopped")
        status = "running elsewhere" if last.status == "running" else last.status
        return replace(last, status=status, batch=max(last.batch, self._last_commit(query)))

    def _last_commit(self, query: str) -> int:
        definition = self.current.snapshot.queries.get(query.casefold())
        place = (definition.checkpoint if definition else "") or self.places.checkpoint(query)
        try:
            numbers = (f.name for f in (Path(place) / "commits").iterdir())
            return max((int(n) for n in numbers if n.isdigit()), default=-1)
        except OSError:
            return -1

    def where_queries_run(self) -> tuple[Note, ...]:
        """A note of SHOW QUERIES in a read-only console."""
        if not self.read_only or self.store is None:
            return ()
        who = holder(self.store.folder)
        running = f"queries run in {who}; this console is read-only"
        text = running if who else "no console holds the workspace now"
        return (Note("QUERIES_ELSEWHERE", text),)


def _not_written(error: OSError) -> Note:
    reason = (error.strerror or str(error)).lower()
    return Note("WORKSPACE_NOT_WRITTEN", f"the workspace could not be written: {reason}")
