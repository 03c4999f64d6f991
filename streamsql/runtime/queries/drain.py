"""STOP QUERY … WITH DRAIN: the query processes all available input, then ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from streamsql.errors import Note, StreamsqlError, TimeFault
from streamsql.language.statements.base import Trigger
from streamsql.language.statements.query import StopQuery
from streamsql.language.tokens import quote_name
from streamsql.plan.planner import start_plan
from streamsql.results import Done
from streamsql.runtime.queries.program_parts import QueryParts
from streamsql.runtime.queries.run import BUSY, GOING_ON, Running
from streamsql.runtime.queries.start import start_query
from streamsql.runtime.queries.stop import PATIENCE

_LOSING = frozenset({"socket"})
"""Sources that lose unprocessed input when their query stops."""


def stop_queries(statement: StopQuery, parts: QueryParts) -> Done:
    """STOP QUERY name or ALL, together. With DRAIN the queries are drained one by one, in the order in which
    they were created, so that a query comes after those whose output it reads. Raises Cancelled, TimeFault,
    or (once all are stopped) the fault of the first query that could not be drained.
    """
    newest = (parts.queries.all.get(query.name.casefold()) for query in parts.catalog.named(statement.name))
    runs = [running for running in newest if running is not None and running.status() in GOING_ON]
    stopped, notes = [running.name for running in runs], list[Note]()
    for running in runs:
        running.on_purpose = statement.name is not None
    faults = _drain_in_order(runs, parts, statement.timeout) if statement.drain else []
    if not statement.drain:
        complete = parts.queries.stop_together(runs, parts.cancel, _patience(statement.timeout))
        notes += [n for run, done in zip(runs, complete, strict=True) if not done for n in abort_note(run)]
    for name in stopped:
        running = parts.queries.all[name.casefold()]
        if running.status() == "FAILED" and running.fault and running.fault not in faults:
            faults.append(running.fault)
    if faults:
        raise faults[0]
    if statement.name and not stopped:
        return Done(message=f"query {statement.name} was not running")
    return Done(tuple(notes), f"stopped: {', '.join(stopped)}" if stopped else "no query was running")


def _drain_in_order(runs: list[Running], parts: QueryParts, timeout: float | None) -> list[StreamsqlError]:
    """Drain queries one by one. Returns the faults of those that could not be drained."""
    left, faults = _countdown(timeout), list[StreamsqlError]()
    for running in runs:
        if running.status() not in BUSY or running.stopped:
            parts.queries.stop(running, parts.cancel, _patience(timeout))
            continue
        try:
            _drain(running, parts, left())
        except StreamsqlError as fault:
            if parts.cancel.cancelled:
                raise
            faults.append(fault)
    return faults


def abort_note(running: Running) -> Iterator[Note]:
    """The note on a query that was stopped within a micro-batch."""
    if running.has_batches and not running.is_refresh:
        yield Note(
            "MICRO_BATCH_ABORTED",
            f"the micro-batch of {running.name} did not complete in time and was aborted: it is retried on "
            "restart",
        )


def _drain(running: Running, parts: QueryParts, timeout: float | None) -> None:
    """Process all available input, then stop. Spark's trigger AVAILABLE NOW determines once, at its
    start, what is available, so that a source which never ends does not make this wait forever.
    """
    queries, name = parts.queries, running.name.casefold()
    left = _countdown(timeout)
    clock = running.plan.shape.watches_the_clock  # such a query always has a micro-batch to run
    if clock or running.is_refresh or any(s.connector in _LOSING for s in running.plan.reads.streams):
        try:
            queries.wait([name], parts.cancel, idle=True, timeout=left())
        finally:
            if not parts.cancel.cancelled:
                queries.stop(running, parts.cancel)
        return
    if not queries.stop(running, parts.cancel, _patience(left())):
        raise _not_all(running)
    if running.status() != "stopped":
        return  # it ended by itself
    with parts.cancel.holding(queries.starting):
        plan = start_plan(parts.catalog.queries[name], parts.context())
        plan = replace(plan, query=replace(plan.query, trigger=Trigger("available_now")))
        last = start_query(parts, plan)
        last.source, last.span, last.stopped = running.source, running.span, True
    try:
        queries.wait([name], parts.cancel, idle=False, timeout=left())
    except TimeFault:
        queries.stop(last, parts.cancel)
        raise _not_all(running) from None


def _not_all(running: Running) -> TimeFault:
    return TimeFault(
        f"the query {running.name} was stopped before all input was processed: the time limit was reached",
        hint=f"START QUERY {quote_name(running.name)}; resumes from its checkpoint",
    )


def _patience(timeout: float | None) -> float:
    return PATIENCE if timeout is None else timeout


def _countdown(seconds: float | None) -> Callable[[], float | None]:
    deadline = None if seconds is None else time.monotonic() + seconds
    return lambda: None if deadline is None else max(0.0, deadline - time.monotonic())
