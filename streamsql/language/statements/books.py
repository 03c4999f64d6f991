"""SHOW BATCHES and DESCRIBE CHECKPOINT: what a query has written down of its work."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.errors import Source, SyntaxFault
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement, name_of


@dataclass(frozen=True, kw_only=True)
class CheckpointOf(Statement):
    """Base: of a query by its name, or of a folder."""

    query: Name | None = None
    folder: Name | None = None


@dataclass(frozen=True, kw_only=True)
class ShowBatches(CheckpointOf):
    """last: how many of the newest; None for all."""

    last: int | None = None


@dataclass(frozen=True, kw_only=True)
class DescribeCheckpoint(CheckpointOf):
    pass


def owner_of(node: Node) -> tuple[Name | None, Name | None]:
    """(query, folder) that a node names, of which one is None."""
    query, folder = node.get("QueryName"), node.get("Path")
    return (name_of(query) if query else None, name_of(folder) if folder else None)


def _batches(node: Node, source: Source) -> ShowBatches:
    number, owner = node.get("Number"), node.get("CheckpointOf")
    if number and (not number.value.isdigit() or int(number.value) < 1):
        raise SyntaxFault(f"LAST takes a whole number of micro-batches, not {number.value}", span=number.span)
    assert owner
    query, folder = owner_of(owner)
    return ShowBatches(query=query, folder=folder, last=int(number.value) if number else None)


def _describe(node: Node, source: Source) -> DescribeCheckpoint:
    query, folder = owner_of(node)
    return DescribeCheckpoint(query=query, folder=folder)


BUILDERS = {"ShowBatches": _batches, "DescribeCheckpoint": _describe}
