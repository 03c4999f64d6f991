"""CREATE, DROP, SHOW and DESCRIBE LIVE TABLE."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import (
    Fragment,
    Name,
    Statement,
    Trigger,
    begins_of,
    clause,
    fragment_of,
    name_of,
    output_mode_of,
    trigger_of,
)
from streamsql.language.statements.sink import names_of, retain_of


@dataclass(frozen=True, kw_only=True)
class CreateLiveTable(Statement):
    """A memory sink and its query in one. checkpoint: a folder, or None for the console's own."""

    name: Name
    query: Fragment
    output_mode: Name | None = None
    trigger: Trigger | None = None
    checkpoint: Name | None = None
    begins: str = ""
    key: tuple[Name, ...] = ()
    retain: int | None = None
    comment: str = ""
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class DropLiveTable(Statement):
    name: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class ShowLiveTables(Statement):
    pass


@dataclass(frozen=True, kw_only=True)
class DescribeLiveTable(Statement):
    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowCreateLiveTable(Statement):
    name: Name


def _create(node: Node, source: Source) -> CreateLiveTable:
    query, checkpoint, comment = node.get("Query"), clause(node, "Checkpoint"), clause(node, "Comment")
    assert query
    return CreateLiveTable(
        name=name_of(node.get("NewName")),
        query=fragment_of(source, query),
        output_mode=output_mode_of(clause(node, "OutputMode")),
        trigger=trigger_of(clause(node, "Trigger")),
        checkpoint=name_of(checkpoint.get("Path")) if checkpoint else None,
        begins=begins_of(clause(node, "Begins")),
        key=names_of(clause(node, "Key")),
        retain=retain_of(clause(node, "Retain")),
        comment=comment.text("String") if comment else "",
        or_replace=node.has("OrReplace"),
        if_not_exists=node.has("IfNotExists"),
    )


def _drop(node: Node, source: Source) -> DropLiveTable:
    return DropLiveTable(name=name_of(node.get("LiveTableName")), if_exists=node.has("IfExists"))


BUILDERS = {
    "CreateLiveTable": _create,
    "DropLiveTable": _drop,
    "ShowLiveTables": lambda node, source: ShowLiveTables(),
    "DescribeLiveTable": lambda node, source: DescribeLiveTable(name=name_of(node.get("LiveTableName"))),
    "ShowCreateLiveTable": lambda node, source: ShowCreateLiveTable(name=name_of(node.get("LiveTableName"))),
}
