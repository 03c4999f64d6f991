"""PREVIEW and DESCRIBE CONNECTOR: looking before anything is made."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.errors import Source, SyntaxFault
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Option, Statement, clause, name_of, options_of

FIRST = 10
"""The records that PREVIEW shows when it is not told how many."""


@dataclass(frozen=True, kw_only=True)
class Preview(Statement):
    """Of a stream that is there (name), or of what a connector with its options would read."""

    name: Name | None = None
    connector: Name | None = None
    format: Name | None = None
    options: tuple[Option, ...] = ()
    limit: int = FIRST


@dataclass(frozen=True, kw_only=True)
class DescribeConnector(Statement):
    name: Name


def _limit(node: Node) -> int:
    """The number of a LIMIT. Raises SyntaxFault when it is no number of rows."""
    written = clause(node, "PreviewLimit")
    number = written.get("Number") if written else None
    if number is None:
        return FIRST
    if not number.value.isdigit():
        raise SyntaxFault(
            f"LIMIT takes a number of records, not {number.value}", hint="LIMIT 10", span=number.span
        )
    return int(number.value)


def _preview(node: Node, source: Source) -> Preview:
    there = node.get("PreviewStream")
    if there:
        return Preview(name=name_of(there.get("StreamName")), limit=_limit(there))
    part = node.get("PreviewSource")
    assert part
    format_node = clause(part, "Format")
    return Preview(
        connector=name_of(part.get("Connector")),
        format=name_of(format_node.get("FormatName")) if format_node else None,
        options=options_of(clause(part, "Options")),
        limit=_limit(part),
    )


BUILDERS = {
    "Preview": _preview,
    "DescribeConnector": lambda node, source: DescribeConnector(name=name_of(node.get("Connector"))),
}
