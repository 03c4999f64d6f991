"""What reads a live table, once its columns are other ones."""

from __future__ import annotations

from typing import Any

from streamsql.errors import Note
from streamsql.plan import planner
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import GOING_ON
from streamsql.runtime.queries.start import start_query
from streamsql.runtime.queries.start_refresh import await_first


def columns_of(parts: SessionParts, table: str) -> Any:
    """The names and types of the columns of a live table; None before it has any."""
    rows = parts.live.get(table.casefold())
    return None if rows is None else [(field.name, field.dataType) for field in rows.schema.fields]


def restarted_readers(parts: SessionParts, table: str, before: Any) -> tuple[Note, ...]:
    """Start the queries that read a live table again, and those that read their tables, each once the columns
    of what it reads are others. before: the columns that the live table had. Returns notes about those that
    do not run with them.
    """
    changed, notes = set[str](), list[Note]()
    if columns_of(parts, table) != before:
        changed.add(table.casefold())
    for query in reversed(parts.catalog.with_readers([parts.catalog.queries[table.casefold()]])):
        running = parts.queries.all.get(query.name.casefold())
        if query.name.casefold() == table.casefold() or running is None:
            continue
        if not changed.intersection(name.casefold() for name in query.inputs):
            continue
        if running.status() not in (*GOING_ON, "FAILED") or running.stopped:
            continue
        own = columns_of(parts, query.name) if query.live_table else None
        try:
            parts.queries.stop(running, parts.cancel)
            again = start_query(parts, planner.start_plan(query, parts.context()))
            if query.live_table:
                await_first(parts, again)  # until then it shows its old rows, with NULL in new columns
        except Exception as error:
            fault = translate(error, None, parts.catalog.relation_names())
            why = ", ".join((fault.message, *fault.detail.splitlines()))
            ways = f"; {fault.hint}" if fault.hint else ""
            notes.append(Note("READER_STOPPED", f"{query.name} does not run any more: {why}{ways}"))
            continue
        if query.live_table and columns_of(parts, query.name) != own:
            changed.add(query.name.casefold())
    return tuple(notes)
