"""The statements about sets of staged changes, to their plans; and the statements between BEGIN and END."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeGuard

from streamsql.catalog import Catalog
from streamsql.definitions import Change, Member, Query, kind_of, promoted_name
from streamsql.errors import NameFault, RuleFault, Span
from streamsql.features.change import plan
from streamsql.features.change.affected import affected_tables, in_spark_over, inserts_over_tables
from streamsql.features.change.plan import (
    entries_to_drop,
    not_staged,
    promote,
)
from streamsql.features.change.stage_plan import (
    planned_staging,
    written_definition,
)
from streamsql.features.change.statement import (
    BeginChange,
    CreateChange,
    DropChange,
    EndChange,
    Promote,
    PromoteChange,
)
from streamsql.language.spark_definitions import definition_of
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.function import CreateFunction
from streamsql.language.statements.insert import Insert
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.spark import Spark
from streamsql.language.statements.stream import CreateStream
from streamsql.language.tokens import quote_name
from streamsql.plan.basic_plans import OpenChange, Plan
from streamsql.plan.context import Context
from streamsql.plan.plans import DefineChange, Direct, Drop
from streamsql.plan.statements.existing import entries_of


def within(statement: Statement, context: Context) -> tuple[Statement, tuple[Change, ...]]:
    """(a statement as it is executed while a set is open, the set with what it adds): a changed definition
    is staged, and belongs to the set. Raises RuleFault for one that cannot be staged.
    """
    catalog = context.catalog
    if isinstance(statement, CreateLiveTable):
        name = statement.name
        if name.value.casefold() not in catalog.sinks:
            change = catalog.staged(name.value)
            member = Member("live_table", promoted_name(change.name) if change else name.value, new=True)
            return replace(statement, staged=True), _added(context, member, name)
        if statement.or_replace:
            member = Member("live_table", catalog.live_table(name).name)
            return replace(statement, staged=True), _added(context, member, name)
    elif isinstance(statement, (CreateStream, CreateFunction)) or _is_in_spark(statement):
        written = written_definition(statement)
        old = catalog.definition_in_use(written.kind, written.name.value)
        if written.or_replace or old is None:
            member = Member(written.kind, old.name if old else written.name.value)
            return replace(statement, staged=True), _added(context, member, written.name)
    elif isinstance(statement, Insert) and statement.query_name:
        query = catalog.queries.get(statement.query_name.value.casefold())
        if query is None:
            raise RuleFault(
                f"{statement.query_name} is a new query: its sink would have its rows before PROMOTE CHANGE",
                detail="an INSERT in a set of changes is that of a query that exists",
                hint="INSERT before BEGIN CHANGE, or after PROMOTE CHANGE",
                span=statement.query_name.span,
                code="NOT_STAGEABLE",
            )
        if not query.live_table:
            member = Member("query", query.name)
            return replace(statement, staged=True), _added(context, member, statement.query_name)
    return statement, ()


def _is_in_spark(statement: Statement) -> TypeGuard[Spark]:
    """Whether a statement creates a view or function that may be staged, or takes the place of one that is
    not.
    """
    new = definition_of(statement.text) if isinstance(statement, Spark) else None
    if new is None or new.kind not in ("view", "function") or not new.creates:
        return False
    return new.replaces or new.written == quote_name(new.creates)


def _added(context: Context, member: Member, name: Name) -> tuple[Change]:
    """The open set with a member. Raises NameFault for one that is staged in another set."""
    catalog, opened = context.catalog, context.open_change
    for change in catalog.changes.values():
        staged = [m.value.casefold() for m in members_staged(change, catalog)]
        if change.name != opened and member.name.casefold() in staged:
            raise NameFault(
                f"{name} is staged in the change {change.name}",
                hint=f"PROMOTE CHANGE {quote_name(change.name)}; or DROP CHANGE {quote_name(change.name)};",
                span=name.span,
                code="IN_USE",
            )
    change = catalog.changes.get(opened.casefold()) or Change(opened)
    return (change.with_member(member),)


def begin(statement: BeginChange, context: Context) -> OpenChange:
    """The set of that name, if something is staged in it, else an empty one. Raises RuleFault where a set is
    open.
    """
    if context.open_change:
        raise RuleFault(
            f"the change {context.open_change} is open",
            hint="END CHANGE;",
            span=statement.name.span,
            code="CHANGE_OPEN",
        )
    change = context.catalog.changes.get(statement.name.value.casefold())
    if change is None or not members_staged(change, context.catalog):
        change = Change(statement.name.value)
    return OpenChange(statement, change.name, context.catalog.having(change))


def _end_change(statement: EndChange, context: Context) -> Plan:
    """The set with the live tables that read what it changes. Raises RuleFault where none is open."""
    if not context.open_change:
        raise RuleFault(
            "no change is open", hint="BEGIN CHANGE name;", span=statement.span, code="NO_CHANGE_OPEN"
        )
    catalog = context.catalog
    closed = closing(context, statement.span, lambda table: catalog.staged(table) is None)
    staged = closed.catalog
    for query in (c for insert in closed.inserts for c in catalog.changes_of(promoted_name(insert.name))):
        staged = staged.having(*(getattr(catalog, k)[e.casefold()] for k, e in entries_of(query, catalog)))
    whole = with_affected(closed.change, catalog)
    after = staged.having(whole) if whole.members else staged.without("changes", whole.name)
    return OpenChange(statement, "", after)


@dataclass(frozen=True)
class Closing:
    """What END CHANGE does. statements: those that stage the live tables; inserts: the staged changes of
    queries into sinks that read these, and are staged again behind them; catalog: with the live tables, and
    without the inserts.
    """

    change: Change
    statements: tuple[CreateLiveTable, ...]
    inserts: list[Query]
    catalog: Catalog


def closing(context: Context, span: Span, is_to_be_staged: Callable[[str], bool]) -> Closing:
    """The end of the open set. is_to_be_staged: of a live table that reads what the set changes. Raises
    RuleFault for one that cannot be computed from that.
    """
    catalog, name = context.catalog, context.open_change
    change = catalog.changes.get(name.casefold()) or Change(name)
    names = [member.value for member in members_staged(change, catalog)]
    to_stage = [query for query in affected_tables(names, catalog) if is_to_be_staged(query.name)]
    inserts, without = inserts_over_tables(to_stage, catalog)
    statements, staged = planned_staging(to_stage, replace(context, catalog=without), span)
    return Closing(change, statements, inserts, staged)


def with_affected(change: Change, catalog: Catalog) -> Change:
    """A set of what is staged in it, with the views and live tables that read that."""
    names = [member.value for member in members_staged(change, catalog)]
    members = {m.name: m for m in change.members if m.name in names}
    in_spark = [e for e in in_spark_over(names, catalog.with_changes()) if catalog.staged_definition(e.name)]
    members |= {entry.name: Member(kind_of(entry), entry.name) for entry in in_spark}
    for query in affected_tables(names, catalog):
        members.setdefault(query.name, Member("live_table", query.name, new=catalog.is_new(query.name)))
    return replace(change, members=tuple(members.values()))


def _create_change(statement: CreateChange, context: Context) -> Plan:
    return DefineChange(Change(statement.name.value, statement.members))


def members_staged(change: Change, catalog: Catalog) -> list[Name]:
    """The members of a set that are staged now."""

    def is_staged(member: Member) -> bool:
        if member.is_definition:
            return catalog.staged_definition(member.name) is not None
        return catalog.staged(member.name) is not None

    return [Name(m.name) for m in change.members if not m.generation and is_staged(m)]


def _promote_change(statement: PromoteChange, context: Context) -> Plan:
    """Raises NameFault for a set of which nothing is staged, and as PROMOTE."""
    change, place = context.catalog.change(statement.name), statement.name.span
    names = tuple(Name(name.value, place) for name in members_staged(change, context.catalog))
    if not names:
        hint = f"BEGIN CHANGE {quote_name(change.name)}; CREATE OR REPLACE …; END CHANGE;"
        raise not_staged(statement.name, hint)
    promote(Promote(names=names), context)
    return Direct(statement)


def _drop_change(statement: DropChange, context: Context) -> Plan:
    change = context.catalog.change(statement.name)
    names = [Name(n.value, statement.name.span) for n in members_staged(change, context.catalog)]
    return Drop("change", change.name, (*entries_to_drop(names, context), ("changes", change.name)))


PLANNERS: dict[type[Statement], object] = {
    **plan.PLANNERS,
    BeginChange: begin,
    EndChange: _end_change,
    CreateChange: _create_change,
    PromoteChange: _promote_change,
    DropChange: _drop_change,
}
