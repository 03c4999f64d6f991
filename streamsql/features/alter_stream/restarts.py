"""Starts the queries that read an altered stream again, from their checkpoints."""

from __future__ import annotations

from collections.abc import Iterable

from streamsql.definitions import Query
from streamsql.errors import Note, StreamsqlError
from streamsql.language.tokens import quote_name
from streamsql.plan.planner import start_plan
from streamsql.plan.statements.staged_tables import staging_of
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.handlers.start_stop import start_statement
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.new_columns import with_new_columns
from streamsql.runtime.queries.run import GOING_ON, Running
from streamsql.runtime.queries.start import start_query


def restarted(parts: SessionParts, name: str, readers: Iterable[Query]) -> tuple[Note, ...]:
    """Start the queries that read a stream with its new columns; also those that have failed, but none that
    is stopped. One that cannot go on with them is started as it was. Returns notes about each, and about what
    reads their live tables. Ctrl-C does not end this: a query that is stopped here is started again.
    """
    statement, parts = parts, parts.under(CancelToken())
    taken_up, notes = list[str](), list[Note]()
    for query in readers:
        running = parts.queries.all.get(query.name.casefold())
        if running is None or running.status() not in ("running", "restarting", "FAILED"):
            continue
        fault = _restart(parts, query, running)
        if fault is None:
            taken_up.append(query.name)
        else:
            notes.append(_left(parts, query, name, fault))
    if taken_up:
        go = "goes" if len(taken_up) == 1 else "go"
        text = f"{', '.join(taken_up)} {go} on from the checkpoint: new columns are NULL in earlier rows"
        notes.insert(0, Note("COLUMNS_TAKEN_UP", text))
    return (*notes, *with_new_columns(statement, taken_up))


def _restart(parts: SessionParts, query: Query, running: Running) -> StreamsqlError | None:
    """Stop a query and start it with the definitions that hold now, else as it was. Returns why it is not
    started with them.
    """
    failed = running.status() == "FAILED"
    parts.queries.stop(running, parts.cancel)
    try:
        start_query(parts, start_plan(query, parts.context()))
    except Exception as error:
        fault = translate(error, None, parts.catalog.relation_names())
    else:
        return None
    if failed:
        return fault
    try:
        start_query(parts, running.plan)
    except Exception as error:
        why = translate(error).message
        fault.detail = "\n".join(filter(None, (fault.detail, f"it could not be started as it was: {why}")))
    return fault


def _left(parts: SessionParts, query: Query, name: str, fault: StreamsqlError) -> Note:
    """A note about a query that is not started with the new columns."""
    running = parts.queries.all.get(query.name.casefold())
    goes_on = running is not None and running.status() in GOING_ON
    how = f"goes on with {name} as it was before" if goes_on else "does not run"
    why = ", ".join((fault.message, *fault.detail.splitlines()))
    quoted = quote_name(query.name)
    if _is_staged_anew(parts, query):
        compare = f"COMPARE LIVE TABLE {quoted}; " if goes_on else ""
        ways = f"a staged change computes it anew with the new columns: {compare}PROMOTE {quoted};"
        return Note("OLD_DEFINITION", f"{query.name} {how}: {why}; {ways}")
    stop = f"STOP QUERY {quoted}; " if goes_on else ""
    ways = f"{stop}START QUERY {quoted} FROM BEGINNING; computes it anew with the new columns"
    return Note("OLD_DEFINITION", f"{query.name} {how}: {why}; {ways}")


def _is_staged_anew(parts: SessionParts, query: Query) -> bool:
    """Stage the query of a live table as it is, so that it reads the stream with the new columns. Returns
    whether that is done: not for an INSERT, or beside another change.
    """
    if not query.live_table or parts.catalog.staged(query.name):
        return False
    try:
        start_statement(parts, staging_of(query, parts.catalog))
    except Exception:
        return False
    return True
