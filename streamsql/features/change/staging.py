"""Stages a stream: its definition beside the one in use, with the live tables that read it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from streamsql.connectors.option_values import placed
from streamsql.definitions import promoted_name, staged_name
from streamsql.errors import Cancelled, Note, RuleFault, Span
from streamsql.features.change.affected import relations_over
from streamsql.features.change.plan import Staging, cannot_follow
from streamsql.language.names_read import relations_of
from streamsql.language.statements.base import Statement
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.stream import CreateStream
from streamsql.language.tokens import quote_name
from streamsql.plan.basic_plans import Drop
from streamsql.plan.stand_ins import given_stream
from streamsql.plan.statements.existing import entries_of
from streamsql.plan.streaming.readers import reads
from streamsql.results import Done, Result, Started
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.handlers import create_drop
from streamsql.runtime.handlers.start_stop import start_statement
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.csv_headers import check_headers


def stage_stream(parts: SessionParts, plan: Staging, statement: CreateStream) -> Result:
    """Define a stream beside the one in use, and stage what reads it. What fails is undone; a staged change
    that was there before is not brought back.
    """
    entry, notes = create_drop.checked_stream(parts, plan.define, statement)
    if not parts.config.stand_ins:
        check_headers(entry, plan.define.path, "CREATE OR REPLACE")
    if parts.config.stand_ins:
        entry = given_stream(entry)
    check_views(parts, [entry.name], statement.name.span)
    name = staged_name(entry.name)
    before = parts.catalog.aside.get(name.casefold())
    aside = replace(placed(entry) if parts.store else entry, name=name)
    parts.define(aside)
    if plan.statements is None:
        return Done(notes, f"staged: stream {entry.name}")
    try:
        staged = stage_tables(parts, plan.statements, statement.name.span)
    except BaseException:
        parts.undefine("aside", name)
        if before is not None:
            parts.current.update(lambda catalog: catalog.having(before))
        raise
    tables = "".join(f", {promoted_name(started.queries[0])}" for started in staged)
    return with_message(staged, notes, f"staged: stream {entry.name}{tables}")


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
        raise cannot_follow(begun[-1], translate(error), place) from error
    return results


def drop_staged(parts: SessionParts, table: str, statement: Statement) -> None:
    """Remove the staged change of a live table, if it is there."""
    query, parts = parts.catalog.staged(table), parts.under(CancelToken())
    if query is not None:
        drop = Drop("staged change of", table, tuple(entries_of(query, parts.catalog)))
        create_drop.PLANS[Drop](parts, drop, statement)


def check_views(parts: SessionParts, names: Iterable[str], span: Span) -> None:
    """Raise RuleFault for a view over streams that a query reads: it has them as they were when it was
    created.
    """
    over, views = relations_over(names, parts.catalog), dict[str, str]()
    for view, statement in parts.temporary.statements():
        table = parts.catalog.tables.get(view.casefold())
        read = {relation.name.casefold() for relation in relations_of(statement)} - {view.casefold()}
        if table is not None and table.streaming and read & (over | views.keys()):
            views[view.casefold()] = view
    for key, view in views.items():
        query = next((q for q in parts.catalog.named(None) if reads(q.text, key)), None)
        if query is not None:
            raise RuleFault(
                f"{query.name} reads the view {view}, which has the stream as it was when it was created",
                hint=f"CREATE STREAM {quote_name(view + '_2')} AS …; with the query of the view, "
                f"and read that in {quote_name(query.name)}",
                span=span,
                code="WRONG_KIND",
            )
