"""ALTER STREAM … ADD COLUMN and REFRESH SCHEMA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from streamsql.errors import Source, Span
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Column, Name, Statement, columns_of


@dataclass(frozen=True, kw_only=True)
class AlterStream(Statement):
    """columns: those to add; none for REFRESH SCHEMA, whose place is clause."""

    topic: ClassVar[str] = "streams"
    not_on_connect: ClassVar[str] = "restarts"
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True
    refers: ClassVar[str] = "stream"

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
