"""Streaming queries: INSERT, CREATE LIVE TABLE, SELECT over a stream; STOP, START, DROP, AWAIT."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from streamsql.catalog import REJECTED
from streamsql.errors import NameFault, RuleFault, Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.language.statements import query
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.watch import Watch
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.plan.planner import beginning, plan, restart
from streamsql.plan.stateful import CHOOSES_ROCKSDB
from streamsql.results import Done, Result, Started
from streamsql.runtime.draining import stop_queries
from streamsql.runtime.faults import translate
from streamsql.runtime.running import BUSY, GOING_ON
from streamsql.runtime.starting import forget_query, start_query
from streamsql.runtime.statements import Answers
from streamsql.runtime.statements.show_queries import held_back, why_empty
from streamsql.runtime.store import in_full
from streamsql.runtime.values import collect
from streamsql.runtime.watching import follow, watch

if TYPE_CHECKING:
    from streamsql.runtime.session import Session


def _run(session: Session, made: plans.Run, statement: Statement) -> Result:
    if made.skip_existing and made.sink.name.casefold() in session.catalog.sinks:
        return Done(message=f"live table {made.sink.name} is there already")
    if made.transient:
        return _follow(session, made, statement)
    if session.store and made.query.checkpoint:
        place = in_full(made.query.checkpoint)
        made = replace(made, query=replace(made.query, checkpoint=place), checkpoint=place)
    running = start_query(session, made, replaces=made.define)
    if made.define:
        session.catalog.sinks[made.sink.name.casefold()] = made.sink
    session.catalog.queries[made.query.name.casefold()] = made.query
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


def _start_rejected(session: Session, made: plans.Run) -> list[str]:
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


def _follow(session: Session, made: plans.Run, statement: Statement) -> Result:
    """A SELECT over a stream: shown live at a prompt; else read what is there, give the result."""
    if session.config.interactive:
        return follow(made, session)
    began = time.monotonic()
    name = f"select_{len(session.queries.all) + 1}_{os.getpid()}"
    made = made.named(name, session.places.transient(name))
    running = start_query(session, made)
    try:
        session.queries.wait([name.casefold()], idle=made.query.trigger is None, timeout=None)
        rows = collect(session.live[name.casefold()].frame(session.spark))
    except StreamsqlError as error:
        error.message = error.message.replace(f"query {name} failed: ", "the query failed: ")
        raise
    finally:
        session.queries.stop(running, 0)
        session.queries.all.pop(name.casefold(), None)
        session.live.pop(name.casefold(), None)
        shutil.rmtree(Path(made.checkpoint).parent, ignore_errors=True)
    notes = why_empty(running, made) if not rows.rows else ()
    return replace(rows, seconds=time.monotonic() - began, notes=notes)


def _start_again(session: Session, statement: query.StartQuery) -> Result:
    started, notes, faults = list[str](), tuple[str, ...](), list[StreamsqlError]()
    for found in session.catalog.named(statement.name):
        running = session.queries.all.get(found.name.casefold())
        span = statement.name.span if statement.name else None
        if running and running.status() in BUSY:
            if running.stopped:
                raise NameFault(
                    f"the query {found.name} is still stopping: its last micro-batch runs",
                    hint=f"AWAIT QUERY {found.name};",
                    span=span,
                )
            if statement.begins and statement.name:
                raise RuleFault(
                    f"the query {found.name} is running", hint=f"STOP QUERY {found.name}; first", span=span
                )
            continue
        if running:
            session.queries.stop(running)  # it waits for no restart any more
        try:
            again = beginning(restart(found, session.context()), statement.begins)
            notes += start_query(session, again).notes
        except Exception as error:
            if session.queries.cancelled.is_set():
                raise
            faults.append(translate(error, found.text, session.catalog.relation_names()))
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


def _drop_query(session: Session, statement: query.DropQuery) -> Result:
    if statement.if_exists and statement.name.value.casefold() not in session.catalog.queries:
        return Done(message=f"there is no query {statement.name}")
    found = session.catalog.query(statement.name)
    forget_query(session, found.name)
    if found.live_table:
        session.catalog.sinks.pop(found.sinks[0].casefold(), None)
    return Done(message=f"query {found.name} dropped")


def _await(session: Session, statement: query.AwaitQuery) -> Result:
    names = [q.name.casefold() for q in session.catalog.named(statement.name)]
    names = [n for n in names if n in session.queries.all]
    session.queries.wait(names, idle=statement.idle, timeout=statement.timeout)
    notes = tuple(n for name in names for n in held_back(session.queries.all[name]))
    return Done(notes, "idle" if statement.idle else "ended")


PLANS: Answers = {plans.Run: _run}
DIRECT: Answers = {
    query.StopQuery: lambda session, statement: stop_queries(statement, session),
    query.StartQuery: _start_again,
    query.DropQuery: _drop_query,
    query.AwaitQuery: _await,
    Watch: lambda session, statement: watch(statement, session),
}
