"""The statements about staged changes and generations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from streamsql.definitions import PROMOTED, Member
from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import (
    Name,
    Statement,
    StatementWithBody,
    clause,
    count_of,
    name_of,
)

SHOWN = 20
"""The rows that COMPARE shows without LIMIT."""


@dataclass(frozen=True, kw_only=True)
class ShowStaged(Statement, topic="change", not_on_connect="staged changes"):
    pass


@dataclass(frozen=True, kw_only=True)
class PreviewChange(StatementWithBody, topic="change", not_on_connect="staged changes"):
    pass


@dataclass(frozen=True, kw_only=True)
class OfChange:
    """A statement about a set of staged changes."""

    topic: ClassVar[str] = "change"
    not_on_connect: ClassVar[str] = "staged changes"
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True
    refers: ClassVar[str] = "change"

    name: Name


@dataclass(frozen=True, kw_only=True)
class PromoteChange(OfChange, Statement, of_pipeline=False):
    """The staged changes of a set are put in use. duplicates: with WITH DUPLICATES."""

    duplicates: bool = False


@dataclass(frozen=True, kw_only=True)
class RollbackChange(OfChange, Statement, of_pipeline=False):
    """What was in use before a set was promoted is brought back. duplicates: as for PROMOTE CHANGE."""

    duplicates: bool = False


@dataclass(frozen=True, kw_only=True)
class DropChange(OfChange, Statement, of_pipeline=False):
    """The staged changes of a set are removed, and the set."""


@dataclass(frozen=True, kw_only=True)
class CompareChange(OfChange, Statement, changes_workspace=False):
    """Each live table of a set is compared with its staged change."""


@dataclass(frozen=True, kw_only=True)
class Compare(Statement, topic="change", not_on_connect="staged changes", needs_spark=True):
    """key: the columns that identify a row, () for those of the live table or sink; limit: the rows to be
    shown; query: whether it is of a query that writes into a sink.
    """

    name: Name
    key: tuple[Name, ...] = ()
    limit: int = SHOWN
    query: bool = False

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        written = clause(node, "MostShown")
        number = written.get("Number") if written else None
        limit = {"limit": count_of(number, "LIMIT takes a whole number of rows")} if number else {}
        return limit | {"query": node.has("QueryName")}


@dataclass(frozen=True, kw_only=True)
class Promote(
    Statement, topic="change", not_on_connect="staged changes", needs_spark=True, changes_workspace=True
):
    names: tuple[Name, ...]
    duplicates: bool = False


@dataclass(frozen=True, kw_only=True)
class Rollback(
    Statement, topic="change", not_on_connect="staged changes", needs_spark=True, changes_workspace=True
):
    """generation: the number of the one that is brought back, None for the one that was in use before."""

    names: tuple[Name, ...]
    generation: int | None = None
    duplicates: bool = False

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        number = node.get("Number")
        return {"generation": count_of(number, "GENERATION takes a whole number")} if number else {}


@dataclass(frozen=True, kw_only=True)
class DropStaged(Statement, topic="change", not_on_connect="staged changes", changes_workspace=True):
    names: tuple[Name, ...]


@dataclass(frozen=True, kw_only=True)
class BeginChange(
    Statement,
    topic="change",
    not_on_connect="staged changes",
    changes_workspace=True,
    changes_prompt=True,
    of_pipeline=False,
):
    name: Name


@dataclass(frozen=True, kw_only=True)
class EndChange(
    Statement,
    topic="change",
    not_on_connect="staged changes",
    needs_spark=True,
    changes_workspace=True,
    changes_prompt=True,
    of_pipeline=False,
):
    pass


@dataclass(frozen=True, kw_only=True)
class CreateChange(
    Statement, topic="change", not_on_connect="staged changes", changes_workspace=True, of_pipeline=False
):
    """members: the staged changes of the set; generation: see Member."""

    name: Name
    members: tuple[Member, ...]

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        return {"members": tuple(map(_member, node.all("ChangeMember")))}


def _member(node: Node) -> Member:
    kinds = {"StreamName": "stream", "LiveTableName": "live_table", "QueryName": "query"}
    kinds |= {"ViewName": "view", "FunctionName": "function"}
    written, kind = next((part, kinds[part.name]) for part in node.parts if part.name in kinds)
    promoted = PROMOTED if node.has(PROMOTED) else ""
    return Member(kind, name_of(written).value, node.text("Number") or promoted, node.has("NEW"))


@dataclass(frozen=True, kw_only=True)
class ShowGenerations(Statement, topic="change", not_on_connect="staged changes", refers="query"):
    name: Name | None = None
