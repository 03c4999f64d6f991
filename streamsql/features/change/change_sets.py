"""Sets of staged changes: BEGIN CHANGE … END CHANGE, and the statements about a whole set; with all handlers.

Which set is open belongs to the session; the set itself is in the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from streamsql.definitions import PROMOTED, Change, before_name, promoted_name
from streamsql.errors import RuleFault, StreamsqlError
from streamsql.features.change.change_plans import begin, closing, members_staged, with_affected
from streamsql.features.change.compare import compare, comparison_of, rows_of_new
from streamsql.features.change.kept_changes import keeping_staged
from streamsql.features.change.preview_change import preview_change
from streamsql.features.change.rollback import roll_back, rollback
from streamsql.features.change.run import promote, promote_named
from streamsql.features.change.show_changes import show_generations, show_staged
from streamsql.features.change.stage_plan import Staging
from streamsql.features.change.staging import drop_staged, stage_definition, stage_tables, with_message
from streamsql.features.change.statement import (
    BeginChange,
    Compare,
    CompareChange,
    EndChange,
    PreviewChange,
    Promote,
    PromoteChange,
    Rollback,
    RollbackChange,
    ShowGenerations,
    ShowStaged,
)
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.plan import planner, plans
from streamsql.plan.statements.staged_tables import staging_of_insert
from streamsql.results import Compared, Done, Result, Started
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import table
from streamsql.runtime.handlers.start_stop import start_statement
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.workspace.generations import CURRENT, Generations


def begin_change(parts: SessionParts, statement: BeginChange) -> Result:
    opened = begin(statement, parts.context())
    change = opened.after.change(Name(opened.opens))
    parts.define(change)
    parts.open_change.append(change.name)
    staged = ", ".join(name.value for name in members_staged(change, parts.catalog))
    return Done(
        message=f"change {change.name} is open until END CHANGE" + (staged and f"; staged in it: {staged}")
    )


def end_change(parts: SessionParts, statement: EndChange) -> Result:
    """Stage what reads the members of the set, and close it. An error leaves it open."""
    closed = closing(parts.context(), statement.span, partial(_is_to_be_staged, parts))
    again = [staging_of_insert(query) for query in closed.inserts]
    for query in closed.inserts:
        drop_staged(parts, promoted_name(query.name), statement)
    try:
        with keeping_staged(parts, [staging.name.value for staging in closed.statements]):
            staged = stage_tables(parts, closed.statements, statement.span)
    except BaseException:
        for insert in again:
            with suppress(StreamsqlError):
                start_statement(parts.under(CancelToken()), insert)
        raise
    staged += [started for i in again if isinstance(started := start_statement(parts, i), Started)]
    change = with_affected(closed.change, parts.catalog)
    parts.open_change.clear()
    if not change.members:
        parts.undefine("changes", change.name)
        return Done(message=f"nothing was changed in {change.name}, and it is removed")
    parts.define(change)
    members, quoted = ", ".join(m.name for m in change.members), quote_name(change.name)
    text = f"change {change.name} of {members}: COMPARE CHANGE {quoted}; PROMOTE CHANGE {quoted};"
    return with_message(staged, (), text)


def _is_to_be_staged(parts: SessionParts, table: str) -> bool:
    """Whether the staged change of a live table is missing, or reads other definitions than those of now."""
    change = parts.catalog.staged(table)
    running = parts.queries.all.get(change.name.casefold()) if change else None
    if change is None or running is None:
        return True
    return _reads(running.plan) != _reads(planner.start_plan(change, parts.context()))


def _reads(plan: plans.Run) -> Any:
    """The definitions that a query reads."""
    reads = plan.reads.streams, plan.reads.staged, plan.reads.functions
    return reads, plan.query.inputs, [_reads(stage) for stage in getattr(plan, "stages", ())]


def promote_change(parts: SessionParts, statement: PromoteChange) -> Result:
    change, place = parts.catalog.change(statement.name), statement.name.span
    if change.name in parts.open_change:
        raise RuleFault(
            f"the change {change.name} is open: what reads it is not staged yet",
            hint=f"END CHANGE; PROMOTE CHANGE {quote_name(change.name)};",
            span=place,
            code="CHANGE_OPEN",
        )
    names = [Name(n.value, place) for n in members_staged(change, parts.catalog)]
    with _of_set(f"PROMOTE CHANGE {quote_name(change.name)}"):
        return promote(parts, names, _back(change), duplicates=statement.duplicates)


@contextmanager
def _of_set(statement: str) -> Iterator[None]:
    """The error of a sink that would get rows twice names the statement about the whole set."""
    try:
        yield
    except RuleFault as fault:
        if fault.code == "ROWS_TWICE":
            fault.hint = f"{statement} WITH DUPLICATES;"
        raise


def _back(change: Change) -> str:
    return f"ROLLBACK CHANGE {quote_name(change.name)};"


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
    created = [Name(member.name, place) for member in promoted if member.new]
    for member in promoted:
        now = Generations(parts.places.query(member.name), CURRENT).current
        if member.new and now is None and member.name.casefold() not in parts.catalog.queries:
            continue  # it was taken out
        if member.generation != PROMOTED and (now is None or now.name != member.generation):
            raise RuleFault(
                f"{member.name} has been changed since {change.name} was promoted",
                detail=f"generation {member.generation} was in use then",
                hint=f"SHOW GENERATIONS OF {quote_name(member.name)};",
                span=place,
                code="NO_GENERATION",
            )
    aside = parts.catalog.aside
    names = [m.name for m in promoted if not m.is_definition or before_name(m.name).casefold() in aside]
    names = [name for name in names if name not in {new.value for new in created}]
    with _of_set(f"ROLLBACK CHANGE {quote_name(change.name)}"):
        back, duplicates = _back(change), statement.duplicates
        written = [Name(name, place) for name in names]
        return roll_back(parts, written, back=back, duplicates=duplicates, created=created)


def compare_change(parts: SessionParts, statement: CompareChange) -> Result:
    change, place = parts.catalog.change(statement.name), statement.name.span
    rows, differing = [], 0
    for name in members_staged(change, parts.catalog):
        if staged := parts.catalog.staged(name.value):
            one = Compare(name=Name(name.value, place), query=bool(staged.into))
            if parts.catalog.is_new(name.value):
                count = rows_of_new(parts, one)
                rows.append((name.value, 0, count, 0, count, 0))
                differing += count
                continue
            _, found = comparison_of(parts, one)
            rows.append((name.value, *found.rows, found.gone, found.new, found.changed))
            differing += found.size
    columns = ("name", "rows before", "rows after", "only before", "only after", "changed")
    shown = table(columns, rows, (1, 2, 3, 4, 5), "no live table and no query is staged in it")
    if not rows:
        return shown
    return Compared(shown.notes, shown.columns, shown.rows, shown.numeric, differing=differing)


PLANS: Answers = {Staging: stage_definition}
DIRECT: Answers = {
    ShowStaged: show_staged,
    ShowGenerations: show_generations,
    PreviewChange: preview_change,
    Compare: compare,
    Promote: promote_named,
    Rollback: rollback,
    BeginChange: begin_change,
    EndChange: end_change,
    PromoteChange: promote_change,
    RollbackChange: roll_back_change,
    CompareChange: compare_change,
}
