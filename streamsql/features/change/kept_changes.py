"""Staged changes that a statement stages anew: where it fails, they are there again as they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from streamsql.definitions import Query, Sink
from streamsql.errors import StreamsqlError
from streamsql.guard import log
from streamsql.language.tokens import quote_name
from streamsql.plan.plans import Run
from streamsql.plan.statements.existing import entries_of
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import BUSY
from streamsql.runtime.queries.start import start_query
from streamsql.runtime.workspace.generations import generations_of


@dataclass(frozen=True)
class StagedBefore:
    """The staged change of a live table. entries: of the catalog, those of its stages among them; rows: those
    that are in no file, by their folded names; plan: with which its query ran, None where it did not.
    """

    query: Query
    entries: tuple[Query | Sink, ...]
    rows: dict[str, Any]
    plan: Run | None

    @property
    def queries(self) -> list[str]:
        """The names of its query and of its stages."""
        return [entry.name for entry in self.entries if isinstance(entry, Query)]


@contextmanager
def keeping_staged(parts: SessionParts, tables: Iterable[str]) -> Iterator[None]:
    """Keep the generations of the staged changes of live tables, as far as there are any, until all of these
    are staged anew. Where an error ends that, bring them back, and start them again. Raises OSError.
    """
    changes = [change for table in tables if (change := parts.catalog.staged(table)) is not None]
    before = [_keep(parts, change) for change in changes]
    try:
        yield
    except BaseException as error:
        parts = parts.under(CancelToken())
        gone = [staged for staged in before if staged.query.name.casefold() not in parts.catalog.queries]
        for staged in gone:
            _bring_back(parts, staged)
        stopped = [staged.query.name for staged in before if not _runs_again(parts, staged, gone)]
        if stopped and isinstance(error, StreamsqlError):
            start = " ".join(f"START QUERY {quote_name(name)};" for name in stopped)
            error.detail = "\n".join(filter(None, (error.detail, f"staged before, and stopped now: {start}")))
        raise
    else:
        if before:
            parts.workspace.save()
    finally:
        for name in (name for staged in before for name in staged.queries):
            with suppress(OSError, StreamsqlError):
                generations_of(parts.places, name).forget_kept()


def _keep(parts: SessionParts, change: Query) -> StagedBefore:
    catalog = parts.catalog
    entries = tuple(getattr(catalog, kind)[name.casefold()] for kind, name in entries_of(change, catalog))
    running = parts.queries.all.get(change.name.casefold())
    names = [entry.name for entry in entries if isinstance(entry, Sink)]
    rows = {name.casefold(): parts.live.loaded(name.casefold()) for name in names if parts.store is None}
    plan = running.plan if running is not None and running.status() in BUSY else None
    staged = StagedBefore(change, entries, rows, replace(plan, begins="", before=None) if plan else None)
    for name in staged.queries:
        generations_of(parts.places, name).keep()
    return staged


def _bring_back(parts: SessionParts, change: StagedBefore) -> None:
    for name in change.queries:
        generations_of(parts.places, name).bring_back()
    parts.define(*change.entries)
    for name, rows in change.rows.items():
        if rows is not None:
            parts.live[name] = rows


def _runs_again(parts: SessionParts, change: StagedBefore, gone: Iterable[StagedBefore]) -> bool:
    """Start a staged change again, as it ran, where it or what it reads was brought back. Returns whether it
    runs, or did not run before.
    """
    inputs = {name.casefold() for name in change.query.inputs}
    running = parts.queries.all.get(change.query.name.casefold())
    if running is not None and any(name.casefold() in inputs for g in gone for name in g.query.sinks):
        parts.queries.stop(running, parts.cancel)
    try:
        if change.plan is not None:
            start_query(parts, change.plan)
    except Exception as error:
        log(error, f"the staged change {change.query.name} is stopped")
        return False
    return True
