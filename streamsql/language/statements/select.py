"""A query by itself: SELECT, WITH, FROM, VALUES, TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Fragment, Statement, fragment_of


@dataclass(frozen=True, kw_only=True)
class Select(Statement):
    topic: ClassVar[str] = "queries"
    needs_spark: ClassVar[bool] = True

    query: Fragment

    @classmethod
    def read(cls, node: Node, source: Source) -> Select:
        query = node.get("Query")
        assert query
        return cls(query=fragment_of(source, query))
