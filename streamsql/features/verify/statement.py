"""VERIFY: the rows of a query against the same SELECT as a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement


@dataclass(frozen=True, kw_only=True)
class Verify(Statement, topic="delivery", not_on_connect="event time", needs_spark=True):
    """live_table: whether the name is that of a live table instead of a query."""

    name: Name
    live_table: bool = False

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        return {"live_table": node.has("LiveTableName")}
