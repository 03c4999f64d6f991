"""CREATE, DROP, SHOW and DESCRIBE LIVE TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import (
    Fragment,
    Name,
    QueryClauses,
    Statement,
    begins_of,
    clause,
    fragment_of,
    late_of,
    name_of,
    new_name_of,
    output_mode_of,
    replacement_of,
    restart_of,
    trigger_of,
)
from streamsql.language.statements.sink import names_of, retain_of


@dataclass(frozen=True, kw_only=True)
class CreateLiveTable(QueryClauses, Statement):
    """A memory sink and its query. checkpoint: a folder, or None for the console's own."""

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

    @classmethod
    def read(cls, node: Node, source: Source) -> CreateLiveTable:
        query, checkpoint, comment = node.get("Query"), clause(node, "Checkpoint"), clause(node, "Comment")
        assert query
        return cls(
            name=new_name_of(node.get("NewName")),
            query=fragment_of(source, query),
            output_mode=output_mode_of(clause(node, "OutputMode")),
            trigger=trigger_of(clause(node, "Trigger")),
            checkpoint=name_of(checkpoint.get("Path")) if checkpoint else None,
            restart=restart_of(clause(node, "Restart")),
            begins=begins_of(clause(node, "Begins")),
            late=late_of(clause(node, "OnLate")),
            key=names_of(clause(node, "Key")),
            retain=retain_of(clause(node, "Retain")),
            comment=comment.text("String") if comment else "",
            **replacement_of(node),
        )


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
