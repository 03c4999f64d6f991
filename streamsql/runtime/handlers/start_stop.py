"""Streaming queries: INSERT, CREATE LIVE TABLE, SELECT over a stream; STOP, START, DROP, AWAIT."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from streamsql.connectors.option_values import in_full
from streamsql.definitions import REJECTED, Query, is_staged, promoted_name
from streamsql.errors import NameFault, Note, QueryFault, RuleFault, Source, StreamsqlError
from streamsql.language.durations import seconds
from streamsql.language.parser import parse, split_script
from streamsql.language.statements import query as query_statements
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.watch import Watch
from streamsql.language.tokens import quote_name
from streamsql.plan import planner, plans
from streamsql.plan.changes_plan import Changes
from streamsql.plan.lowering.stateful_calls import CHOOSES_ROCKSDB
from streamsql.plan.statements.staged import REFUSED
from streamsql.plan.streaming.rules import Choice
from streamsql.results import ArrowRows, Done, Result, Rows, Started
from streamsql.runtime.engine.arrow_rows import collect_arrow, in_parts, live_table_arrow
from streamsql.runtime.engine.row_fetch import live_table_rows
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.evidence.start_advice import start_advice
from streamsql.runtime.explanations import explanations
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.live_results import follow, watch
from streamsql.runtime.handlers.refresh_remarks import empty_fact, refresh_remarks
from streamsql.runtime.handlers.staged_select import follow_select, select_in_stages
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.spark_tables import check_table, check_table_of_query
from streamsql.runtime.queries.drain import stop_queries
from streamsql.runtime.queries.history import read_history
from streamsql.runtime.queries.new_columns import with_new_columns
from streamsql.runtime.queries.progress_reports import QueryReported
from streamsql.runtime.queries.run import BUSY, GOING_ON, Running
from streamsql.runtime.queries.start import end_transient, forget_query, start_query
from streamsql.runtime.workspace.generations import generations_of

_NUMBERS = itertools.count(1)
"""Of the queries of SELECTs in scripts."""


def _run(parts: SessionParts, plan: plans.Run, statement: Statement) -> Result:
    if plan.exists(parts.catalog):
        return Done(message=f"live table {plan.sink.name} already exists")
    if plan.transient:
        return _follow(parts, plan, statement)
    check_table(parts.spark, parts.catalog, plan.sink, statement)
    if parts.store and plan.query.checkpoint:
        place = in_full(plan.query.checkpoint)
        plan = replace(plan, query=replace(plan.query, checkpoint=place), checkpoint=place)
    history = list[Note]()
    if plan.history and isinstance(statement, CreateLiveTable):
        history.append(read_history(parts, plan, statement))
        plan = replace(plan, history=None)
    try:
        with parts.cancel.holding(parts.queries.starting):  # what reads it is planned with its definition
            running = parts.newest.started(start_query(parts, plan, replaces=plan.define))
            _start_before(parts, plan)
            # The query runs: from here on the statement is no longer cancelled.
            parts.current.update(replace(plan, skip_existing=False).applied)
    except Exception as error:
        otherwise = _otherwise(plan, error)
        otherwise = replace(otherwise, history=plan.history)
        return _with_notes(_run(parts, otherwise, statement), replace(plan, otherwise=otherwise))
    what = f"live table {plan.sink.name}" if plan.define else f"query {plan.query.name}"
    if is_staged(plan.query.name):
        what = f"staged change of {promoted_name(plan.query.name)}"
    notes = [*history, *running.mode_notes]
    if CHOOSES_ROCKSDB in plan.program:
        processor = any(f.kind == "processor" for f in plan.reads.functions)
        whose = "stateful processors need" if processor else "real-time mode needs"
        notes.append(Note("STATE_STORE", f"state store of this query: RocksDB, which {whose}"))
    for table in plan.live:
        if parts.live[table.name.casefold()].dropped:
            text = f"only the last {table.retain} rows of {table.name} are kept"
            notes.append(Note("ROWS_DROPPED", text))
    for name in dict.fromkeys((plan.query.name, *(table.name for table in plan.live))):
        if empty := empty_fact(name, parts):
            notes.append(Note("LIVE_TABLE_EMPTY", f"{name} has {empty}"))
    notes += running.notes
    notes += start_advice(parts, running)
    notes += with_new_columns(parts, [plan.query.name]) if plan.define else ()
    durable = len(plan.live) < len(plan.targets)
    beside = _start_rejected(parts, plan)
    malformed = "it writes malformed messages"
    notes += [Note("MALFORMED_QUERY", f"query {name} started: {malformed}") for name in beside]
    return Started(tuple(notes), (plan.query.name, *beside), f"{what} started", durable or bool(beside))


def _start_before(parts: SessionParts, plan: plans.Run) -> None:
    """Start the live table with the rows before, of a staged INSERT. Raises its fault: then nothing is
    staged.
    """
    if plan.before is None:
        return
    try:
        start_query(parts, plan.before, replaces=True)
    except BaseException:
        forget_query(parts, plan.query.name)
        generations_of(parts.places, plan.query.name).remove()
        raise


def _start_rejected(parts: SessionParts, run: plans.Run) -> list[str]:
    """Start the queries that write malformed messages into the sinks of ON MALFORMED INTO: one for each
    stream, however many queries read it, so that each message is written once. Returns their names.
    """
    started = []
    for read in run.reads.streams:
        name = f"{read.name}_{REJECTED}"
        running = parts.queries.all.get(name.casefold())
        if not read.malformed_sink or (running and running.status() in GOING_ON):
            continue
        if name.casefold() in parts.catalog.queries:
            start_query(parts, planner.start_plan(parts.catalog.queries[name.casefold()], parts.context()))
        else:
            trigger = f"TRIGGER {run.query.trigger.sql()}" if run.query.trigger else ""
            rejected = quote_name(f"{read.name}${REJECTED}")
            into = f"INSERT INTO {quote_name(read.malformed_sink)} AS QUERY {quote_name(name)}"
            written = split_script(Source("", f"{into} {trigger} SELECT * FROM {rejected}"))[0]
            start_statement(parts, parse(written, {}))
        started.append(name)
    return started


def start_statement(parts: SessionParts, statement: Statement) -> Result:
    """Plan and execute a statement that starts a query. Raises its fault."""
    plan = planner.plan(statement, parts.context())
    assert isinstance(plan, plans.Run)
    return _run(parts, plan, statement)


def _follow(parts: SessionParts, plan: plans.Run, statement: Statement) -> Result:
    """A SELECT over a stream. At a prompt its result refreshes; else it processes the available input and
    returns the rows.
    """
    if isinstance(plan, plans.Refresh):
        form = statement if isinstance(statement, Watch) else None
        if parts.config.interactive or form:
            return follow_select(plan, parts, form)
        began = time.monotonic()
        whole = partial(collect_arrow, cancel=parts.cancel) if parts.config.arrow else collect
        staged: Rows | ArrowRows = select_in_stages(plan, parts, whole)
        return replace(staged, seconds=time.monotonic() - began)
    try:
        return follow(plan, parts) if parts.config.interactive else _rows(parts, plan)
    except Exception as error:
        return _with_notes(_follow(parts, _otherwise(plan, error), statement), plan)


def _otherwise(plan: plans.Run, error: Exception) -> plans.Run:
    """What runs in place of a query that Spark refuses on streams. Raises the error where nothing does."""
    fault = translate(error)
    if fault.code in REFUSED and plan.otherwise is not None:
        return plan.otherwise
    if fault.code in REFUSED and plan.by_hand:
        fault.hint = "\nor: ".join(filter(None, (fault.hint, plan.by_hand)))
        raise fault from error
    raise error


def _with_notes(result: Result, plan: plans.Run) -> Result:
    """The result of what runs otherwise, with the notes of its plan."""
    assert plan.otherwise is not None
    notes = tuple(note for note in plan.otherwise.notes if note not in plan.notes)
    return replace(result, notes=(*notes, *result.notes))


def rows_of_stream(parts: SessionParts, plan: plans.Run, use: Callable[[Any], Any]) -> Any:
    """What a function gives for the DataFrame of a SELECT over a stream after all available input."""
    if isinstance(plan, plans.Refresh):
        return select_in_stages(plan, parts, use)
    try:
        return _select(parts, plan, lambda live: use(live.frame(parts.spark)))
    except Exception as error:
        return rows_of_stream(parts, _otherwise(plan, error), use)


def _rows(parts: SessionParts, plan: plans.Run) -> Result:
    """The rows of a SELECT over a stream after all available input."""
    began = time.monotonic()
    taken = live_table_arrow if parts.config.arrow else live_table_rows
    rows: Rows | ArrowRows = _select(parts, plan, lambda live: taken(live, parts.spark, parts.cancel))
    rows = in_parts(rows) if isinstance(rows, ArrowRows) else rows
    return replace(rows, seconds=time.monotonic() - began)


def _select(parts: SessionParts, plan: plans.Run, use: Callable[[Any], Any]) -> Any:
    name = f"select_{next(_NUMBERS)}_{os.getpid()}"
    plan = plan.named(name, parts.places.transient(name))
    running = parts.newest.started(start_query(parts, plan))
    try:
        parts.queries.wait([name.casefold()], parts.cancel, idle=plan.query.trigger is None, timeout=None)
        table = parts.live[name.casefold()]
        if table.empty_fault:
            raise table.empty_fault
        rows = use(table)
        if isinstance(rows, Result) and (rows.empty or table.last_batch < 0):
            rows = replace(rows, notes=explanations().empty_select(parts, running))
        return rows
    except QueryFault as error:
        raise error.of("the query failed") from error.__cause__
    finally:
        end_transient(parts, running)


def _start_again(parts: SessionParts, plan: plans.Start, statement: query_statements.StartQuery) -> Result:
    started, notes, faults = list[str](), tuple[Note, ...](), list[StreamsqlError]()
    left, failed = list[str](), list[str]()
    for again in plan.queries:
        query = again.query
        if statement.name is None and _stays_stopped(parts, query):
            left.append(query.name)
            continue
        running = parts.queries.all.get(query.name.casefold())
        if running and running.status() in BUSY:
            _check_may_run(running, statement)
            continue
        if running:
            parts.queries.stop(running, parts.cancel)  # cancels a pending restart
        try:
            if again.run is None:
                raise again.why or AssertionError(query.name)
            run = _in_the_mode_of_its_rows(parts, again.run)
            check_table_of_query(
                parts.spark, query.name, run.sink, statement.name.span if statement.name else None
            )
            running = parts.newest.started(start_query(parts, run))
            if statement.retain:
                parts.define(run.query, *((run.sink,) if run.query.live_table else ()))
            notes += running.notes if run is again.run else (*running.notes, *running.mode_notes)
            notes += start_advice(parts, running) if statement.name else ()
        except Exception as error:
            if parts.cancel.cancelled:
                raise
            faults.append(translate(error, None, parts.catalog.relation_names()))
            failed.append(query.name)
            continue  # a failure of one query does not affect the others
        started.append(query.name)
    if faults:
        first = faults[0]
        if statement.name is None:
            first.detail = "\n".join(p for p in (first.detail, *_beside(started, failed, faults[1:])) if p)
        raise first
    if left:
        they = "it" if len(left) == 1 else "each"
        text = f"not started: {', '.join(left)}, stopped by STOP QUERY; START QUERY name; starts {they}"
        notes = (*notes, Note("STAYS_STOPPED", text))
    if not started:
        said = "none was started" if left else "already running"
        return Done(notes, said if parts.catalog.queries else "there are no queries")
    lasting = tuple(n for n in started if not parts.catalog.query(Name(n)).live_table)
    return Started(notes, lasting or tuple(started), f"started: {', '.join(started)}", bool(lasting))


def _stays_stopped(parts: SessionParts, query: Query) -> bool:
    """Whether a STOP QUERY that names a query has stopped it: START QUERY ALL starts what ran."""
    running = parts.queries.all.get(query.name.casefold())
    if running is not None:
        return running.on_purpose and running.status() == "stopped"
    return parts.workspace.past(query.name).on_purpose


def _in_the_mode_of_its_rows(parts: SessionParts, run: plans.Run) -> plans.Run:
    """The plan of a query in output mode complete, if its live table has rows of that mode and another one
    would be chosen now: an earlier version of the console has written them.
    """
    query = run.query
    if query.mode or run.begins or not query.live_table or isinstance(run, plans.Refresh):
        return run
    rows = parts.live.get(query.name.casefold())
    if rows is None or rows.mode != "complete" or any(c.mode == "complete" for c in run.choices[:1]):
        return run
    try:
        complete = planner.start_plan(replace(query, mode="complete"), parts.context())
    except StreamsqlError:
        return run
    reason = f"as when {query.name} was created; CREATE OR REPLACE LIVE TABLE computes it in a faster one"
    return replace(complete, query=query, choices=(Choice("complete", reason),))


def _check_may_run(running: Running, statement: query_statements.StartQuery) -> None:
    """Raise NameFault or RuleFault when a running query does not do what its START QUERY asks for."""
    span = statement.name.span if statement.name else None
    if running.stopped:
        raise NameFault(
            f"the query {running.name} is still stopping: its current micro-batch is running",
            hint=f"AWAIT QUERY {quote_name(running.name)};",
            span=span,
            code="QUERY_RUNNING",
        )
    if statement.begins and statement.name:
        raise RuleFault(
            f"the query {running.name} is running",
            hint=f"STOP QUERY {quote_name(running.name)}; first",
            span=span,
            code="QUERY_RUNNING",
        )


def _beside(started: list[str], failed: list[str], faults: list[StreamsqlError]) -> Iterator[str]:
    """The outcome of all queries of a START QUERY ALL when one could not be started."""
    yield from (f"also: {f.message}" for f in faults)
    yield f"not started: {', '.join(failed)}"
    if started:
        yield f"started: {', '.join(started)}"


def _await(parts: SessionParts, statement: query_statements.AwaitQuery) -> Result:
    asked = [q.name for q in parts.catalog.named(statement.name)]
    names = [n.casefold() for n in asked if n.casefold() in parts.queries.all]
    off = [n for n in asked if n.casefold() not in names] if statement.name else []
    ended = [q for q in map(parts.queries.all.__getitem__, names) if q.status() == "FAILED"]
    before = [q.fault for q in ended if q.reported or parts.config.interactive]

    def tell(running: Running) -> None:
        parts.engine.doing = _waiting(running, idle=statement.idle)
        parts.queries.awaited = running

    try:
        parts.queries.wait(names, parts.cancel, idle=statement.idle, timeout=statement.timeout, tell=tell)
    except StreamsqlError as fault:
        for running in parts.queries.all.values():
            if running.fault is fault and fault in before:
                raise _failed_before(running) from fault.__cause__
            running.reported = running.reported or running.fault is fault
        raise
    finally:
        parts.engine.doing, parts.queries.awaited = "", None
        parts.events.publish(QueryReported())  # what was left to AWAIT, and not told by it
    ended_names = [n for n in names if statement.name or parts.queries.all[n].status() != "stopped"]
    notes = tuple(n for name in ended_names for n in explanations().awaited(parts, parts.queries.all[name]))
    notes += tuple(
        Note("NOT_AWAITED", f"{n} is stopped: START QUERY {quote_name(n)}; resumes it") for n in off
    )
    notes += tuple(
        Note("NOT_REFRESHED", f"{name}: {n}") for name in names for n in refresh_remarks(name, parts)
    )
    return Done(notes, "idle" if statement.idle else "ended")


def _failed_before(running: Running) -> QueryFault:
    """The failure of a query that was told when it happened: when that was, and what tells it again."""
    fault, name = running.fault, quote_name(running.name)
    assert fault is not None
    return QueryFault(
        f"query {running.name} failed at {running.ended:%H:%M:%S}",
        hint=f"DESCRIBE QUERY {name}; shows why, START QUERY {name}; resumes it",
        condition=fault.condition,
        code=fault.code,
    )


def _waiting(running: Running, *, idle: bool) -> str:
    """What AWAIT waits for, as the progress line shows it."""
    if running.again_at is not None:
        return f"waiting for the restart of {running.name}"
    last = running.reports.latest
    batch = f"batch {last.get('batchId')} done, " if last else ""
    until = "process all input" if idle else "end"
    rows = f"{running.reports.account.read.of('row')} in"
    return f"waiting for {running.name} to {until}: {batch}{rows}{_next(running)}"


def _next(running: Running) -> str:
    """When the next micro-batch of a query with an interval begins, as Spark counts it: from 1970 on."""
    trigger = running.plan.query.trigger
    every = seconds(trigger.interval) if trigger and trigger.kind == "every" else 0.0
    if every < LONG_TRIGGER or not running.reports.last:
        return ""
    return f", next trigger at {datetime.fromtimestamp((time.time() // every + 1) * every):%H:%M:%S}"


LONG_TRIGGER = 5.0
"""Seconds between two triggers from which on AWAIT tells the time of the next one."""


PLANS: Answers = {plans.Run: _run, plans.Refresh: _run, Changes: _run, plans.Start: _start_again}
DIRECT: Answers = {
    query_statements.StopQuery: lambda parts, statement: stop_queries(statement, parts),
    query_statements.AwaitQuery: _await,
    Watch: lambda parts, statement: watch(statement, parts),
}
