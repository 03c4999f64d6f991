"""Temporary views over live tables: they have the rows of their creation, and are no input of a refresh."""

from __future__ import annotations

from collections.abc import Iterable

from streamsql.catalog import Catalog
from streamsql.definitions import OfSpark, Sink, SqlFunction, Table
from streamsql.errors import RuleFault
from streamsql.language.query import read_query
from streamsql.language.statements.base import Fragment, Statement
from streamsql.language.tokens import quote_name
from streamsql.plan.plans import Collect


def entry_of(statement: Statement, plan: Collect, catalog: Catalog, streaming: bool) -> OfSpark:
    """The table, view or function that a statement of Spark creates."""
    if plan.defines.kind == "function":
        return SqlFunction(plan.defines.creates, plan.defines.text)
    if not plan.defines.temporary:
        return Table(plan.defines.creates, streaming, text=plan.defines.text)
    own = plan.defines.creates.casefold()
    names = (r.name for r in read_query(statement.text).relations if r.name.casefold() != own)
    live = _live(names, catalog)
    return Table(plan.defines.creates, streaming, tuple(dict.fromkeys(live)), plan.defines.text)


def stale_view(body: Fragment, catalog: Catalog) -> RuleFault | None:
    """The refusal of a query that is to follow live tables, and reads one through a view."""
    for relation in read_query(body.text).relations:
        view = catalog.tables.get(relation.name.casefold())
        if view and view.live:
            return RuleFault(
                f"{view.name} is a view over the live table {', '.join(view.live)}, "
                "with the rows of its creation",
                hint=f"CREATE LIVE TABLE {quote_name(view.name + '_now')} AS …;  with the query of the view, "
                "and read that",
                span=body.origin.span(relation.span),
                code="WRONG_KIND",
            )
    return None


def _live(names: Iterable[str], catalog: Catalog) -> Iterable[str]:
    for name in names:
        view = catalog.tables.get(name.casefold())
        if view is not None:
            yield from view.live
        elif isinstance(catalog.relation(name), Sink):
            yield name
