"""CREATE, DROP, ADVANCE, SHOW and DESCRIBE STREAM."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.language.statements.base import (
    Column,
    Fragment,
    Name,
    Option,
    Statement,
    Watermark,
)


@dataclass(frozen=True, kw_only=True)
class CreateStream(Statement, topic="streams", changes_workspace=True, defines="stream"):
    """A stream USING a connector, or AS a query (then connector is None).

    key: the columns that identify a row, for a format of changes. malformed: the action of ON MALFORMED:
    fail, skip, into (malformed_sink), or "" without the clause. staged: it is kept beside the stream of that
    name, until PROMOTE.
    """

    name: Name
    connector: Name | None = None
    format: Name | None = None
    columns: tuple[Column, ...] = ()
    key: tuple[Name, ...] = ()
    options: tuple[Option, ...] = ()
    watermark: Watermark | None = None
    comment: str = ""
    malformed: str = ""
    malformed_sink: Name | None = None
    query: Fragment | None = None
    or_replace: bool = False
    if_not_exists: bool = False
    staged: bool = False


@dataclass(frozen=True, kw_only=True)
class DropStream(Statement, topic="streams", changes_workspace=True, refers="stream"):
    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, kw_only=True)
class AdvanceStream(
    Statement,
    topic="watermarks",
    not_on_connect="event time",
    of_pipeline=False,
    needs_spark=True,
    changes_workspace=True,
    refers="stream",
):
    """to: a timestamp as text, with its span."""

    name: Name
    to: Name


@dataclass(frozen=True, kw_only=True)
class ShowStreams(Statement, topic="streams"):
    """pattern: of the names, "" for all."""

    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class DescribeStream(Statement, topic="streams", refers="stream"):
    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowCreateStream(Statement, topic="streams", refers="stream"):
    name: Name
