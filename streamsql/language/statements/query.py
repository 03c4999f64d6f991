"""SHOW, DESCRIBE, STOP, START, DROP, FLUSH and AWAIT QUERY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.language.statements.base import Name, Statement


@dataclass(frozen=True, kw_only=True)
class ShowQueries(Statement):
    """pattern: of the names, "" for all."""

    topic: ClassVar[str] = "queries"

    extended: bool = False
    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class DescribeQuery(Statement):
    topic: ClassVar[str] = "queries"
    refers: ClassVar[str] = "query"

    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowProgress(Statement):
    topic: ClassVar[str] = "queries"
    refers: ClassVar[str] = "query"

    name: Name
    last: int = 10


@dataclass(frozen=True, kw_only=True)
class StopQuery(Statement):
    """name None means ALL; timeout in seconds, None for the default, or no limit WITH DRAIN."""

    topic: ClassVar[str] = "queries"
    of_pipeline: ClassVar[bool] = False
    changes_workspace: ClassVar[bool] = True
    refers: ClassVar[str] = "query"

    name: Name | None
    drain: bool = False
    timeout: float | None = None


@dataclass(frozen=True, kw_only=True)
class StartQuery(Statement):
    """name None means ALL. begins: see QueryClauses; retain: the new limit of the rows that it keeps."""

    topic: ClassVar[str] = "queries"
    of_pipeline: ClassVar[bool] = False
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True
    refers: ClassVar[str] = "query"

    name: Name | None
    begins: str = ""
    retain: int | None = None


@dataclass(frozen=True, kw_only=True)
class DropQuery(Statement):
    """name None means ALL."""

    topic: ClassVar[str] = "queries"
    changes_workspace: ClassVar[bool] = True
    refers: ClassVar[str] = "query"

    name: Name | None
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class FlushQuery(Statement):
    topic: ClassVar[str] = "watermarks"
    not_on_connect: ClassVar[str] = "event time"
    of_pipeline: ClassVar[bool] = False
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True
    refers: ClassVar[str] = "query"

    name: Name


@dataclass(frozen=True, kw_only=True)
class AwaitQuery(Statement):
    """name None means ALL; timeout in seconds, None for no limit."""

    topic: ClassVar[str] = "queries"
    needs_spark: ClassVar[bool] = True
    read_only: ClassVar[bool] = False
    refers: ClassVar[str] = "query"

    name: Name | None
    idle: bool = False
    timeout: float | None = None
