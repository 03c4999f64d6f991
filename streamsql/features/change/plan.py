"""DROP STAGED, to its plan; the other statements are about entries that exist."""

from __future__ import annotations

from streamsql.definitions import Query, is_staged, promoted_name
from streamsql.errors import NameFault
from streamsql.features.change.statement import Compare, DropStaged, Promote, Rollback
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


def _compare(statement: Compare, context: Context) -> Plan:
    staged_change(statement.name, context)
    return Direct(statement)


def _promote(statement: Promote, context: Context) -> Plan:
    """Raises NameFault for a change that others read, which are not promoted with it: its name goes."""
    changes = {staged_change(name, context).name: name for name in statement.names}
    for query, name in changes.items():
        others = [q.name for q in context.catalog.readers_of(query) if q.name not in changes]
        staged = [promoted_name(other) for other in others if is_staged(other)]
        if staged and len(staged) == len(others):
            together = ", ".join(map(quote_name, dict.fromkeys((*map(promoted_name, changes), *staged))))
            raise NameFault(
                f"the staged change of {name} is read by that of {', '.join(staged)}",
                hint=f"PROMOTE {together}; puts them in use together",
                span=name.span,
                code="IN_USE",
            )
        if others:
            check_unread(name, query, context.catalog)
    return Direct(statement)


def _rollback(statement: Rollback, context: Context) -> Plan:
    for name in statement.names:
        context.catalog.live_table(name)
    return Direct(statement)


def _drop(statement: DropStaged, context: Context) -> Plan:
    query = staged_change(statement.name, context)
    check_unread(statement.name, query.name, context.catalog)
    table = context.catalog.live_table(statement.name)
    return Drop("staged change of", table.name, tuple(entries_of(query, context.catalog)))


PLANNERS: dict[type[Statement], object] = {
    Compare: _compare,
    Promote: _promote,
    Rollback: _rollback,
    DropStaged: _drop,
}
