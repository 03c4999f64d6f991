"""CREATE, DROP, SHOW and DESCRIBE SINK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.errors import Span
from streamsql.language.statements.base import (
    Column,
    Name,
    Option,
    Statement,
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
