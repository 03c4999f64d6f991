"""DROP STAGED, to its plan; the other statements are about entries that exist."""

from __future__ import annotations

from streamsql.catalog import Catalog
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
    """The query of the staged change of a live table, or of a query into a sink. Raises NameFault without
    one.
    """
    changed = changed_entry(name, context.catalog)
    query = context.catalog.staged(changed)
    if query is None:
        of = context.catalog.queries.get(changed.casefold())
        hint = f"CREATE OR REPLACE LIVE TABLE {quote_name(changed)} STAGED AS SELECT …"
        if of is not None and not of.live_table:
            into = ", ".join(map(quote_name, of.sinks))
            hint = f"INSERT INTO {into} STAGED AS QUERY {quote_name(changed)} SELECT …"
        raise NameFault(f"nothing is staged for {changed}", hint=hint, span=name.span, code="NOT_STAGED")
    return query


def changed_entry(name: Name, catalog: Catalog) -> str:
    """The name of the live table, or of the query into a sink, that a statement means. Raises NameFault."""
    query = catalog.queries.get(name.value.casefold())
    return query.name if query and not query.live_table else catalog.live_table(name).name


def _compare(statement: Compare, context: Context) -> Plan:
    query = staged_change(statement.name, context)
    if statement.query != bool(query.into):
        name = quote_name(promoted_name(query.name))
        raise NameFault(
            f"{name} is a {'query into a sink' if query.into else 'live table'}",
            hint=f"COMPARE {'QUERY' if query.into else 'LIVE TABLE'} {name};",
            span=statement.name.span,
            code="WRONG_KIND",
        )
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
        changed_entry(name, context.catalog)
    return Direct(statement)


def _drop(statement: DropStaged, context: Context) -> Plan:
    query, catalog = staged_change(statement.name, context), context.catalog
    check_unread(statement.name, query.name, catalog)
    name = changed_entry(statement.name, catalog)
    entries = (entry for change in catalog.changes_of(name) for entry in entries_of(change, catalog))
    return Drop("staged change of", name, tuple(entries))


PLANNERS: dict[type[Statement], object] = {
    Compare: _compare,
    Promote: _promote,
    Rollback: _rollback,
    DropStaged: _drop,
}
