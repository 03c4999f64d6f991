"""EXPORT QUERY, to its plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.errors import NameFault
from streamsql.features.export.statement import ExportQuery
from streamsql.language.statements.base import Name
from streamsql.plan.context import Context
from streamsql.plan.plans import Plan, Run
from streamsql.plan.statements.existing import start_plan


@dataclass(frozen=True)
class Export(Plan):
    """EXPORT QUERY. folder: that is written."""

    queries: tuple[Run, ...]
    folder: Name


def export_query(statement: ExportQuery, context: Context) -> Export:
    """EXPORT QUERY name or ALL. Raises the fault of a query that cannot be planned."""
    queries = [q for q in context.catalog.named(statement.name) if statement.name or not q.owner]
    if not queries:
        raise NameFault(
            "there is no query to export",
            hint="INSERT INTO sink SELECT … starts one; HELP export;",
            span=statement.span,
            code="UNKNOWN_QUERY",
        )
    # Without the console's classes, event times would cost a fifth of the throughput.
    context = replace(context, times=False)
    return Export(tuple(start_plan(query, context) for query in queries), statement.path)


PLANNERS = {ExportQuery: export_query}
