"""SHOW BATCHES and DESCRIBE CHECKPOINT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.errors import Source, Span
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement, count_of, name_of


@dataclass(frozen=True)
class Owner:
    """The owner of a checkpoint: a query, or the checkpoint's folder."""

    query: Name | None = None
    folder: Name | None = None

    @property
    def span(self) -> Span:
        named = self.query or self.folder
        assert named
        return named.span

    def __str__(self) -> str:
        return f"query {self.query}" if self.query else f"checkpoint {self.folder}"


@dataclass(frozen=True, kw_only=True)
class ShowBatches(Statement):
    """last: the number of newest micro-batches; None for all."""

    topic: ClassVar[str] = "checkpoints"
    not_on_connect: ClassVar[str] = "state"

    owner: Owner
    last: int | None = None

    @classmethod
    def read(cls, node: Node, source: Source) -> ShowBatches:
        number = node.get("Number")
        last = count_of(number, "LAST takes a whole number of micro-batches") if number else None
        return cls(owner=owner_of(node), last=last)


@dataclass(frozen=True, kw_only=True)
class DescribeCheckpoint(Statement):
    topic: ClassVar[str] = "checkpoints"
    not_on_connect: ClassVar[str] = "state"

    owner: Owner

    @classmethod
    def read(cls, node: Node, source: Source) -> DescribeCheckpoint:
        return cls(owner=owner_of(node))


def owner_of(node: Node) -> Owner:
    """The query or folder that a node names."""
    node = node.get("CheckpointOf") or node
    query, folder = node.get("QueryName"), node.get("Path")
    return Owner(name_of(query) if query else None, name_of(folder) if folder else None)
