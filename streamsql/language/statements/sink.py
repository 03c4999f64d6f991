"""CREATE, DROP, SHOW and DESCRIBE SINK."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.errors import Span
from streamsql.language.statements.base import (
    Column,
    Name,
    Option,
    Statement,
)


@dataclass(frozen=True, kw_only=True)
class CreateSink(Statement, topic="sinks", changes_workspace=True, defines="sink"):
    """retain: the number of rows that a memory sink keeps in append mode; None for the default. retain_span:
    the position of the clause.
    """

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
class DropSink(Statement, topic="sinks", changes_workspace=True, refers="sink"):
    name: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class ShowSinks(Statement, topic="sinks"):
    """pattern: of the names, "" for all."""

    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class DescribeSink(Statement, topic="sinks", refers="sink"):
    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowCreateSink(Statement, topic="sinks", refers="sink"):
    name: Name
