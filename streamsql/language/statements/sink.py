"""CREATE, DROP, SHOW and DESCRIBE SINK."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.errors import Source, SyntaxFault
from streamsql.language.grammar import Node
from streamsql.language.statements.base import (
    Column,
    Name,
    Option,
    Statement,
    clause,
    columns_of,
    name_of,
    options_of,
)


@dataclass(frozen=True, kw_only=True)
class CreateSink(Statement):
    """retain: rows that a memory sink keeps in append mode; None means the default."""

    name: Name
    connector: Name
    format: Name | None = None
    columns: tuple[Column, ...] = ()
    key: tuple[Name, ...] = ()
    partitioned_by: tuple[Name, ...] = ()
    options: tuple[Option, ...] = ()
    retain: int | None = None
    comment: str = ""
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class DropSink(Statement):
    name: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class ShowSinks(Statement):
    pass


@dataclass(frozen=True, kw_only=True)
class DescribeSink(Statement):
    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowCreateSink(Statement):
    name: Name


def names_of(node: Node | None, rule: str = "ColumnName") -> tuple[Name, ...]:
    return tuple(name_of(part) for part in node.all(rule)) if node else ()


def retain_of(node: Node | None) -> int | None:
    """Rows of a RETAIN clause. Raises SyntaxFault when it is not a positive whole number."""
    if node is None:
        return None
    number = node.text("Number")
    if not number.isdigit() or int(number) < 1:
        raise SyntaxFault(f"RETAIN takes a whole number of rows, not {number}", span=node.span)
    return int(number)


def _create(node: Node, source: Source) -> CreateSink:
    format_node, comment = clause(node, "Format"), clause(node, "Comment")
    return CreateSink(
        name=name_of(node.get("NewName")),
        connector=name_of(node.get("Connector")),
        format=name_of(format_node.get("FormatName")) if format_node else None,
        columns=columns_of(source, node.get("ColumnDefs")),
        key=names_of(clause(node, "Key")),
        partitioned_by=names_of(clause(node, "PartitionedBy")),
        options=options_of(clause(node, "Options")),
        retain=retain_of(clause(node, "Retain")),
        comment=comment.text("String") if comment else "",
        or_replace=node.has("OrReplace"),
        if_not_exists=node.has("IfNotExists"),
    )


def _drop(node: Node, source: Source) -> DropSink:
    return DropSink(name=name_of(node.get("SinkName")), if_exists=node.has("IfExists"))


BUILDERS = {
    "CreateSink": _create,
    "DropSink": _drop,
    "ShowSinks": lambda node, source: ShowSinks(),
    "DescribeSink": lambda node, source: DescribeSink(name=name_of(node.get("SinkName"))),
    "ShowCreateSink": lambda node, source: ShowCreateSink(name=name_of(node.get("SinkName"))),
}
