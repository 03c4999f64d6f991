"""WHY: why a query, a live table or a stream gives no rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement

_KINDS = {"QueryName": "query", "LiveTableName": "live_table", "StreamName": "stream"}


@dataclass(frozen=True, kw_only=True)
class Why(Statement, topic="why", not_on_connect="event time", needs_spark=True):
    """kind: query, live_table or stream; "" for a name of any of them, and without a name for the query that
    the bar of the prompt names, or else that was started last.
    """

    kind: str = ""
    name: Name | None = None

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        return {"kind": next((kind for rule, kind in _KINDS.items() if node.has(rule)), "")}
