"""Stages a definition beside the one in use, with the views and live tables that read it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from streamsql.calls import run
from streamsql.connectors.option_values import placed
from streamsql.definitions import Aside, OfSpark, in_use_name, is_staged, kind_of, promoted_name, staged_name
from streamsql.errors import Cancelled, Note, Span, StreamsqlError
from streamsql.features.change.kept_changes import keeping_staged
from streamsql.features.change.stage_plan import (
    Define,
    Staging,
    cannot_follow,
    spark_statement,
    staged_in_spark,
    staging_in_spark,
    written_definition,
)
from streamsql.language.spark_definitions import definition_of
from streamsql.language.statements.base import Statement
from streamsql.language.statements.function import CreateFunction
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.spark import Spark
from streamsql.language.statements.stream import CreateStream
from streamsql.plan import planner
from streamsql.plan.basic_plans import Drop
from streamsql.plan.plans import Collect, DefineFunction
from streamsql.plan.stand_ins import given_stream
from streamsql.plan.statements.existing import entries_of
from streamsql.results import Done, Result, Started
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.engine.temporary_views import with_full_paths
from streamsql.runtime.handlers import create_drop
from streamsql.runtime.handlers.start_stop import start_statement
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.csv_headers import check_headers


def stage_definition(
    parts: SessionParts, plan: Staging, statement: CreateStream | CreateFunction | Spark
) -> Result:
    """Define a stream, view or function beside the one in use, and stage what reads it. What fails is undone,
    and what was staged before is brought back.
    """
    place = written_definition(statement).name.span
    before = {view: entry for view, entry in parts.catalog.aside.items() if is_staged(entry.name)}
    with keeping_staged(parts, [staging.name.value for staging in plan.statements or ()]):
        entry, notes = _define(parts, plan.define, statement)
        begun, staged = [entry.name], list[Started]()
        try:
            for view in plan.in_spark:
                begun.append(staged_name(staged_in_spark(view)[1]))
                try:
                    create_in_spark(parts, view)
                except StreamsqlError as fault:
                    raise cannot_follow(*staged_in_spark(view), fault, place) from fault
            staged += stage_tables(parts, plan.statements or (), place)
        except BaseException:
            for aside in reversed(begun):
                create_drop.forget_aside(parts, aside)
                parts.undefine("aside", aside)
            for aside in begun:
                if aside.casefold() in before:
                    define_again(parts, before[aside.casefold()])
            raise
    text = f"staged: {kind_of(entry)} {in_use_name(entry.name)}"
    if plan.statements is None:
        return Done(notes, text)
    names = [*map(in_use_name, begun[1:]), *(promoted_name(started.queries[0]) for started in staged)]
    return with_message(staged, notes, ", ".join((text, *names)))


def _define(parts: SessionParts, define: Define, statement: Statement) -> tuple[Aside, tuple[Note, ...]]:
    """(the staged definition, which is in the catalog then, and a view or function in Spark; notes)."""
    if isinstance(define, Collect):
        assert isinstance(statement, Spark)
        return create_in_spark(parts, staging_in_spark(statement)), define.notes
    if isinstance(define, DefineFunction):
        key, here = define.function.name.casefold(), parts.variables.get("here", "")
        others = [function for name, function in parts.catalog.functions.items() if name != key]
        found = parts.modules.find(define.function, define.target, here, others)
        entry: Aside = replace(found, name=staged_name(found.name))
        parts.define(entry)
        return entry, define.notes
    stream, notes = create_drop.checked_stream(parts, define, statement)
    if not parts.config.stand_ins:
        check_headers(stream, define.path, "CREATE OR REPLACE")
    if parts.config.stand_ins:
        stream = given_stream(stream)
    entry = replace(placed(stream) if parts.store else stream, name=staged_name(stream.name))
    parts.define(entry)
    return entry, notes


def create_in_spark(parts: SessionParts, statement: Spark) -> OfSpark:
    """Create a temporary view or function in the Spark that runs the queries, and keep it. Raises faults."""
    statement, spark = cast("Spark", with_full_paths(statement)), parts.engine.wait(parts.cancel)
    plan = planner.plan(statement, parts.context())
    assert isinstance(plan, Collect)
    try:
        run(plan.program, parts.env(plan.program, plan.reads, spark))
        is_view = plan.defines.kind == "view"
        streaming = is_view and bool(spark.table(plan.defines.written).isStreaming)
    except Exception as error:
        raise translate(error, statement, parts.catalog.relation_names()) from error
    entry = plan.entry(streaming)
    parts.define(entry)
    parts.temporary.remember(statement, plan.defines)
    return entry


def define_again(parts: SessionParts, entry: Aside) -> None:
    """Put a definition back that is not in use."""
    parts.current.update(lambda catalog: catalog.having(entry))
    if isinstance(entry, OfSpark):
        keep_in_spark(parts, entry)


def keep_in_spark(parts: SessionParts, entry: OfSpark) -> None:
    """Create a view or function of the catalog in Spark, in the place of the one of its name, and keep it."""
    spark = parts.engine.wait(CancelToken()) if parts.engine.started else None
    parts.temporary.change(spark_statement(entry.text), definition_of(entry.text), spark)


def with_message(staged: list[Started], notes: Iterable[Note], text: str) -> Result:
    """The result of a statement that has staged live tables. text: its message."""
    names = [name for started in staged for name in started.queries]
    all_notes = tuple(dict.fromkeys((*notes, *(note for started in staged for note in started.notes))))
    return Started(all_notes, tuple(names), text, False) if names else Done(all_notes, text)


def stage_tables(parts: SessionParts, statements: Iterable[CreateLiveTable], place: Span) -> list[Started]:
    """Stage live tables, each after those that it reads. Where one fails, none of them is staged. place: of
    what they read, for its fault.
    """
    results = list[Started]()
    begun = list[str]()
    try:
        for statement in statements:
            begun.append(statement.name.value)
            result = start_statement(parts, statement)
            assert isinstance(result, Started)
            results.append(result)
    except BaseException as error:
        for table in reversed(begun):
            drop_staged(parts, table, statement)
        if isinstance(error, Cancelled) or not isinstance(error, Exception):
            raise
        raise cannot_follow("live table", begun[-1], translate(error), place) from error
    return results


def drop_staged(parts: SessionParts, table: str, statement: Statement) -> None:
    """Remove the staged change of a live table or a query into a sink, if it is there."""
    parts = parts.under(CancelToken())
    for query in parts.catalog.changes_of(table):
        drop = Drop("staged change of", table, tuple(entries_of(query, parts.catalog)))
        create_drop.PLANS[Drop](parts, drop, statement)
