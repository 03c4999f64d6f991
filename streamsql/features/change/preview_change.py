"""PREVIEW CHANGE: what a changed live table would compute and read again, before it is staged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from streamsql.catalog import CurrentCatalog, unknown
from streamsql.connectors.registry import connector
from streamsql.definitions import Query, Stream, is_staged, promoted_name
from streamsql.errors import RuleFault
from streamsql.features.change.affected import reads_through
from streamsql.features.change.stage_plan import (
    Staging,
    stage_definition,
    staged_in_spark,
    written_definition,
)
from streamsql.features.change.statement import PreviewChange
from streamsql.language.spark_definitions import definition_of
from streamsql.language.statements.base import Name
from streamsql.language.statements.function import CreateFunction
from streamsql.language.statements.insert import Insert
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.spark import Spark
from streamsql.language.statements.stream import CreateStream
from streamsql.plan import planner
from streamsql.plan.plans import Run
from streamsql.plan.statements.staged_query import changed_query
from streamsql.plan.streaming.query_changes import changes, facts_of
from streamsql.query_facts import Account
from streamsql.results import Result, counted
from streamsql.runtime.engine.moments import brief
from streamsql.runtime.evidence.source_files import listing
from streamsql.runtime.handlers.info_table import pairs_of, size_text
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.facts import is_source_of


def preview_change(parts: SessionParts, statement: PreviewChange) -> Result:
    """What changes, as properties. Raises faults of planning the statement."""
    body, context = statement.body, parts.context()
    if isinstance(body, (CreateStream, CreateFunction, Spark)) and _defines(body):
        return pairs_of(list(_of_definition(parts, body)))
    if isinstance(body, Insert):
        query = changed_query(body, context)
        body = replace(body, staged=True)
    elif isinstance(body, CreateLiveTable) and body.name.value.casefold() not in parts.catalog.sinks:
        new = planner.plan(replace(body, staged=bool(parts.open_change)), context)
        assert isinstance(new, Run)
        return pairs_of(list(_of_new(parts, body.name.value, new)))
    elif isinstance(body, CreateLiveTable) and body.or_replace:
        query = parts.catalog.query(Name(parts.catalog.live_table(body.name).name))
    else:
        raise RuleFault(
            "PREVIEW CHANGE takes a changed live table, stream, view, function, or query into a sink",
            hint="PREVIEW CHANGE CREATE OR REPLACE LIVE TABLE name AS SELECT …;\n"
            "or PREVIEW CHANGE CREATE OR REPLACE STREAM name …;\n"
            "or PREVIEW CHANGE INSERT INTO sink AS QUERY name SELECT …;",
            span=statement.span,
            code="WRONG_KIND",
        )
    new = planner.plan(body, context)
    assert isinstance(new, Run)
    return pairs_of(list(_of_query(parts, query, new)))


def _defines(body: CreateStream | CreateFunction | Spark) -> bool:
    """Whether a statement replaces a stream, a view or a function."""
    if isinstance(body, Spark):
        new = definition_of(body.text)
        return new.kind in ("view", "function") and new.replaces
    return body.or_replace


def _of_definition(
    parts: SessionParts, body: CreateStream | CreateFunction | Spark
) -> Iterator[tuple[str, Any]]:
    """A changed stream, view or function, and each live table that is staged with it."""
    written = written_definition(body)
    old = parts.catalog.definition_in_use(written.kind, written.name.value)
    if old is None:
        raise unknown(written.kind, written.name, parts.catalog.names_in_use(written.kind))
    # In a set END CHANGE stages the live tables.
    plan = stage_definition(body, replace(parts, open_change=[]).context())
    assert isinstance(plan, Staging) and plan.statements is not None
    name, tables = old.name, [statement.name.value for statement in plan.statements]
    going_on = [
        query.name
        for query in parts.catalog.named(None)
        if query.name not in tables
        and not is_staged(query.name)
        and reads_through(query.text, name, plan.staged)
    ]
    yield written.kind, name
    in_spark = [staged_in_spark(statement)[1] for statement in plan.in_spark]
    yield "staged with it", ", ".join((*in_spark, *tables)) or "nothing"
    yield "read by", ", ".join(f"{query} (goes on from its checkpoint)" for query in going_on)
    staged = replace(parts, current=CurrentCatalog(plan.staged), open_change=[])
    for statement in plan.statements:
        new = planner.plan(statement, staged.context())
        assert isinstance(new, Run)
        query = parts.catalog.queries.get(statement.name.value.casefold())
        if query is None:
            yield from _of_new(parts, statement.name.value, new)
        else:
            yield from _of_query(parts, query, new, "none of its own")


def _of_new(parts: SessionParts, name: str, new: Run) -> Iterator[tuple[str, Any]]:
    """A live table that is not there yet. new: its plan."""
    yield "live table", name
    yield "change", "it is new: all of its rows"
    for text in _inputs(parts, new, Account()):
        yield "read", text


def _of_query(parts: SessionParts, query: Query, new: Run, same: str = "none") -> Iterator[tuple[str, Any]]:
    """A changed query. new: the plan of its staged change; same: what stands for no change of its own."""
    old = planner.start_plan(query, parts.context())
    mode = old.choices[0].mode
    found = changes(facts_of(old, mode, None), facts_of(new, mode, None))
    account = _account(parts, query)
    yield "live table" if query.live_table else "query", query.name
    for text in [change.what for change in found] or [same]:
        yield "change", text
    yield "computed anew", _state(account)
    for text in _inputs(parts, new, account):
        yield "read again", text
    yield "takes about", _time(parts, query, account)
    if query.live_table:
        how = {True: "computed again", False: "writes the difference"}
        readers = parts.catalog.readers_of(query.name)
        yield "read by", ", ".join(f"{q.name} ({how[q.live_table]})" for q in readers)
    else:
        yield "writes into", _written(new)


def _account(parts: SessionParts, query: Query) -> Account:
    """The account of a query; in stages, of these together."""
    account = parts.facts(query.name).account
    for stage in parts.catalog.stages_of(query.name):
        account = account.then(parts.facts(stage.name).account)
    return account


def _state(account: Account) -> str:
    """What a new checkpoint means for the state."""
    held = ", ".join(f"{counted(rows, 'row')} of {name}" for name, rows in account.state if rows)
    return f"all of it, with a new checkpoint; the state of now: {held or 'none'}"


def _inputs(parts: SessionParts, plan: Run, account: Account) -> Iterator[str]:
    """What is read of each stream and live table again."""
    plans = [plan, *getattr(plan, "stages", ())]
    for stream in {s.name: s for p in plans for s in p.reads.streams if s.connector}.values():
        texts = [f"{counted(rows, 'row')} so far"] if (rows := _rows(stream, account, parts)) else []
        folder = parts.places.values(stream.name) if stream.connector == "values" else ""
        files = listing(stream, folder)
        if files is not None and files.matching:
            texts.append(f"{counted(len(files.matching), 'file')}, {size_text(_bytes(files.matching))}")
        yield f"{stream.name}: {', '.join(texts) or 'all that its source has'}"
    stages = {stage.query.name.casefold() for stage in getattr(plan, "stages", ())}
    for table in plan.reads.live:
        if table.name.casefold() not in stages:
            name = promoted_name(table.name)
            rows = parts.live.get(name.casefold()) or parts.live.get(table.name.casefold())
            yield f"{name}: {counted(rows.now().count if rows else 0, 'row')}"


def _rows(stream: Stream, account: Account, parts: SessionParts) -> int:
    """The rows of a stream that the query has read so far."""
    return sum(rows for text, rows in account.streams if is_source_of(stream, text, parts.places))


def _bytes(files: Any) -> int:
    total = 0
    for file in files:
        with suppress(OSError):
            total += os.stat(file).st_size
    return total


def _time(parts: SessionParts, query: Query, account: Account) -> str:
    """How long the query has worked for the rows that it has read, by its micro-batches; "" without any."""
    names = [query.name, *(stage.name for stage in parts.catalog.stages_of(query.name))]
    done = [numbers for name in names for numbers in parts.histories.of(name).done.values()]
    rows = sum(rows for rows, _ in done)
    seconds = sum(milliseconds or 0 for _, milliseconds in done) / 1000
    if not rows or not seconds:
        return ""
    pace = rows / seconds
    shown = counted(round(pace), "row") if pace >= 1 else f"{pace:.2g} rows"
    return f"{brief(account.read.number / pace)}, at {shown} per second as its micro-batches ran"


def _written(new: Run) -> str:
    """What the sink of a query gets once its change is promoted."""
    sink = new.becomes[0].sink
    if connector(Name(sink.connector)).keeps_in_step(sink):
        return f"{sink.name}: upserts and deletes of the difference"
    if new.query.inputs:
        return f"{sink.name}: the changes of the difference"
    return f"{sink.name}: all rows again, WITH DUPLICATES; or, staged FROM NOW, what comes from then on"
