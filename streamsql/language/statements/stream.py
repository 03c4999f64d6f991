"""CREATE, DROP, ADVANCE, SHOW and DESCRIBE STREAM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import (
    Column,
    Fragment,
    Name,
    Option,
    Statement,
    Watermark,
    clause,
    columns_of,
    fragment_of,
    name_of,
    new_name_of,
    options_of,
    replacement_of,
    watermark_of,
)
from streamsql.language.statements.sink import names_of


@dataclass(frozen=True, kw_only=True)
class CreateStream(Statement):
    """A stream USING a connector, or AS a query (then connector is None).

    key: the columns that identify a row, for a format of changes. malformed: the action of ON MALFORMED:
    fail, skip, into (malformed_sink), or "" without the clause.
    """

    topic: ClassVar[str] = "streams"
    changes_workspace: ClassVar[bool] = True
    defines: ClassVar[str] = "stream"

    name: Name
    connector: Name | None = None
    format: Name | None = None
    columns: tuple[Column, ...] = ()
    key: tuple[Name, ...] = ()
    options: tuple[Option, ...] = ()
    watermark: Watermark | None = None
    comment: str = ""
    malformed: str = ""
    malformed_sink: Name | None = None
    query: Fragment | None = None
    or_replace: bool = False
    if_not_exists: bool = False

    @classmethod
    def read(cls, node: Node, source: Source) -> CreateStream:
        return create_stream(node, source)


@dataclass(frozen=True, kw_only=True)
class DropStream(Statement):
    topic: ClassVar[str] = "streams"
    changes_workspace: ClassVar[bool] = True
    refers: ClassVar[str] = "stream"

    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, kw_only=True)
class AdvanceStream(Statement):
    """to: a timestamp as text, with its span."""

    topic: ClassVar[str] = "watermarks"
    not_on_connect: ClassVar[str] = "event time"
    of_pipeline: ClassVar[bool] = False
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True
    refers: ClassVar[str] = "stream"

    name: Name
    to: Name

    @classmethod
    def read(cls, node: Node, source: Source) -> AdvanceStream:
        return cls(name=name_of(node.get("StreamName")), to=name_of(node.get("String")))


@dataclass(frozen=True, kw_only=True)
class ShowStreams(Statement):
    """pattern: of the names, "" for all."""

    topic: ClassVar[str] = "streams"

    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class DescribeStream(Statement):
    topic: ClassVar[str] = "streams"
    refers: ClassVar[str] = "stream"

    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowCreateStream(Statement):
    topic: ClassVar[str] = "streams"
    refers: ClassVar[str] = "stream"

    name: Name


def create_stream(node: Node, source: Source) -> CreateStream:
    head = CreateStream(
        name=new_name_of(node.get("NewName")),
        **replacement_of(node),
    )
    query = node.get("StreamQuery")
    if query:
        body = query.get("Query")
        assert body
        return replace(
            head,
            query=fragment_of(source, body),
            watermark=watermark_of(source, query.get("Watermark")),
        )
    part = node.get("StreamSource")
    assert part
    format_node, comment = clause(part, "Format"), clause(part, "Comment")
    malformed = clause(part, "OnMalformed")
    into = malformed.get("IntoSink") if malformed else None
    word = malformed.parts[-1].name.lower() if malformed and not into else ""
    return replace(
        head,
        connector=name_of(part.get("Connector")),
        format=name_of(format_node.get("FormatName")) if format_node else None,
        columns=columns_of(source, part.get("ColumnDefs")),
        key=names_of(clause(part, "Key")),
        options=options_of(clause(part, "Options")),
        watermark=watermark_of(source, clause(part, "Watermark")),
        comment=comment.text("String") if comment else "",
        malformed="into" if into else word,
        malformed_sink=name_of(into.get("SinkName")) if into else None,
    )
