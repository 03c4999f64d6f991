"""CREATE, DROP, SHOW and DESCRIBE FUNCTION, for functions written in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.language.statements.base import (
    Column,
    Name,
    Statement,
)


@dataclass(frozen=True, kw_only=True)
class CreateFunction(Statement):
    """target: 'module.attribute'; returns: the type of a scalar, empty for RETURNS TABLE (columns); staged:
    with STAGED.
    """

    topic: ClassVar[str] = "python"
    not_on_connect: ClassVar[str] = "functions"
    changes_workspace: ClassVar[bool] = True
    defines: ClassVar[str] = "function"

    name: Name
    target: Name
    returns: str = ""
    columns: tuple[Column, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    staged: bool = False


@dataclass(frozen=True, kw_only=True)
class DropFunction(Statement):
    topic: ClassVar[str] = "python"
    changes_workspace: ClassVar[bool] = True

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class ShowPythonFunctions(Statement):
    """pattern: of the names, "" for all."""

    topic: ClassVar[str] = "python"

    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class DescribeFunction(Statement):
    topic: ClassVar[str] = "python"

    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowCreateFunction(Statement):
    topic: ClassVar[str] = "python"
    refers: ClassVar[str] = "function"

    name: Name
