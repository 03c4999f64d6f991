"""Draws one frame of a refreshing result, as lines that fit a window. Pure functions."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace

from streamsql.errors import cells
from streamsql.output.chart import POINTS, chart
from streamsql.output.control_characters import visible
from streamsql.output.formats import Style, draw
from streamsql.results import Live, Rows, Snapshot, Status

AROUND = 4
"""The lines of a table beside its rows: three rulers and the header."""


@dataclass(frozen=True)
class View:
    """The state of a live view: the size of the window, and what the keys have changed.

    column: the first column shown; first: the first row shown, None to follow the newest; order: see
    results.Live; now: the time of day in the footer.
    """

    width: int = 80
    height: int = 24
    mode: str = "table"
    column: int = 0
    first: int | None = None
    order: tuple[str, bool] | None = None
    paused: bool = False
    color: bool = False
    null: str = "NULL"
    now: str = ""


@dataclass(frozen=True)
class Frame:
    """One frame. lines: its body; footer: its last lines; rows: the number of rows that fit; view: the view
    that it was drawn with.
    """

    lines: tuple[str, ...]
    footer: tuple[str, ...]
    snapshot: Snapshot
    rows: int
    status: Status
    view: View = View()


def frame(
    live: Live, view: View, keys: str = "", before: Frame | None = None, *, with_error: bool = True
) -> Frame:
    """The current frame. keys: the help line for the keys, empty for the last frame; before: the previous
    frame, whose lines are reused if nothing has changed; with_error: why the query failed is a line of it.
    """
    status = live.status()
    footer_lines = 3 if keys else 2
    if view.mode == "chart" and live.chart:
        snapshot = live.take(POINTS * 4, None, None)
        room = len(snapshot.rows)
    else:
        room = max(1, view.height - footer_lines - AROUND)
        take = live.changes if view.mode == "changes" else live.take
        snapshot = take(room, view.first, view.order)
    still = (
        before is not None and before.snapshot is snapshot and _drawn_from(before.view) == _drawn_from(view)
    )
    why = live.why() if not snapshot.total else ()
    if why:
        lines = _wrapped(why, view.width, room + AROUND)
    elif before is not None and still:
        lines = list(before.lines)
    elif view.mode == "chart" and live.chart:
        lines = chart_lines(live, snapshot, view.width, max(6, view.height - footer_lines - 1))
    else:
        lines = _table(snapshot, view)
    footer = [_cut(_of_how_much(live, snapshot, view, room), view.width)]
    footer.append(_cut(_of_query(status, snapshot, view), view.width))
    if status.error and with_error:
        footer[1] = _cut(status.error, view.width)
    if keys:
        footer.append(_cut(keys, view.width))
    return Frame(tuple(lines), tuple(footer), snapshot, room, status, view)


def _wrapped(lines: tuple[str, ...], width: int, height: int) -> list[str]:
    """Lines that fit the window; those beyond its end are left out."""
    parts = [p for line in lines for p in textwrap.wrap(visible(line), width, subsequent_indent="  ") or [""]]
    return parts[:height]


def _drawn_from(view: View) -> View:
    """The part of a view that the lines of its frame depend on."""
    return replace(view, now="", paused=False)


def _table(snapshot: Snapshot, view: View) -> list[str]:
    at = min(view.column, max(0, len(snapshot.columns) - 1))
    pinned = 1 if snapshot.changes and at else 0  # the kind of a change is always shown
    pick = [*range(pinned), *range(at, len(snapshot.columns))]
    rows = Rows(
        (),
        tuple(snapshot.columns[i] for i in pick),
        [tuple(row[i] for i in pick) for row in snapshot.rows],
        tuple(snapshot.numeric[i] for i in pick),
    )
    style = Style(view.null, view.color)
    whole = draw(rows, style)
    if whole.width <= view.width:
        return whole.lines
    return draw(rows, replace(style, max_cell=max(12, view.width // 2), width=view.width)).lines


def chart_lines(live: Live, snapshot: Snapshot, width: int, height: int) -> list[str]:
    """The plot of WATCH … AS CHART, of the rows of a snapshot."""
    x, y, *names = (snapshot.columns.index(c) for c in live.chart)
    rows = [(row[x], row[y], row[names[0]] if names else None) for row in snapshot.rows]
    title = f"{live.chart[1]} over {live.chart[0]}"
    return chart(rows, width, height, title)


def _of_how_much(live: Live, snapshot: Snapshot, view: View, room: int) -> str:
    """The footer line about the rows that are shown, and their total."""
    what = "change" if snapshot.changes else "row"
    total, shown = snapshot.total, len(snapshot.rows)
    if view.mode == "chart":
        text = f"{live.title}: {_count(shown, 'row')}" + (f" of {total:,}" if shown < total else "")
    elif shown < total:
        text = f"{live.title}: {what}s {snapshot.first + 1:,}-{snapshot.first + shown:,} of {total:,}"
    elif snapshot.changes and not total:
        text = f"{live.title}: no changes yet"
    else:
        text = f"{live.title}: {_count(total, what)}"
    if snapshot.dropped:
        text += f" ({snapshot.dropped:,} older ones have been dropped)"
    if view.order:
        text += f", by {view.order[0]} {'down' if view.order[1] else 'up'}"
    if view.column:
        text += f", from column {view.column + 1} of {len(snapshot.columns)}"
    return text


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _of_query(status: Status, snapshot: Snapshot, view: View) -> str:
    """The footer line about the query, the most important first."""
    parts = ["PAUSED" if view.paused else status.word]
    if snapshot.batch >= 0:
        parts.append(f"batch {snapshot.batch}")
    parts.append(f"{status.rows_in:,} rows in")
    if status.word == "running" and status.rows_per_second:
        parts.append(f"{status.rows_per_second:,.0f} rows/s")
    if status.word == "running" and not status.rows_in and not snapshot.total:
        parts.append(f"reading {status.reading}" if status.reading else "waiting for rows")
    if status.watermark:
        parts.append(
            f"watermark {status.watermark.replace('T', ' ').removesuffix('.000Z').removesuffix('Z')}"
        )
    if status.late:
        parts.append(f"{status.late:,} late rows dropped")
    if status.malformed:
        parts.append(f"{status.malformed:,} malformed")
    if status.state_rows:
        parts.append(f"{status.state_rows:,} rows of state")
    if view.now:
        parts.append(view.now)
    return " · ".join(parts)


def _cut(text: str, width: int) -> str:
    """A line cut to a width, without control characters; the parts after the last separators go first."""
    text = visible(text)
    while cells(text) > width and " · " in text:
        text = text.rpartition(" · ")[0]
    return text if cells(text) <= width else text[: max(0, width - 1)] + "…"
