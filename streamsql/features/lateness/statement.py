"""SHOW LATENESS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement, name_of


@dataclass(frozen=True, kw_only=True)
class ShowLateness(Statement):
    topic: ClassVar[str] = "watermarks"
    not_on_connect: ClassVar[str] = "event time"
    needs_spark: ClassVar[bool] = True
    refers: ClassVar[str] = "stream"

    name: Name
    chart: bool = False

    @classmethod
    def read(cls, node: Node, source: Source) -> ShowLateness:
        return cls(name=name_of(node.get("StreamName")), chart=node.has("AsChart"))
