"""Streaming queries: INSERT, CREATE LIVE TABLE, SELECT over a stream; STOP, START, DROP, AWAIT."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from streamsql.catalog import REJECTED
from streamsql.connectors.option_values import in_full
from streamsql.errors import NameFault, QueryFault, RuleFault, Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.language.statements import query
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.watch import Watch
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.plan.lowering.stateful_calls import CHOOSES_ROCKSDB
from streamsql.plan.planner import plan, restart
from streamsql.results import Done, Result, Started
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.show_queries import held_back, why_empty
from streamsql.runtime.handlers.watch import follow, watch
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.drain import stop_queries
from streamsql.runtime.queries.run import BUSY, GOING_ON
from streamsql.runtime.queries.start import forget_query, start_query
from streamsql.runtime.workspace.owned_folders import remove


def _run(session: SessionParts, made: plans.Run, statement: Statement) -> Result:
    if made.exists(session.catalog):
        return Done(message=f"live table {made.sink.name} already exists")
    if made.transient:
        return _follow(session, made, statement)
    if session.store and made.query.checkpoint:
        place = in_full(made.query.checkpoint)
        made = replace(made, query=replace(made.query, checkpoint=place), checkpoint=place)
    running = start_query(session, made, replaces=made.define)
    # It runs: from here on nothing gives the statement up.
    session.current.update(replace(made, skip_existing=False).applied)
    what = f"live table {made.sink.name}" if made.define else f"query {made.query.name}"
    notes = [f"output mode {running.mode}: {running.reason}"] if running.reason else []
    if CHOOSES_ROCKSDB in made.program:
        processor = any(f.kind == "processor" for f in made.reads.functions)
        whose = "stateful processors need" if processor else "real-time mode needs"
        notes.append(f"state store of this query: RocksDB, which {whose}")
    for table in made.live:
        if session.live[table.name.casefold()].dropped:
            notes.append(f"only the last {table.retain} rows of {table.name} are kept")
    notes += running.notes
    durable = len(made.live) < len(made.targets)
    beside = _start_rejected(session, made)
    notes += [f"query {name} started: it writes malformed messages" for name in beside]
    return Started(tuple(notes), (made.query.name, *beside), f"{what} started", durable or bool(beside))


def _start_rejected(session: SessionParts, made: plans.Run) -> list[str]:
    """The queries that bring malformed messages to the sinks that ON MALFORMED INTO names: one for
    each stream, whoever reads it, so that each message is there once.
    """
    started = []
    for read in made.reads.streams:
        name = f"{read.name}_{REJECTED}"
        running = session.queries.all.get(name.casefold())
        if not read.malformed_sink or (running and running.status() in GOING_ON):
            continue
        if name.casefold() in session.catalog.queries:
            start_query(session, restart(session.catalog.queries[name.casefold()], session.context()))
        else:
            trigger = f"TRIGGER {made.query.trigger.sql()}" if made.query.trigger else ""
            rejected = quote_name(f"{read.name}${REJECTED}")
            into = f"INSERT INTO {quote_name(read.malformed_sink)} AS QUERY {quote_name(name)}"
            statement = parse(split_script(Source("", f"{into} {trigger} SELECT * FROM {rejected}"))[0], {})
            query_of = plan(statement, session.context())
            assert isinstance(query_of, plans.Run)
            _run(session, query_of, statement)
        started.append(name)
    return started


def _follow(session: SessionParts, made: plans.Run, statement: Statement) -> Result:
    """A SELECT over a stream: shown live at a prompt; else read what is there, give the result."""
    if session.config.interactive:
        return follow(made, session)
    began = time.monotonic()
    name = f"select_{len(session.queries.all) + 1}_{os.getpid()}"
    made = made.named(name, session.places.transient(name))
    running = start_query(session, made)
    try:
        session.queries.wait([name.casefold()], session.cancel, idle=made.query.trigger is None, timeout=None)
        rows = collect(session.live[name.casefold()].frame(session.spark))
    except QueryFault as error:
        raise error.of("the query failed") from error.__cause__
    finally:
        session.queries.stop(running, session.cancel, 0)
        session.queries.forget(name)
        session.live.pop(name.casefold(), None)
        remove(Path(made.checkpoint).parent)
    notes = why_empty(running, made) if not rows.rows else ()
    return replace(rows, seconds=time.monotonic() - began, notes=notes)


def _start_again(session: SessionParts, made: plans.Start, statement: query.StartQuery) -> Result:
    started, notes, faults = list[str](), tuple[str, ...](), list[StreamsqlError]()
    for again in made.queries:
        found = again.query
        running = session.queries.all.get(found.name.casefold())
        span = statement.name.span if statement.name else None
        if running and running.status() in BUSY:
            if running.stopped:
                raise NameFault(
                    f"the query {found.name} is still stopping: its current micro-batch is running",
                    hint=f"AWAIT QUERY {found.name};",
                    span=span,
                    code="QUERY_RUNNING",
                )
            if statement.begins and statement.name:
                raise RuleFault(
                    f"the query {found.name} is running",
                    hint=f"STOP QUERY {found.name}; first",
                    span=span,
                    code="QUERY_RUNNING",
                )
            continue
        if running:
            session.queries.stop(running, session.cancel)  # it waits for no restart any more
        try:
            if again.run is None:
                raise again.why or AssertionError(found.name)
            notes += start_query(session, again.run).notes
        except Exception as error:
            if session.cancel.cancelled:
                raise
            faults.append(translate(error, None, session.catalog.relation_names()))
            continue  # one query's trouble does not reach another
        started.append(found.name)
    if faults:
        first = faults[0]
        if statement.name is None:
            first.detail = "\n".join(p for p in (first.detail, *_beside(started, faults[1:])) if p)
        raise first
    if not started:
        return Done(message="already running" if session.catalog.queries else "there are no queries")
    lasting = tuple(n for n in started if not session.catalog.query(Name(n)).live_table)
    return Started(notes, lasting or tuple(started), f"started: {', '.join(started)}", bool(lasting))


def _beside(started: list[str], faults: list[StreamsqlError]) -> Iterator[str]:
    """What became of the other queries of a START QUERY ALL of which one was not started."""
    yield from (f"also: {f.message}" for f in faults)
    if started:
        yield f"started: {', '.join(started)}"


def _drop_query(session: SessionParts, statement: query.DropQuery) -> Result:
    if statement.if_exists and statement.name.value.casefold() not in session.catalog.queries:
        return Done(message=f"there is no query {statement.name}")
    found = session.catalog.query(statement.name)
    forget_query(session, found.name)
    if found.live_table:
        session.undefine("sinks", found.sinks[0])
    return Done(message=f"query {found.name} dropped")


def _await(session: SessionParts, statement: query.AwaitQuery) -> Result:
    names = [q.name.casefold() for q in session.catalog.named(statement.name)]
    names = [n for n in names if n in session.queries.all]
    session.queries.wait(names, session.cancel, idle=statement.idle, timeout=statement.timeout)
    notes = tuple(n for name in names for n in held_back(session.queries.all[name]))
    return Done(notes, "idle" if statement.idle else "ended")


PLANS: Answers = {plans.Run: _run, plans.Start: _start_again}
DIRECT: Answers = {
    query.StopQuery: lambda session, statement: stop_queries(statement, session),
    query.DropQuery: _drop_query,
    query.AwaitQuery: _await,
    Watch: lambda session, statement: watch(statement, session),
}
