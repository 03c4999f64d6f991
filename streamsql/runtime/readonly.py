"""A second console on a workspace that another one holds: it looks at it as it is now, changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.errors import RuleFault
from streamsql.language.statements.watch import Watch
from streamsql.plan import plans
from streamsql.runtime.journal import LiveTables
from streamsql.runtime.store import Past
from streamsql.workspace import holder

if TYPE_CHECKING:
    from streamsql.runtime.session import Session

EVERY = 0.5
"""Seconds after which a live view looks whether the other console has written new rows."""


def refuse(made: plans.Plan, changing: frozenset[type], session: Session) -> None:
    """Raise RuleFault for what would change the workspace. changing: the statements without a program
    that do.
    """
    changes = isinstance(made, (plans.DefineStream, plans.DefineSink, plans.DefineFunction, plans.Write)) or (
        isinstance(made, plans.Run) and not made.transient
    )
    if isinstance(made, plans.Direct):
        changes = type(made.statement) in changing - {Watch}
    if changes:
        assert session.store is not None
        who = holder(session.store.folder)
        raise RuleFault(
            f"this console only reads the workspace {session.store.folder}",
            detail=f"it is held by {who}" if who else "it was opened with --read-only",
            hint="type it there, or work in a workspace of your own: streamsql -w DIR"
            if who
            else "nobody holds it now: leave, and open it without --read-only",
        )


def past(query: str, session: Session) -> Past:
    """How a query of the workspace is, as it lies on disk now."""
    store = session.store
    assert store is not None
    runs = bool(holder(store.folder))
    store.read_status(runs=runs)
    found = store.past.get(query.casefold()) or Past("stopped")
    status = "running elsewhere" if found.status == "running" else found.status
    return replace(found, status=status, batch=max(found.batch, _last_commit(query, session)))


def _last_commit(query: str, session: Session) -> int:
    found = session.catalog.queries.get(query.casefold())
    place = (found.checkpoint if found else "") or session.places.checkpoint(query)
    try:
        return max((int(f.name) for f in (Path(place) / "commits").iterdir() if f.name.isdigit()), default=-1)
    except OSError:
        return -1


def where_they_run(session: Session) -> tuple[str, ...]:
    """What SHOW QUERIES has to say of queries that are another console's."""
    if not session.config.read_only or session.store is None:
        return ()
    who = holder(session.store.folder)
    return (f"queries run in {who}; this one only reads" if who else "no console holds the workspace now",)


class SharedTables(LiveTables):
    """The rows of another console's live tables, as it has written them up to now."""

    def get(self, name: str, default: Any = None) -> Any:
        if name in self and not self.known(name):
            return self[name]  # a SELECT of this console's own
        if self.places is None or not self.known(name):
            return default
        found = self._journal(name).look(self.loaded(name))
        if found is None:
            self.pop(name, None)
            return default
        self[name] = found
        return found

    def forget(self, name: str) -> None:
        """Let go of the rows of a SELECT; what is on disk is another console's."""
        self.pop(name, None)

    def follow(self, name: str) -> Callable[[], None]:
        """Take up what is written from now on; returns what ends that."""
        over = threading.Event()

        def work() -> None:
            while not over.wait(EVERY):
                self.get(name)

        threading.Thread(target=work, daemon=True, name=f"follow-{name}").start()
        return over.set
