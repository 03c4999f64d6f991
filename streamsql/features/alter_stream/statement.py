"""ALTER STREAM … ADD COLUMN and REFRESH SCHEMA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.errors import Source, Span
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Column, Name, Statement, columns_of


@dataclass(frozen=True, kw_only=True)
class AlterStream(
    Statement,
    topic="streams",
    not_on_connect="restarts",
    needs_spark=True,
    changes_workspace=True,
    refers="stream",
):
    """columns: those to add; none for REFRESH SCHEMA, whose place is clause."""

    name: Name
    columns: tuple[Column, ...] = ()
    if_not_exists: bool = False
    clause: Span = Span(0, 0)

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        clauses = node.all("AddColumns") or node.all("RefreshSchema")
        columns = (columns_of(source, clause.get("ColumnDefs") or clause) for clause in clauses)
        return {
            "columns": tuple(column for added in columns for column in added),
            "if_not_exists": any(clause.has("IfNotExists") for clause in clauses),
            "clause": Span(clauses[0].span.start, clauses[-1].span.end),
        }
