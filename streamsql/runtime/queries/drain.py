"""STOP QUERY … WITH DRAIN: what is there is processed, then the query ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from streamsql.errors import StreamsqlError, TimeFault
from streamsql.language.statements.base import Trigger
from streamsql.language.statements.query import StopQuery
from streamsql.plan.planner import restart
from streamsql.results import Done
from streamsql.runtime.queries.parts import QueryParts
from streamsql.runtime.queries.run import BUSY, GOING_ON, Running
from streamsql.runtime.queries.start import start_query
from streamsql.runtime.queries.stop import PATIENCE

_LOSING = frozenset({"socket"})
"""Sources that forget at their end what was not processed."""


def stop_queries(statement: StopQuery, session: QueryParts) -> Done:
    """STOP QUERY name or ALL. With DRAIN one query is drained after the other, in the order in which they
    were made, so that one that reads what another writes comes after it. Raises Cancelled; the fault of
    the first query that could not be drained, once all are stopped; TimeFault.
    """
    began = time.monotonic()
    stopped, notes, faults = [], list[str](), list[StreamsqlError]()
    for found in session.catalog.named(statement.name):
        running = session.queries.all.get(found.name.casefold())
        if running is None or running.status() not in GOING_ON:
            continue
        stopped.append(found.name)
        if statement.drain and running.status() in BUSY and not running.stopped:
            spent = time.monotonic() - began
            left = None if statement.timeout is None else max(0.0, statement.timeout - spent)
            try:
                _drain(running, session, left)
            except StreamsqlError as fault:
                if session.cancel.cancelled:
                    raise
                faults.append(fault)
        elif not session.queries.stop(running, session.cancel, _patience(statement.timeout)):
            notes.append(_broken_off(running))
        running = session.queries.all[found.name.casefold()]
        if running.status() == "FAILED" and running.fault and running.fault not in faults:
            faults.append(running.fault)
    if faults:
        raise faults[0]
    if statement.name and not stopped:
        return Done(message=f"query {statement.name} was not running")
    return Done(
        tuple(n for n in notes if n), f"stopped: {', '.join(stopped)}" if stopped else "no query was running"
    )


def _broken_off(running: Running) -> str:
    trigger = running.plan.query.trigger
    if trigger and trigger.kind in ("continuous", "real_time"):
        return ""
    return (
        f"the micro-batch of {running.name} did not complete in time and was aborted: it is retried on "
        "restart"
    )


def _drain(running: Running, session: QueryParts, timeout: float | None) -> None:
    """Process what is there, then stop. What is there is what Spark's AVAILABLE NOW takes it for: it is
    asked once, when that begins, so that a source which never ends does not make it wait forever.
    """
    queries, name = session.queries, running.name.casefold()
    left = _countdown(timeout)
    clock = running.plan.shape.watches_the_clock  # always has something to do
    if clock or any(s.connector in _LOSING for s in running.plan.reads.streams):
        try:
            queries.wait([name], session.cancel, idle=True, timeout=left())
        finally:
            if not session.cancel.cancelled:
                queries.stop(running, session.cancel)
        return
    if not queries.stop(running, session.cancel, _patience(left())):
        raise _not_all(running)
    if running.status() != "stopped":
        return  # it ended by itself
    with queries.starting:
        made = restart(session.catalog.queries[name], session.context())
        made = replace(made, query=replace(made.query, trigger=Trigger("available_now")))
        last = start_query(session, made)
        last.source, last.span, last.stopped = running.source, running.span, True
    try:
        queries.wait([name], session.cancel, idle=False, timeout=left())
    except TimeFault:
        queries.stop(last, session.cancel)
        raise _not_all(running) from None


def _not_all(running: Running) -> TimeFault:
    return TimeFault(
        f"the query {running.name} was stopped before all input was processed: the time limit was reached",
        hint=f"START QUERY {running.name}; resumes from its checkpoint",
    )


def _patience(timeout: float | None) -> float:
    return PATIENCE if timeout is None else timeout


def _countdown(seconds: float | None) -> Callable[[], float | None]:
    deadline = None if seconds is None else time.monotonic() + seconds
    return lambda: None if deadline is None else max(0.0, deadline - time.monotonic())
