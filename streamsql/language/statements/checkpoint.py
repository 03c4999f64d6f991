"""SHOW BATCHES and DESCRIBE CHECKPOINT."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.errors import Span
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement, name_of


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
class ShowBatches(Statement, topic="checkpoints", not_on_connect="state"):
    """last: the number of newest micro-batches; None for all."""

    owner: Owner
    last: int | None = None


@dataclass(frozen=True, kw_only=True)
class DescribeCheckpoint(Statement, topic="checkpoints"):
    owner: Owner


def owner_of(node: Node) -> Owner:
    """The query or folder that a node names."""
    node = node.get("CheckpointOf") or node
    query, folder = node.get("QueryName"), node.get("Path")
    return Owner(name_of(query) if query else None, name_of(folder) if folder else None)
