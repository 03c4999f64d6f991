"""CREATE, DROP, SHOW and DESCRIBE LIVE TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.language.statements.base import (
    Fragment,
    Name,
    QueryClauses,
    Statement,
)


@dataclass(frozen=True, kw_only=True)
class CreateLiveTable(QueryClauses, Statement):
    """A memory sink and its query. checkpoint: a folder, or None for the console's own. staged: it is built
    beside the live table of that name, until PROMOTE.
    """

    topic: ClassVar[str] = "live tables"
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True
    defines: ClassVar[str] = "live_table"

    name: Name
    query: Fragment
    key: tuple[Name, ...] = ()
    comment: str = ""
    or_replace: bool = False
    if_not_exists: bool = False
    staged: bool = False


@dataclass(frozen=True, kw_only=True)
class DropLiveTable(Statement):
    topic: ClassVar[str] = "live tables"
    changes_workspace: ClassVar[bool] = True
    refers: ClassVar[str] = "live_table"

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class ShowLiveTables(Statement):
    """pattern: of the names, "" for all."""

    topic: ClassVar[str] = "live tables"

    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class ShowStages(Statement):
    topic: ClassVar[str] = "stages"
    not_on_connect: ClassVar[str] = "stages"
    refers: ClassVar[str] = "query"

    name: Name


@dataclass(frozen=True, kw_only=True)
class DescribeLiveTable(Statement):
    topic: ClassVar[str] = "live tables"
    refers: ClassVar[str] = "live_table"

    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowCreateLiveTable(Statement):
    topic: ClassVar[str] = "live tables"
    refers: ClassVar[str] = "live_table"

    name: Name
