"""The statements about staged changes and generations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement, StatementWithBody, clause, count_of
from streamsql.language.statements.binder import names_of

SHOWN = 20
"""The rows that COMPARE shows without LIMIT."""


@dataclass(frozen=True, kw_only=True)
class ShowStaged(Statement):
    topic: ClassVar[str] = "change"
    not_on_connect: ClassVar[str] = "staged changes"


@dataclass(frozen=True, kw_only=True)
class PreviewChange(StatementWithBody):
    topic: ClassVar[str] = "change"
    not_on_connect: ClassVar[str] = "staged changes"


@dataclass(frozen=True, kw_only=True)
class Compare(Statement):
    """key: the columns that identify a row, () for those of the live table or sink; limit: the rows to be
    shown; query: whether it is of a query that writes into a sink.
    """

    topic: ClassVar[str] = "change"
    not_on_connect: ClassVar[str] = "staged changes"
    needs_spark: ClassVar[bool] = True

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
class Promote(Statement):
    topic: ClassVar[str] = "change"
    not_on_connect: ClassVar[str] = "staged changes"
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True

    names: tuple[Name, ...]
    duplicates: bool = False

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        return {"names": names_of(node, "QueryName"), "duplicates": node.has("WithDuplicates")}


@dataclass(frozen=True, kw_only=True)
class Rollback(Statement):
    """generation: the number of the one that is brought back, None for the one that was in use before."""

    topic: ClassVar[str] = "change"
    not_on_connect: ClassVar[str] = "staged changes"
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True

    names: tuple[Name, ...]
    generation: int | None = None
    duplicates: bool = False

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        number, names = node.get("Number"), names_of(node, "QueryName")
        generation = count_of(number, "GENERATION takes a whole number") if number else None
        return {"names": names, "generation": generation, "duplicates": node.has("WithDuplicates")}


@dataclass(frozen=True, kw_only=True)
class DropStaged(Statement):
    topic: ClassVar[str] = "change"
    not_on_connect: ClassVar[str] = "staged changes"
    changes_workspace: ClassVar[bool] = True
    refers: ClassVar[str] = "query"

    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowGenerations(Statement):
    topic: ClassVar[str] = "change"
    not_on_connect: ClassVar[str] = "staged changes"
    refers: ClassVar[str] = "query"

    name: Name | None = None
