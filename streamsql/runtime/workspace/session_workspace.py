"""What a session keeps in its workspace, and reads of it: definitions, and how the queries are."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from streamsql.catalog import CurrentCatalog
from streamsql.connectors.base import Places
from streamsql.errors import Note
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.engine.temporary_views import TemporaryViews
from streamsql.runtime.queries.query_runs import Queries
from streamsql.runtime.workspace.folder import holder
from streamsql.runtime.workspace.store import Past, Store, past_of


class SessionWorkspace:
    """store: the files of the workspace; None: there is none, and nothing is kept. read_only: they are
    another console's.
    """

    def __init__(
        self,
        store: Store | None,
        current: CurrentCatalog,
        settings: Settings,
        places: Places,
        temporary: TemporaryViews,
        queries: Queries,
        *,
        read_only: bool,
    ) -> None:
        self._store = store
        self._read_only = read_only
        self._current = current
        self._settings = settings
        self._places = places
        self._temporary = temporary
        self._queries = queries
        self._saving = threading.Lock()

    # ---- writing --------------------------------------------------------------------------

    def save(self, why: str = "") -> tuple[Note, ...]:
        """Write definitions and the queries' status. Returns what to report about that.

        why: the reason for which running queries are about to end.
        """
        if self._store is None or self._read_only:
            return ()
        views = self._temporary.statements()
        try:
            with self._saving:
                self._store.save(self._current.snapshot, self._settings.changed, views)
        except OSError as error:
            return (_not_written(error),)
        return self.save_status(why)

    def save_status(self, why: str = "") -> tuple[Note, ...]:
        """Write how the queries are. May be called on any thread."""
        if self._store is None or self._read_only:
            return ()
        catalog = self._current.snapshot
        with self._saving:
            past = {n: p for n, p in self._store.past.items() if n in catalog.queries}
            for name in catalog.queries:
                running = self._queries.all.get(name)
                if running is not None:
                    past[name] = past_of(running, self._queries.failures.get(name, ()), why)
            self._store.past = past
            try:
                self._store.save_status(past, catalog.functions)
            except OSError as error:
                return (_not_written(error),)
        return ()

    # ---- reading --------------------------------------------------------------------------

    def past(self, query: str) -> Past:
        """How a query that has not run in this console was when it was last heard of; in a read-only
        console, how it is now.
        """
        if self._store is None:
            return Past("stopped")
        if not self._read_only:
            return self._store.past.get(query.casefold()) or Past("stopped")
        self._store.read_status(runs=bool(holder(self._store.folder)))
        known = self._store.past.get(query.casefold()) or Past("stopped")
        status = "running elsewhere" if known.status == "running" else known.status
        return replace(known, status=status, batch=max(known.batch, self._last_commit(query)))

    def _last_commit(self, query: str) -> int:
        known = self._current.snapshot.queries.get(query.casefold())
        place = (known.checkpoint if known else "") or self._places.checkpoint(query)
        try:
            numbers = (f.name for f in (Path(place) / "commits").iterdir())
            return max((int(n) for n in numbers if n.isdigit()), default=-1)
        except OSError:
            return -1

    def where_queries_run(self) -> tuple[Note, ...]:
        """What SHOW QUERIES has to say of queries that are another console's."""
        if not self._read_only or self._store is None:
            return ()
        who = holder(self._store.folder)
        text = f"queries run in {who}; this one only reads" if who else "no console holds the workspace now"
        return (Note("QUERIES_ELSEWHERE", text),)


def _not_written(error: OSError) -> Note:
    reason = (error.strerror or str(error)).lower()
    return Note("WORKSPACE_NOT_WRITTEN", f"the workspace could not be written: {reason}")
