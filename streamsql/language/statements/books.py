"""SHOW BATCHES and DESCRIBE CHECKPOINT: what a query has written down of its work."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.errors import Source, Span, SyntaxFault
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement, name_of


@dataclass(frozen=True)
class Owner:
    """Whose checkpoint: a query's by its name, or that of a folder."""

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
    """last: how many of the newest; None for all."""

    owner: Owner
    last: int | None = None


@dataclass(frozen=True, kw_only=True)
class DescribeCheckpoint(Statement):
    owner: Owner


def owner_of(node: Node) -> Owner:
    """The query or folder that a node names."""
    node = node.get("CheckpointOf") or node
    query, folder = node.get("QueryName"), node.get("Path")
    return Owner(name_of(query) if query else None, name_of(folder) if folder else None)


def _batches(node: Node, source: Source) -> ShowBatches:
    number = node.get("Number")
    if number and (not number.value.isdigit() or int(number.value) < 1):
        raise SyntaxFault(f"LAST takes a whole number of micro-batches, not {number.value}", span=number.span)
    return ShowBatches(owner=owner_of(node), last=int(number.value) if number else None)


BUILDERS = {
    "ShowBatches": _batches,
    "DescribeCheckpoint": lambda node, source: DescribeCheckpoint(owner=owner_of(node)),
}
