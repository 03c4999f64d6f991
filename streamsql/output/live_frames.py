"""Draws one frame of a refreshing result, as lines that fit a window. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from streamsql.errors import cells
from streamsql.output.cells import cut, short
from streamsql.output.chart import Point, chart, place
from streamsql.output.control_characters import visible
from streamsql.output.document import Style
from streamsql.output.drawn_tables import draw
from streamsql.output.line_breaks import wrap
from streamsql.query_facts import QueryFacts, lost_rows
from streamsql.results import Live, Rows, Snapshot, counted

AROUND = 4
"""The lines of a table beside its rows: three rulers and the header."""
CHARTED = 100_000
"""The newest rows that a chart is drawn of; with more the footer says so."""
SEPARATOR = " · "
BESIDE_ERROR = 40
"""The cells of a footer that the number of rows and the keys take beside an error."""


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
    status: QueryFacts
    view: View = View()


def frame(
    live: Live,
    view: View,
    keys: tuple[tuple[int, str], ...] = (),
    before: Frame | None = None,
    *,
    with_error: bool = True,
    help: str = "",
) -> Frame:
    """The current frame. keys: the parts of the footer about keys, see _of_query, none for the last frame;
    before: the previous frame, whose lines are reused if nothing has changed; with_error: why the query
    failed is in the footer; help: what stands below the footer.
    """
    status = live.status()
    helping = [part for line in help.split("\n") for part in _whole_parts(line, view.width)] if help else []
    error = _error(status) if with_error else ""
    below = cells(live.title + error) + BESIDE_ERROR > view.width
    if error and below:
        helping = [*wrap(visible(error), view.width), *helping]
    footer_lines = 1 + len(helping)
    if view.mode == "chart" and live.chart:
        snapshot = live.take(CHARTED, None, None)
        room = len(snapshot.rows)
    else:
        room = max(1, view.height - footer_lines - AROUND)
        take = live.changes if view.mode == "changes" else live.take
        snapshot = take(room, view.first, view.order)
    still = (
        before is not None
        and before.snapshot is snapshot
        and (_drawn_from(before.view), len(before.footer)) == (_drawn_from(view), footer_lines)
    )
    why = live.why() if not snapshot.total and status.status != "FAILED" else ()
    if why:
        lines = _wrapped(why, view.width, room + AROUND)
    elif before is not None and still:
        lines = list(before.lines)
    elif view.mode == "chart" and live.chart:
        lines = chart_lines(live, snapshot, view.width, max(6, view.height - footer_lines - 1))
    else:
        lines = _table(snapshot, view)
    parts = [(0, _of_how_much(live, snapshot, view, room)), *_of_query(status, snapshot, view, error, below)]
    footer = (one_line([*_lost(status), *parts, *keys], view.width), *helping)
    return Frame(tuple(lines), footer, snapshot, room, status, view)


def _wrapped(lines: tuple[str, ...], width: int, height: int) -> list[str]:
    """Lines that fit the window; those beyond its end are left out."""
    return [part for line in lines for part in wrap(visible(line), width)][:height]


def _whole_parts(line: str, width: int) -> list[str]:
    """A line of parts with separators as lines that begin and end with whole parts."""
    lines = [""]
    for part in line.split(SEPARATOR):
        longer = f"{lines[-1]}{SEPARATOR}{part}" if lines[-1] else part
        if cells(longer) <= width:
            lines[-1] = longer
        else:
            lines += wrap(visible(part), width)
    return lines


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
    return draw(rows, replace(style, width=view.width, narrow=True)).lines


def charted(live: Live, snapshot: Snapshot) -> tuple[list[Point], tuple[str, str]]:
    """(the rows of WATCH … AS CHART as x, y and the name of the line, the columns of x and y)."""
    x, y, *names = (snapshot.columns.index(c) for c in live.chart)
    rows = [(row[x], row[y], _name([row[n] for n in names])) for row in snapshot.rows]
    value = live.chart[1]
    if live.combine:
        value = live.combine if live.combine.endswith("(*)") else f"{live.combine}({value})"
    return rows, (live.chart[0], value)


def chart_lines(live: Live, snapshot: Snapshot, width: int, height: int) -> list[str]:
    """The plot of WATCH … AS CHART, of the rows of a snapshot."""
    rows, axes = charted(live, snapshot)
    combine, title = live.combine, f"{axes[1]} over {axes[0]}"
    if live.chart[2:]:
        bars = any(isinstance(place(row[0]), str) for row in rows)
        by = ", ".join([live.chart[0], *live.chart[2:]] if bars else live.chart[2:])
        title = f"{title}, a {'bar' if bars else 'line'} for each {by}"
        return chart(rows, width, height, title, axes, combine)
    missing = "" if combine else _missing(live, snapshot)
    if missing and len({str(row[0]) for row in rows}) < len(rows):
        said = f"{live.chart[0]} has several rows for a value: AS CHART ({', '.join(live.chart)}, {missing})"
        wrapped = _wrapped((f"{said} draws a line for each {missing}",), width, 3)
        return [*wrapped, *chart(rows, width, height - len(wrapped), title, axes)]
    return chart(rows, width, height, title, axes, combine)


def _name(values: list[object]) -> object:
    """What tells the lines of a chart apart."""
    return values[0] if len(values) == 1 else ", ".join(map(short, values)) if values else None


def _missing(live: Live, snapshot: Snapshot) -> str:
    """A column that may tell the lines of a chart apart, "" if there is none."""
    others = [
        name
        for name, numeric in zip(snapshot.columns, snapshot.numeric, strict=True)
        if name not in live.chart and not numeric
    ]
    return others[0] if others else ""


def _of_how_much(live: Live, snapshot: Snapshot, view: View, room: int) -> str:
    """The footer line about the rows that are shown, and their total."""
    what = "change" if snapshot.changes else "row"
    total, shown = snapshot.total, len(snapshot.rows)
    if view.mode == "chart":
        text = f"{live.title}: {counted(shown, 'row')}" + (f" of {total:,}" if shown < total else "")
    elif shown < total:
        text = f"{live.title}: {what}s {snapshot.first + 1:,}-{snapshot.first + shown:,} of {total:,}"
    elif snapshot.changes and not total:
        text = f"{live.title}: no changes yet"
    else:
        text = f"{live.title}: {counted(total, what)}"
    if snapshot.dropped:
        text += f" ({snapshot.dropped:,} older ones have been dropped)"
    if view.order:
        text += f", by {view.order[0]} {'down' if view.order[1] else 'up'}"
    if view.column:
        text += f", from column {view.column + 1} of {len(snapshot.columns)}"
    return text


def _of_query(
    facts: QueryFacts, snapshot: Snapshot, view: View, error: str, below: bool
) -> list[tuple[int, str]]:
    """The parts of the footer about the query, each with its rank: without room the highest goes. error: why
    it failed, if that is told; below: in lines of its own.
    """
    word = "PAUSED" if view.paused else facts.status
    account = facts.account
    if error:
        return [(1, word if below else f"{word}: {error}")]
    parts = [(1, word)]
    if snapshot.batch >= 0:
        parts.append((6, f"batch {snapshot.batch}"))
    if account.read or not snapshot.total:  # rows may be there before Spark reports how many it has read
        parts.append((3, f"{account.read.of('row')} in"))
    if facts.status == "running" and (rate := round(facts.rows_per_second)):
        parts.append((4, f"{counted(rate, 'row')}/s"))
    if facts.status == "running" and not account.read and not snapshot.total:
        parts.append((2, f"reading {facts.reading}" if facts.reading else "waiting for rows"))
    if facts.staged is not None:
        parts.append((4, f"staged change {facts.staged} %"))
    if facts.watermark:
        parts.append((5, f"watermark {facts.watermark}"))
    if account.held:
        parts.append((7, f"{counted(account.held, 'state row')}"))
    if view.now:
        parts.append((8, view.now))
    return parts


def _lost(facts: QueryFacts) -> list[tuple[int, str]]:
    """The rows that the query dropped, which the footer tells first, at any width."""
    return [(NEVER_CUT, lost) for lost in lost_rows(facts.account.late, facts.account.malformed)]


def _error(facts: QueryFacts) -> str:
    """Why the query failed, in a place that names it."""
    return facts.error.removeprefix(f"query {facts.query} failed: ")


NEVER_CUT = -1
"""The rank of a part that is shown at any width."""


Part = TypeVar("Part", bound="tuple[Any, ...]")


def that_fit(
    parts: Sequence[Part], width: int, stays: Callable[..., bool] = lambda *part: False
) -> list[Part]:
    """The parts, each with its rank and text, that fit a line: without room the last one of the highest rank
    goes, unless it stays or is the only one.
    """
    shown = list(parts)
    while len(shown) > 1 and cells(SEPARATOR.join(part[1] for part in shown)) > width:
        at = max(range(len(shown)), key=lambda at: (shown[at][0], at))
        if stays(*shown[at]):
            break
        del shown[at]
    return shown


def one_line(parts: list[tuple[int, str]], width: int) -> str:
    """Parts in one line without control characters. Where it is too long, the highest ranks are left out,
    then "running", and then the longest part is cut, but none of rank NEVER_CUT: the last part is the key
    that leaves the view.
    """
    parts = [(rank, visible(text)) for rank, text in parts]
    parts = that_fit(parts, width, lambda rank, text: rank == 0 or (rank == 1 and text != "running"))
    texts = [text for _, text in parts]
    over = cells(SEPARATOR.join(texts)) - width
    longest = max(range(len(texts)), key=lambda at: (parts[at][0] != NEVER_CUT, cells(texts[at])))
    if over > 0:
        texts[longest] = cut(texts[longest], max(1, cells(texts[longest]) - over))
    return cut(SEPARATOR.join(texts), width)
