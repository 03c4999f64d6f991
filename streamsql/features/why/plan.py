"""WHY, to its plan."""

from __future__ import annotations

from dataclasses import replace

from streamsql.features.why.statement import Why
from streamsql.language.statements.base import Name
from streamsql.plan.basic_plans import Direct, Plan
from streamsql.plan.context import Context


def why(statement: Why, context: Context) -> Plan:
    """WHY: the entry that it names must be there; a name alone is that of a query, a live table, or else a
    stream. Raises NameFault.
    """
    if statement.name:
        kind = statement.kind or _kind_of(statement.name, context)
        getattr(context.catalog, kind)(statement.name)
        statement = replace(statement, kind=kind)
    return Direct(statement)


def _kind_of(name: Name, context: Context) -> str:
    key, catalog = name.value.casefold(), context.catalog
    sink = catalog.sinks.get(key)
    if key in catalog.queries:
        return "query"
    return "live_table" if sink is not None and sink.is_live else "stream"


PLANNERS = {Why: why}
