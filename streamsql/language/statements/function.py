"""CREATE, DROP, SHOW and DESCRIBE FUNCTION, for functions written in Python."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.language.statements.base import (
    Column,
    Name,
    Statement,
)


@dataclass(frozen=True, kw_only=True)
class CreateFunction(
    Statement, topic="python", not_on_connect="functions", changes_workspace=True, defines="function"
):
    """target: 'module.attribute'; returns: the type of a scalar, empty for RETURNS TABLE (columns); staged:
    with STAGED.
    """

    name: Name
    target: Name
    returns: str = ""
    columns: tuple[Column, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    staged: bool = False


@dataclass(frozen=True, kw_only=True)
class DropFunction(Statement, topic="python", changes_workspace=True):
    name: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class ShowPythonFunctions(Statement, topic="python"):
    """pattern: of the names, "" for all."""

    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class DescribeFunction(Statement, topic="python"):
    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowCreateFunction(Statement, topic="python", refers="function"):
    name: Name
