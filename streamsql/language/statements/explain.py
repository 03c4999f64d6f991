"""EXPLAIN [PYSPARK | LOGICAL | EXTENDED | FORMATTED | COST | CODEGEN] statement | QUERY name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, StatementWithBody, name_of


@dataclass(frozen=True, kw_only=True)
class Explain(StatementWithBody):
    """mode: pyspark, logical, extended, formatted, cost, codegen or "". Either body or query_name is set."""

    topic: ClassVar[str] = "queries"

    mode: str = ""
    query_name: Name | None = None

    @classmethod
    def read(cls, node: Node, source: Source) -> Explain:
        mode = node.parts[0 if len(node.parts) < 3 else 1].name.lower() if len(node.parts) > 2 else ""
        query = node.get("ExplainQuery")
        return cls(mode=mode, query_name=name_of(query.get("QueryName")) if query else None)
