"""EXPORT QUERY, to its plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.connectors.registry import connector
from streamsql.errors import NameFault, RuleFault
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
    plans = tuple(start_plan(query, context) for query in queries)
    for plan in plans:
        for stream in plan.reads.streams:
            if stream.connector and connector(Name(stream.connector)).received:
                raise RuleFault(
                    f"{plan.query.name} cannot be exported: the console receives what {stream.name} reads",
                    detail=f"a program of its own does not receive what {stream.connector} brings",
                    hint="DETACH; or streamsql serve lets it run without a terminal",
                    span=(statement.name or statement.path).span,
                    code="CONNECTOR_NOT_SUPPORTED",
                )
    return Export(plans, statement.path)


PLANNERS = {ExportQuery: export_query}
