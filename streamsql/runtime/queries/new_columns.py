"""The queries over live tables whose columns have changed: they are planned anew."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from streamsql.errors import Cancelled, Note
from streamsql.plan.planner import start_plan
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.live.refresher import Refresher
from streamsql.runtime.queries.program_parts import QueryParts
from streamsql.runtime.queries.run import BUSY, Running
from streamsql.runtime.queries.start import start_query

_POLL = 0.02
"""Seconds between two looks whether a query is refreshed."""


def with_new_columns(parts: QueryParts, tables: Sequence[str]) -> tuple[Note, ...]:
    """Wait until the queries that read live tables, directly or through others, are refreshed with the
    columns that these have now. A query whose own columns change ends for that, and the restart supervisor
    plans it anew; one that has failed is started again here. Returns notes about those that cannot be
    started. Ctrl-C ends the wait.
    """
    queries, notes = parts.catalog.queries, list[Note]()
    begins = [queries[table.casefold()] for table in tables if table.casefold() in queries]
    with suppress(Cancelled):
        for query in reversed(parts.catalog.with_readers(begins)):
            running = parts.queries.all.get(query.name.casefold())
            if query in begins or running is None or _refreshed(parts, running).status() != "FAILED":
                continue
            try:
                again = start_query(parts, start_plan(query, parts.context()))
            except Exception as error:
                fault = translate(error, None, parts.catalog.relation_names())
                why = ", ".join((fault.message, *fault.detail.splitlines()))
                ways = f"; {fault.hint}" if fault.hint else ""
                notes.append(Note("READER_STOPPED", f"{query.name} does not run any more: {why}{ways}"))
            else:
                _refreshed(parts, again)
    return tuple(notes)


def _refreshed(parts: QueryParts, running: Running) -> Running:
    """The newest run of a query over live tables, once it is refreshed with the columns that its inputs have
    now, waits for an input, or does not go on. Raises Cancelled.
    """
    while running.planned_anew or (running.status() in BUSY and not _has_columns(parts, running.handle)):
        parts.cancel.wait(_POLL)
        running = parts.queries.all.get(running.name.casefold(), running)
    return running


def _has_columns(parts: QueryParts, refresher: Refresher) -> bool:
    """Whether a query was computed from rows with the columns that its inputs have now, or waits for one."""
    return bool(refresher.waits_for) or refresher.has_columns_of(parts.live)
