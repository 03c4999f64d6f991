"""SHOW, DESCRIBE, STOP, START, DROP, FLUSH and AWAIT QUERY."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.language.statements.base import Name, Statement


@dataclass(frozen=True, kw_only=True)
class ShowQueries(Statement, topic="queries"):
    """pattern: of the names, "" for all."""

    extended: bool = False
    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class DescribeQuery(Statement, topic="queries", refers="query"):
    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowProgress(Statement, topic="queries", refers="query"):
    name: Name
    last: int = 10


@dataclass(frozen=True, kw_only=True)
class StopQuery(Statement, topic="queries", of_pipeline=False, changes_workspace=True, refers="query"):
    """name None means ALL; timeout in seconds, None for the default, or no limit WITH DRAIN."""

    name: Name | None
    drain: bool = False
    timeout: float | None = None


@dataclass(frozen=True, kw_only=True)
class StartQuery(
    Statement, topic="queries", of_pipeline=False, needs_spark=True, changes_workspace=True, refers="query"
):
    """name None means ALL. begins: see QueryClauses; retain: the new limit of the rows that it keeps."""

    name: Name | None
    begins: str = ""
    retain: int | None = None


@dataclass(frozen=True, kw_only=True)
class DropQuery(Statement, topic="queries", changes_workspace=True, refers="query"):
    """name None means ALL."""

    name: Name | None
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class FlushQuery(
    Statement,
    topic="watermarks",
    not_on_connect="event time",
    of_pipeline=False,
    needs_spark=True,
    changes_workspace=True,
    refers="query",
):
    name: Name


@dataclass(frozen=True, kw_only=True)
class AwaitQuery(Statement, topic="queries", needs_spark=True, read_only=False, refers="query"):
    """name None means ALL; timeout in seconds, None for no limit."""

    name: Name | None
    idle: bool = False
    timeout: float | None = None
