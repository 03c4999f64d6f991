"""SHOW GRAPH."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement

FORMS = ("MERMAID", "JSON")


@dataclass(frozen=True, kw_only=True)
class ShowGraph(Statement, topic="graph"):
    """name: the relation that the graph is about, None for all; form: MERMAID or JSON, "" for a text."""

    name: Name | None = None
    form: str = ""

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        return {"form": next((form for form in FORMS if node.has(form)), "")}
