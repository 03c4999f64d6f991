"""CREATE, DROP, SHOW and DESCRIBE LIVE TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import (
    Fragment,
    Name,
    QueryClauses,
    Statement,
    fragment_of,
    name_of,
)


@dataclass(frozen=True)
class BackfillClause:
    """BACKFILL [stream] FROM (query) UNTIL TIMESTAMP 'until'. stream: None where it is not named."""

    stream: Name | None
    query: Fragment
    until: Name


@dataclass(frozen=True, kw_only=True)
class CreateLiveTable(
    QueryClauses,
    Statement,
    topic="live tables",
    needs_spark=True,
    changes_workspace=True,
    defines="live_table",
):
    """A memory sink and its query. checkpoint: a folder, or None for the console's own. staged: it is built
    beside the live table of that name, until PROMOTE; since: the moment at which its streams begin.
    """

    name: Name
    query: Fragment
    key: tuple[Name, ...] = ()
    comment: str = ""
    or_replace: bool = False
    if_not_exists: bool = False
    staged: bool = False
    since: Name | None = None
    backfill: BackfillClause | None = None

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        written = node.get("Backfill")
        if written is None:
            return {}
        stream, query = written.get("StreamName"), written.get("Query")
        assert query
        until = name_of(written.get("String"))
        named = name_of(stream) if stream else None
        return {"backfill": BackfillClause(named, fragment_of(source, query), until)}


@dataclass(frozen=True, kw_only=True)
class DropLiveTable(Statement, topic="live tables", changes_workspace=True, refers="live_table"):
    name: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class ShowLiveTables(Statement, topic="live tables"):
    """pattern: of the names, "" for all."""

    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class ShowStages(Statement, topic="stages", not_on_connect="stages", refers="query"):
    name: Name


@dataclass(frozen=True, kw_only=True)
class DescribeLiveTable(Statement, topic="live tables", refers="live_table"):
    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowCreateLiveTable(Statement, topic="live tables", refers="live_table"):
    name: Name
