"""PREVIEW, DESCRIBE CONNECTOR and SHOW TOPICS: inspecting sources before streams are created."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Option, Statement, clause, count_of, name_of, options_of

FIRST = 10
"""The number of records that PREVIEW shows by default."""


@dataclass(frozen=True, kw_only=True)
class Preview(Statement):
    """PREVIEW of an existing stream (name), of files (path), or of a connector with options."""

    topic: ClassVar[str] = "streams"
    not_on_connect: ClassVar[str] = "preview"
    needs_spark: ClassVar[bool] = True

    name: Name | None = None
    path: Name | None = None
    connector: Name | None = None
    format: Name | None = None
    options: tuple[Option, ...] = ()
    limit: int = FIRST

    @classmethod
    def read(cls, node: Node, source: Source) -> Preview:
        there = node.get("PreviewStream")
        if there:
            return cls(name=name_of(there.get("StreamName")), limit=_limit(there))
        files = node.get("PreviewFiles")
        if files:
            path = files.get("Path")
            assert path
            return cls(path=name_of(path), limit=_limit(files))
        part = node.get("PreviewSource")
        assert part
        format_node = clause(part, "Format")
        return cls(
            connector=name_of(part.get("Connector")),
            format=name_of(format_node.get("FormatName")) if format_node else None,
            options=options_of(clause(part, "Options")),
            limit=_limit(part),
        )


@dataclass(frozen=True, kw_only=True)
class ShowTopics(Statement):
    """servers: host:port, …; else entry: a stream or sink with the servers. like: a pattern with `*` and `|`,
    as in Spark's SHOW TABLES.
    """

    topic: ClassVar[str] = "kafka"
    not_on_connect: ClassVar[str] = "preview"

    servers: Name | None = None
    entry: Name | None = None
    like: str = ""
    options: tuple[Option, ...] = ()

    @classmethod
    def read(cls, node: Node, source: Source) -> ShowTopics:
        servers, target, like = node.get("Servers"), node.get("Target"), clause(node, "TopicsLike")
        written = servers.get("String") if servers else None
        return cls(
            servers=name_of(written) if written else None,
            entry=name_of(target) if target else None,
            like=like.text("String") if like else "",
            options=options_of(clause(node, "Options")),
        )


def _limit(node: Node) -> int:
    """The number of a LIMIT. Raises SyntaxFault if it is not a number of rows."""
    written = clause(node, "PreviewLimit")
    number = written.get("Number") if written else None
    if number is None:
        return FIRST
    return count_of(number, "LIMIT takes a number of records", "LIMIT 10", least=0)
