"""Results as HTML, and charts as pictures."""

from __future__ import annotations

import html
import io
from collections.abc import Iterable

from streamsql.api.connection import Explanation
from streamsql.api.query_result import QueryResult
from streamsql.errors import UsageFault
from streamsql.output.cells import text
from streamsql.output.chart import largest, not_drawn, points_of
from streamsql.output.live_frames import CHARTED, charted
from streamsql.results import Live, Rows, Snapshot, counted

SHOWN = 100
"""The rows that a cell shows."""
FEW = 40
"""The points of a line up to which each is marked."""
_CELL = "padding:2px 10px;white-space:pre-wrap;vertical-align:top;text-align:"
_SMALL = "<div style='opacity:.65;font-size:90%'>{}</div>"


def result_html(result: QueryResult) -> str:
    """The first rows of a result, or what was done, and its notes. All rows stay to be read."""
    notes = [f"note: {note}" for note in result.notes]
    if not result.columns:
        return _lines([result.message, *notes])
    rows, more = result.head(SHOWN)
    number = counted(len(rows.rows), "row")
    return table_html(rows) + _lines([f"the first {number}" if more else number, *notes])


def explanation_html(said: Explanation) -> str:
    """What WHY says."""
    facts = table_html(Rows(columns=("property", "value"), rows=said.facts)) if said.facts else ""
    proposal = f"<pre>{html.escape(said.proposal)}</pre>" if said.proposal else ""
    return f"<div>{html.escape(said.verdict)}</div>{facts}{proposal}"


def table_html(rows: Rows) -> str:
    """A table. NULL is faint; numbers are on the right."""
    numeric = rows.numeric or (False,) * len(rows.columns)
    sides = ["right" if is_number else "left" for is_number in numeric]
    names = zip(rows.columns, sides, strict=True)
    head = "".join(f"<th style='{_CELL}{side}'>{html.escape(name)}</th>" for name, side in names)
    body = "".join(f"<tr>{''.join(map(_cell, row, sides))}</tr>" for row in rows.rows)
    parts = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f"<table style='border-collapse:collapse'>{parts}</table>"


def _cell(value: object, side: str) -> str:
    if value is None:
        return f"<td style='{_CELL}{side};opacity:.5'>NULL</td>"
    return f"<td style='{_CELL}{side}'>{html.escape(text(value))}</td>"


def _lines(lines: Iterable[str]) -> str:
    return "".join(_SMALL.format(html.escape(line)) for line in lines if line)


def live_html(live: Live, state: str) -> str:
    """A result that refreshes, as it is now: rows, the changes to them, or a picture. state: what stands
    below.
    """
    if live.mode == "chart":
        snapshot = live.take(CHARTED, None, None)
        return picture(live, snapshot) + _lines([state])
    snapshot = (live.changes if live.mode == "changes" else live.take)(SHOWN, None, None)
    return table_html(Rows((), snapshot.columns, snapshot.rows, snapshot.numeric)) + _lines(
        [_counted(snapshot), state]
    )


def _counted(snapshot: Snapshot) -> str:
    end = snapshot.first + len(snapshot.rows)
    if len(snapshot.rows) < snapshot.total:
        return f"rows {snapshot.first + 1} to {end} of {snapshot.total:,}"
    return counted(snapshot.total, "change" if snapshot.changes else "row")


def picture(live: Live, snapshot: Snapshot) -> str:
    """A chart as SVG: lines over numbers and times, bars over texts. Raises UsageFault without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageFault(
            "a chart in a notebook needs the package matplotlib",
            hint="pip install 'streamsql-console[notebook]'",
            code="PACKAGE_NOT_AVAILABLE",
        ) from None
    rows, (x, y) = charted(live, snapshot)
    points, added = points_of(rows, live.combine)
    if not points:
        return _lines(["no rows to draw yet"])
    names, number = largest(points)
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.add_subplot()
    over_texts = any(isinstance(point[0], str) for point in points)
    for name in names:
        line = [(px, float(py)) for px, py, of in points if of == name]
        line = line if over_texts else sorted(line)
        label = None if name is None else text(name)
        xs, ys = [text(px) if over_texts else px for px, _ in line], [py for _, py in line]
        if over_texts:
            axes.bar(xs, ys, label=label)
        else:
            axes.plot(xs, ys, label=label, marker="o" if len(ys) < FEW else "", markersize=3)
    axes.set_xlabel(x)
    axes.set_ylabel(f"sum({y})" if added else y)
    if names != [None]:
        axes.legend(fontsize="small", frameon=False)
    if not over_texts:
        figure.autofmt_xdate(rotation=20)
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=False, metadata={"Date": None})
    svg = out.getvalue()
    return svg[svg.index("<svg") :] + _lines([not_drawn(len(names), number, "lines")])
