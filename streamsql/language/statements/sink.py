"""CREATE, DROP, SHOW and DESCRIBE SINK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.errors import Source, Span
from streamsql.language.grammar import Node
from streamsql.language.statements.base import (
    Column,
    Name,
    Option,
    Statement,
    clause,
    columns_of,
    count_of,
    name_of,
    new_name_of,
    options_of,
    replacement_of,
)


@dataclass(frozen=True, kw_only=True)
class CreateSink(Statement):
    """retain: the number of rows that a memory sink keeps in append mode; None for the default. retain_span:
    the position of the clause.
    """

    topic: ClassVar[str] = "sinks"
    changes_workspace: ClassVar[bool] = True
    defines: ClassVar[str] = "sink"

    name: Name
    connector: Name
    format: Name | None = None
    columns: tuple[Column, ...] = ()
    key: tuple[Name, ...] = ()
    partitioned_by: tuple[Name, ...] = ()
    options: tuple[Option, ...] = ()
    retain: int | None = None
    retain_span: Span | None = None
    comment: str = ""
    or_replace: bool = False
    if_not_exists: bool = False

    @classmethod
    def read(cls, node: Node, source: Source) -> CreateSink:
        format_node, comment, retain = (clause(node, rule) for rule in ("Format", "Comment", "Retain"))
        return cls(
            name=new_name_of(node.get("NewName")),
            connector=name_of(node.get("Connector")),
            format=name_of(format_node.get("FormatName")) if format_node else None,
            columns=columns_of(source, node.get("ColumnDefs")),
            key=names_of(clause(node, "Key")),
            partitioned_by=names_of(clause(node, "PartitionedBy")),
            options=options_of(clause(node, "Options")),
            retain=retain_of(retain),
            retain_span=retain.span if retain else None,
            comment=comment.text("String") if comment else "",
            **replacement_of(node),
        )


@dataclass(frozen=True, kw_only=True)
class DropSink(Statement):
    topic: ClassVar[str] = "sinks"
    changes_workspace: ClassVar[bool] = True
    refers: ClassVar[str] = "sink"

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class ShowSinks(Statement):
    """pattern: of the names, "" for all."""

    topic: ClassVar[str] = "sinks"

    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class DescribeSink(Statement):
    topic: ClassVar[str] = "sinks"
    refers: ClassVar[str] = "sink"

    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowCreateSink(Statement):
    topic: ClassVar[str] = "sinks"
    refers: ClassVar[str] = "sink"

    name: Name


def names_of(node: Node | None, rule: str = "ColumnName") -> tuple[Name, ...]:
    return tuple(name_of(part) for part in node.all(rule)) if node else ()


def retain_of(node: Node | None) -> int | None:
    """The rows of a RETAIN clause. Raises SyntaxFault if it is not a positive integer."""
    if node is None:
        return None
    number = node.get("Number")
    assert number
    return count_of(number, "RETAIN takes a whole number of rows")
