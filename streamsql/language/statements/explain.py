"""EXPLAIN [PYSPARK | LOGICAL | EXTENDED | FORMATTED | COST | CODEGEN] statement | QUERY name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, StatementWithBody, name_of


@dataclass(frozen=True, kw_only=True)
class Explain(StatementWithBody, topic="queries"):
    """mode: pyspark, logical, extended, formatted, cost, codegen or "". Either body or query_name is set."""

    mode: str = ""
    query_name: Name | None = None

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        named = node.get("QueryName")
        return {
            "mode": next((mode.lower() for mode in _MODES if node.has(mode)), ""),
            "query_name": name_of(named) if named else None,
        }


_MODES = ("PYSPARK", "LOGICAL", "EXTENDED", "FORMATTED", "COST", "CODEGEN")
