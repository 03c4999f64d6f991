"""SHOW, DESCRIBE, STOP, START, DROP, FLUSH and AWAIT QUERY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.errors import Source
from streamsql.language.durations import duration_of, seconds
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement, begins_of, count_of, name_of
from streamsql.language.statements.sink import retain_of


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

    @classmethod
    def read(cls, node: Node, source: Source) -> ShowProgress:
        number = node.get("Number")
        last = count_of(number, "LAST takes a whole number of micro-batches") if number else 10
        return cls(name=name_of(node.get("QueryName")), last=last)


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

    @classmethod
    def read(cls, node: Node, source: Source) -> StopQuery:
        return cls(name=_maybe_all(node), drain=node.has("WithDrain"), timeout=_timeout(node))


@dataclass(frozen=True, kw_only=True)
class StartQuery(Statement):
    """name None means ALL. begins: see begins_of; retain: the new limit of the rows that it keeps."""

    topic: ClassVar[str] = "queries"
    of_pipeline: ClassVar[bool] = False
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True
    refers: ClassVar[str] = "query"

    name: Name | None
    begins: str = ""
    retain: int | None = None

    @classmethod
    def read(cls, node: Node, source: Source) -> StartQuery:
        return cls(
            name=_maybe_all(node), begins=begins_of(node.get("Begins")), retain=retain_of(node.get("Retain"))
        )


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

    @classmethod
    def read(cls, node: Node, source: Source) -> AwaitQuery:
        return cls(name=_maybe_all(node), idle=node.has("IDLE"), timeout=_timeout(node))


def _maybe_all(node: Node) -> Name | None:
    return None if node.has("ALL") else name_of(node.get("QueryName"))


def _timeout(node: Node) -> float | None:
    timeout = node.get("Duration")
    return seconds(duration_of(timeout)) if timeout else None
