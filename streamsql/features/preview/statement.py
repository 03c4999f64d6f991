"""PREVIEW, DESCRIBE CONNECTOR and SHOW TOPICS: inspecting sources before streams are created."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Option, Statement, clause, count_of, name_of

FIRST = 10
"""The number of records that PREVIEW shows by default."""


@dataclass(frozen=True, kw_only=True)
class Preview(Statement, topic="streams", not_on_connect="preview", needs_spark=True):
    """PREVIEW of an existing stream (name), of files (path), or of a connector with options."""

    name: Name | None = None
    path: Name | None = None
    connector: Name | None = None
    format: Name | None = None
    options: tuple[Option, ...] = ()
    limit: int = FIRST

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        written = clause(node, "PreviewLimit")
        number = written.get("Number") if written else None
        if number is None:
            return {}
        return {"limit": count_of(number, "LIMIT takes a number of records", "LIMIT 10", least=0)}


@dataclass(frozen=True, kw_only=True)
class ShowTopics(Statement, topic="kafka", not_on_connect="preview"):
    """servers: host:port, …; else entry: a stream or sink with the servers. like: a pattern with `*` and `|`,
    as in Spark's SHOW TABLES.
    """

    servers: Name | None = None
    entry: Name | None = None
    like: str = ""
    options: tuple[Option, ...] = ()

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        servers, target, like = node.get("Servers"), node.get("Target"), clause(node, "TopicsLike")
        return {
            "servers": name_of(servers.get("String")) if servers else None,
            "entry": name_of(target) if target else None,
            "like": like.text("String") if like else "",
        }
