"""CREATE, DROP, SHOW and DESCRIBE FUNCTION, for functions written in Python."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.errors import Source, SyntaxFault
from streamsql.language.grammar import Node
from streamsql.language.statements.base import (
    Column,
    Name,
    Statement,
    check_type,
    columns_of,
    name_of,
    one_line,
)


@dataclass(frozen=True, kw_only=True)
class CreateFunction(Statement):
    """target: 'module.attribute'; returns: the type of a scalar, empty for RETURNS TABLE (columns)."""

    name: Name
    target: Name
    returns: str = ""
    columns: tuple[Column, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class DropFunction(Statement):
    name: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class ShowPythonFunctions(Statement):
    pass


@dataclass(frozen=True, kw_only=True)
class DescribeFunction(Statement):
    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowCreateFunction(Statement):
    name: Name


def _create(node: Node, source: Source) -> CreateFunction:
    unless_there = node.get("IfNotExists")
    if node.has("OrReplace") and unless_there:
        raise SyntaxFault("OR REPLACE and IF NOT EXISTS exclude each other", span=unless_there.span)
    table, kind = node.get("ReturnsTable"), node.get("Type")
    if kind:
        check_type(kind)
    return CreateFunction(
        name=name_of(node.get("NewName")),
        target=name_of(node.get("String")),
        returns=one_line(source, kind) if kind else "",
        columns=columns_of(source, table.get("ColumnDefs")) if table else (),
        or_replace=node.has("OrReplace"),
        if_not_exists=unless_there is not None,
    )


def _drop(node: Node, source: Source) -> DropFunction:
    return DropFunction(name=name_of(node.get("FunctionName")), if_exists=node.has("IfExists"))


BUILDERS = {
    "CreateFunction": _create,
    "DropFunction": _drop,
    "ShowPythonFunctions": lambda node, source: ShowPythonFunctions(),
    "DescribeFunction": lambda node, source: DescribeFunction(name=name_of(node.get("FunctionName"))),
    "ShowCreateFunction": lambda node, source: ShowCreateFunction(name=name_of(node.get("FunctionName"))),
}
