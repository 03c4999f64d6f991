"""WATCH: shows a live table, or a SELECT over live tables, and refreshes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from streamsql.errors import Source, Span, SyntaxFault
from streamsql.language.durations import duration_of, seconds
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Fragment, Name, Statement, fragment_of, name_of


@dataclass(frozen=True)
class Chart:
    """x, y: the columns of the axes, None to choose them; series: the column whose values have a line each.

    how: the function that makes one value of those with equal x on a line, None for the default. y is None
    for count(*), too. span: its place in the statement.
    """

    x: Name | None = None
    y: Name | None = None
    series: Name | None = None
    how: Name | None = None
    span: Span = Span(0, 0)


@dataclass(frozen=True, kw_only=True)
class Watch(Statement, topic="live tables", refers="live_table"):
    """name: the live table, None for a query; every: seconds between refreshes, None for the default.
    changes: show changes instead of rows; chart: a chart of them.
    """

    name: Name | None = None
    query: Fragment | None = None
    every: float | None = None
    changes: bool = False
    chart: Chart | None = None

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        form, query = node.get("WatchForm"), node.get("Query")
        if query and form is None:
            _check_parentheses(fragment_of(source, query))
        every = form.get("Duration") if form else None
        mode = form.get("WatchMode") if form else None
        chart = mode.get("Chart") if mode else None
        return {
            "every": seconds(duration_of(every)) if every else None,
            "changes": mode is not None and mode.has("CHANGES"),
            "chart": _chart(chart) if chart else None,
        }


_FORM = re.compile(
    r"\b(EVERY\s+INTERVAL\b[^()]*|AS\s+CHART\s*\([^()]*(\([^()]*\)[^()]*)?\))\s*$", re.IGNORECASE
)
"""A form at the end of a SELECT, where Spark would take it for the alias of a table."""


def _check_parentheses(query: Fragment) -> None:
    """Raise SyntaxFault for a form behind a SELECT that is not in parentheses."""
    written = _FORM.search(query.text)
    if written:
        form = " ".join(written[1].split())
        raise SyntaxFault(
            f"{' '.join(form.split()[:2])} behind a SELECT needs parentheses around the SELECT",
            hint=f"WATCH (SELECT …) {form}",
            span=Span(written.start(1), written.end(1)).shift(query.span.start),
            code="CLAUSE_NOT_SUPPORTED",
        )


def _chart(node: Node) -> Chart:
    columns, value = [name_of(c) for c in node.all("ColumnName")], node.get("ChartValue")
    if value is None:
        return Chart(span=node.span)
    how, y = value.get("Word"), value.get("ColumnName")
    return Chart(
        columns[0],
        name_of(y) if y else None,
        columns[1] if len(columns) > 1 else None,
        name_of(how) if how else None,
        node.span,
    )
