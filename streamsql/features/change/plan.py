"""DROP STAGED, to its plan; the other statements are about entries that exist."""

from __future__ import annotations

from streamsql.definitions import Query
from streamsql.errors import NameFault
from streamsql.features.change.statement import Compare, DropStaged, Promote
from streamsql.language.statements.base import Name, Statement
from streamsql.language.tokens import quote_name
from streamsql.plan.basic_plans import Plan
from streamsql.plan.context import Context
from streamsql.plan.plans import Direct, Drop
from streamsql.plan.statements.existing import entries_of
from streamsql.plan.statements.refreshes import check_unread


def staged_change(name: Name, context: Context) -> Query:
    """The query of the staged change of a live table. Raises NameFault without one."""
    table = context.catalog.live_table(name)
    query = context.catalog.staged(table.name)
    if query is None:
        raise NameFault(
            f"nothing is staged for {table.name}",
            hint=f"CREATE OR REPLACE LIVE TABLE {quote_name(table.name)} STAGED AS SELECT …",
            span=name.span,
            code="NOT_STAGED",
        )
    return query


def _of_staged(statement: Compare | Promote, context: Context) -> Plan:
    staged_change(statement.name, context)
    return Direct(statement)


def _promote(statement: Promote, context: Context) -> Plan:
    query = staged_change(statement.name, context)
    check_unread(statement.name, query.name, context.catalog)  # its name goes
    return Direct(statement)


def _drop(statement: DropStaged, context: Context) -> Plan:
    query = staged_change(statement.name, context)
    check_unread(statement.name, query.name, context.catalog)
    table = context.catalog.live_table(statement.name)
    return Drop("staged change of", table.name, tuple(entries_of(query, context.catalog)))


PLANNERS: dict[type[Statement], object] = {Compare: _of_staged, Promote: _promote, DropStaged: _drop}
