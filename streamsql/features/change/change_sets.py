"""Sets of staged changes: BEGIN CHANGE … END CHANGE, and the statements about a whole set.

Which set is open belongs to the session; the set itself is in the catalog.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from streamsql.definitions import PROMOTED, Change, Member
from streamsql.errors import NameFault, RuleFault
from streamsql.features.change.affected import affected_tables, staging_of
from streamsql.features.change.compare import comparison_of
from streamsql.features.change.plan import (
    StreamOfSet,
    members_staged,
    planned_staging,
    refuse_to_stage,
)
from streamsql.features.change.run import promote, roll_back
from streamsql.features.change.staging import check_views, stage_tables, with_message
from streamsql.features.change.statement import (
    BeginChange,
    Compare,
    CompareChange,
    EndChange,
    PromoteChange,
    RollbackChange,
)
from streamsql.language.spark_definitions import definition_of
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.function import CreateFunction
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.spark import Spark
from streamsql.language.statements.stream import CreateStream
from streamsql.language.tokens import quote_name
from streamsql.plan import planner, plans
from streamsql.results import Done, Result
from streamsql.runtime.handlers.info_table import table
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.workspace.generations import CURRENT, Generations


def within(parts: SessionParts, statement: Statement) -> Statement:
    """A statement as it is executed while a set is open: a changed definition is staged, and belongs to the
    set. Raises RuleFault for one that cannot be staged.
    """
    if not parts.open_change:
        return statement
    catalog = parts.catalog
    if isinstance(statement, CreateLiveTable):
        name = statement.name
        if name.value.casefold() not in catalog.sinks:
            raise RuleFault(
                f"{name} is a new live table, and a change is of those that exist",
                detail="what is staged is compared with what is in use",
                hint="create it before BEGIN CHANGE, or after PROMOTE CHANGE",
                span=name.span,
                code="NOT_STAGEABLE",
            )
        if statement.or_replace:
            _add(parts, Member("live_table", catalog.live_table(name).name), name)
            return replace(statement, staged=True)
    elif isinstance(statement, CreateStream):
        old = catalog.streams.get(statement.name.value.casefold())
        if statement.or_replace or old is None:
            _add(parts, Member("stream", old.name if old else statement.name.value), statement.name)
            values = {f.name: getattr(statement, f.name) for f in fields(CreateStream)}
            return StreamOfSet(**values)
    elif isinstance(statement, CreateFunction) and statement.or_replace:
        if statement.name.value.casefold() in catalog.functions:
            raise refuse_to_stage("function", statement.name)
    elif isinstance(statement, Spark):
        view = definition_of(statement.text)
        if view.kind == "view" and view.creates.casefold() in catalog.tables:
            raise refuse_to_stage("view", Name(view.creates, statement.span))
    return statement


def _add(parts: SessionParts, member: Member, name: Name) -> None:
    """Add a member to the open set. Raises NameFault for one that is staged in another set."""
    (opened,) = parts.open_change
    for change in parts.catalog.changes.values():
        staged = [m.value.casefold() for m in members_staged(change, parts.catalog)]
        if change.name != opened and member.name.casefold() in staged:
            raise NameFault(
                f"{name} is staged in the change {change.name}",
                hint=f"PROMOTE CHANGE {quote_name(change.name)}; or DROP CHANGE {quote_name(change.name)};",
                span=name.span,
                code="IN_USE",
            )
    change = parts.catalog.changes.get(opened.casefold()) or Change(opened)
    parts.define(change.with_member(member))


def begin_change(parts: SessionParts, statement: BeginChange) -> Result:
    if parts.open_change:
        raise RuleFault(
            f"the change {parts.open_change[0]} is open",
            hint="END CHANGE;",
            span=statement.name.span,
            code="CHANGE_OPEN",
        )
    change = parts.catalog.changes.get(statement.name.value.casefold())
    staged = members_staged(change, parts.catalog) if change else []
    if change is None or not staged:
        change = Change(statement.name.value)
    parts.define(change)
    parts.open_change.append(change.name)
    names = f"; staged in it: {', '.join(name.value for name in staged)}" if staged else ""
    return Done(message=f"change {change.name} is open until END CHANGE{names}")


def end_change(parts: SessionParts, statement: EndChange) -> Result:
    """Stage what reads the members of the set, and close it. An error leaves it open."""
    if not parts.open_change:
        raise RuleFault(
            "no change is open", hint="BEGIN CHANGE name;", span=statement.span, code="NO_CHANGE_OPEN"
        )
    catalog, name = parts.catalog, Name(parts.open_change[0], statement.span)
    change = catalog.changes.get(name.value.casefold()) or Change(name.value)
    names = [member.value for member in members_staged(change, catalog)]
    check_views(parts, [n for n in names if catalog.staged_stream(n)], statement.span)
    affected = affected_tables(names, catalog)
    to_stage = [query for query in affected if _is_to_be_staged(parts, query.name)]
    planned_staging(to_stage, parts.context(), name)
    staged = stage_tables(parts, [staging_of(query, catalog) for query in to_stage])
    members = {m.name: m for m in change.members if m.name in names}
    members |= {query.name: Member("live_table", query.name) for query in affected}
    parts.open_change.clear()
    if not members:
        parts.undefine("changes", change.name)
        return Done(message=f"nothing was changed in {change.name}, and it is removed")
    parts.define(replace(change, members=tuple(members.values())))
    result = with_message(staged, (), "")
    quoted = quote_name(change.name)
    text = f"change {change.name} of {', '.join(members)}: COMPARE CHANGE {quoted}; PROMOTE CHANGE {quoted};"
    return replace(result, message=text)  # type: ignore[call-arg]


def _is_to_be_staged(parts: SessionParts, table: str) -> bool:
    """Whether the staged change of a live table is missing, or reads other definitions than those of now."""
    change = parts.catalog.staged(table)
    running = parts.queries.all.get(change.name.casefold()) if change else None
    if change is None or running is None:
        return True
    return _reads(running.plan) != _reads(planner.start_plan(change, parts.context()))


def _reads(plan: plans.Run) -> Any:
    """The definitions that a query reads."""
    return plan.reads.streams, plan.query.inputs, [_reads(stage) for stage in getattr(plan, "stages", ())]


def promote_change(parts: SessionParts, statement: PromoteChange) -> Result:
    change, place = parts.catalog.change(statement.name), statement.name.span
    if change.name in parts.open_change:
        raise RuleFault(
            f"the change {change.name} is open: what reads it is not staged yet",
            hint=f"END CHANGE; PROMOTE CHANGE {quote_name(change.name)};",
            span=place,
            code="CHANGE_OPEN",
        )
    promoted = promote(parts, [Name(n.value, place) for n in members_staged(change, parts.catalog)])
    return _of_change(promoted, change, parts)


def _of_change(result: Result, change: Change, parts: SessionParts) -> Result:
    assert isinstance(result, Done)
    text = result.message.partition("; ROLLBACK ")[0]
    if parts.store is not None:
        text += f"; ROLLBACK CHANGE {quote_name(change.name)}; brings back what was in use before"
    return replace(result, message=text)


def roll_back_change(parts: SessionParts, statement: RollbackChange) -> Result:
    change, place = parts.catalog.change(statement.name), statement.name.span
    promoted = [member for member in change.members if member.generation]
    if not promoted:
        raise RuleFault(
            f"the change {change.name} was not promoted",
            hint=f"PROMOTE CHANGE {quote_name(change.name)}; or DROP CHANGE {quote_name(change.name)};",
            span=place,
            code="NOT_PROMOTED",
        )
    for member in promoted:
        now = Generations(parts.places.query(member.name), CURRENT).current
        if member.generation != PROMOTED and (now is None or now.name != member.generation):
            raise RuleFault(
                f"{member.name} has been changed since {change.name} was promoted",
                detail=f"generation {member.generation} was in use then",
                hint=f"SHOW GENERATIONS OF {quote_name(member.name)};",
                span=place,
                code="NO_GENERATION",
            )
    names = [m.name for m in promoted if m.kind == "live_table" or f"{m.name}$before" in parts.catalog.aside]
    return _of_change(roll_back(parts, [Name(name, place) for name in names]), change, parts)


def compare_change(parts: SessionParts, statement: CompareChange) -> Result:
    change, place = parts.catalog.change(statement.name), statement.name.span
    rows = []
    for name in members_staged(change, parts.catalog):
        if parts.catalog.staged(name.value):
            _, found = comparison_of(parts, Compare(name=Name(name.value, place)))
            rows.append((name.value, *found.rows, found.gone, found.new, found.changed))
    columns = ("live table", "rows before", "rows after", "only before", "only after", "changed")
    return table(columns, rows, (1, 2, 3, 4, 5), "no live table is staged in it")
