"""WATCH: shows a live table and refreshes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.errors import Source
from streamsql.language.durations import duration_of, seconds
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement, name_of


@dataclass(frozen=True, kw_only=True)
class Watch(Statement):
    """every: seconds between refreshes, None for the default. changes: show changes instead of rows; charted:
    a chart of them.

    chart: the columns x and y and, optionally, the column that separates the lines; () to choose them.
    """

    topic: ClassVar[str] = "live tables"
    refers: ClassVar[str] = "live_table"

    name: Name
    every: float | None = None
    changes: bool = False
    charted: bool = False
    chart: tuple[Name, ...] = ()

    @classmethod
    def read(cls, node: Node, source: Source) -> Watch:
        return _watch(node, source)


def _watch(node: Node, source: Source) -> Watch:
    every, chart = node.get("Duration"), node.get("Chart")
    columns = tuple(name_of(c) for c in chart.all("ColumnName")) if chart else ()
    return Watch(
        name=name_of(node.get("LiveTableName")),
        every=seconds(duration_of(every)) if every else None,
        changes=node.has("CHANGES"),
        charted=chart is not None,
        chart=columns,
    )
