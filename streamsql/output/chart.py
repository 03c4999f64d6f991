"""Rows as a plot in a terminal: lines over numbers and times, bars over texts. Pure functions."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from streamsql.errors import cells
from streamsql.output.cells import cut, short, text, texts
from streamsql.output.control_characters import visible

MARKERS = ("•", "x", "o", "+", "*", "#", "@", "=")
POINTS = 500
"""The largest number of points of a line; a terminal shows fewer."""


SIDE_BY_SIDE = len(MARKERS)
"""The largest number of lines in a plot."""
APART = 3.0
"""A few points are not drawn if the range of all is so many times that of the others."""
FEW = 0.05
"""The share of points that are few."""
DENSE = 3
"""The cells that a point of one of several lines needs at least, so that they can be told apart."""
PANEL = 3
"""The lines of text that a panel needs at least."""

Point = tuple[Any, Any, Any]


def chart(
    rows: Sequence[Point],
    width: int,
    height: int,
    title: str = "",
    axes: tuple[str, str] | None = None,
    combine: str = "",
) -> list[str]:
    """A plot of (x, y, name of the line or None) as lines of text, width cells wide, height lines high: the
    title, a legend and what is not drawn, then the axes and what they show. axes: the columns of x and y.

    x: a number, date, time, or a window (placed at its start); other types are drawn as bars. Rows without
    x or y are omitted. combine: what becomes of several values of y for one x and one line: see
    results.COMBINING; "" to add them up.
    """
    points, added = points_of(rows, combine)
    if not points:
        return [title, "(no rows to draw yet)"][not title :]
    if axes and added:
        axes = (axes[0], f"sum({axes[1]})")
    height -= bool(axes)
    if not all(isinstance(x, (int, float, dt.datetime, dt.date)) for x, _, _ in points):
        bars = _bars(points, width, height - bool(title) - 1)
        note = not_drawn(len(bars), len(points), "bars")
        heads = [_centred(head, width) for head in (title, note) if head]
        return [*heads, *bars, *([_centred(f"x: {axes[1]}   y: {axes[0]}", width)] if axes else [])]
    kind = type(points[0][0])
    drawn_points, apart = _together([(_on_axis(x), y, name) for x, y, name in points])
    names, number = largest(drawn_points)
    shown = [p for p in drawn_points if p[2] in names]
    note = not_drawn(len(names), number, "lines")
    room = height - bool(title) - bool(note) - bool(apart) - 2
    if _dense(shown, names, width) and room // len(names) >= PANEL:
        heads, draw = [title, note, apart], _panels
    else:
        heads, draw = [title, note, _legend(names, width), apart], _lines
    timed = issubclass(kind, dt.date)
    drawn = draw(_by_name(shown, names), width, height - sum(map(bool, heads)), timed)
    days = _days(drawn_points) if issubclass(kind, dt.datetime) else ""
    below = f"x: {axes[0]}{days}   y: {axes[1]}" if axes else ""
    return _lines_of(heads, drawn, width) + ([_centred(below, width)] if below else [])


def points_of(rows: Sequence[Point], combine: str) -> tuple[list[Point], bool]:
    """(the points that are drawn of rows, one for each x of each line; whether values were added up that
    nobody asked to combine). combine: as for `chart`.
    """
    if combine.startswith("count"):
        rows = [(x, None if y is None and combine == "count" else 1, name) for x, y, name in rows]
    points = [(place(x), y, name) for x, y, name in rows if x is not None and is_number(y)]
    single = _combined(points, combine)
    return single, not combine and len(single) < len(points)


def _combined(points: list[Point], combine: str) -> list[Point]:
    """One point for each x of each line."""
    values: dict[tuple[Any, Any], list[Any]] = {}
    for x, y, name in points:
        values.setdefault((x, name), []).append(y)
    one = _COMBINE.get(combine, _sum)
    return [(x, ys[0] if len(ys) == 1 else one(ys), name) for (x, name), ys in values.items()]


def _sum(values: list[Any]) -> Any:
    alike = len({type(value) for value in values}) == 1
    return sum(values[1:], values[0]) if alike else math.fsum(values)


def _mean(values: list[Any]) -> Any:
    return _sum(values) / len(values)


_COMBINE: dict[str, Callable[[list[Any]], Any]] = {"min": min, "max": max, "avg": _mean}
"""The functions that make one value of several, where they are not added up."""


def _lines_of(heads: list[str], drawn: str, width: int) -> list[str]:
    return [_centred(head, width) for head in heads if head] + [
        line.removesuffix("\x1b[0m").rstrip() for line in drawn.rstrip("\n").split("\n")
    ]


def _centred(line: str, width: int) -> str:
    line = cut(visible(line), width)
    return " " * max(0, (width - cells(line)) // 2) + line


def _days(points: Sequence[Point]) -> str:
    """The days of the times on the x axis, where its labels show hours."""
    low, high = min(x for x, _, _ in points), max(x for x, _, _ in points)
    if high - low > 3 * _DAY:
        return ""
    first, last = (dt.datetime.fromtimestamp(moment, dt.UTC).date() for moment in (low, high))
    return f" ({first})" if first == last else f" ({first} to {last})"


def _together(points: list[Point]) -> tuple[list[Point], str]:
    """(the points without the few that lie so far from the others that these would be squeezed, what is not
    drawn).
    """
    places = sorted({x for x, _, _ in points})
    few = max(1, int(len(places) * FEW))
    inner = len(places) - few
    if inner < 5:
        return points, ""
    narrow, low = min((places[at + inner - 1] - places[at], places[at]) for at in range(few + 1))
    if narrow * APART >= places[-1] - places[0]:
        return points, ""
    inside = [p for p in points if low <= p[0] <= low + narrow]
    before = sum(x < low for x, _, _ in points)
    after = len(points) - len(inside) - before
    said = [f"{number} {where}" for number, where in ((before, "before"), (after, "after")) if number]
    return inside, f"not drawn, far away: {', '.join(said)}"


def largest(points: list[Point]) -> tuple[list[Any], int]:
    """(the names of the lines that are drawn, the largest, sorted; the number of all lines)."""
    sums: dict[Any, float] = {}
    for _, y, name in points:
        sums[name] = sums.get(name, 0.0) + abs(float(y))
    largest = sorted(sums, key=lambda name: -sums[name])[:SIDE_BY_SIDE]
    return sorted(largest, key=text), len(sums)


def not_drawn(drawn: int, number: int, what: str) -> str:
    """That only the largest lines or bars are drawn; "" where all are."""
    return f"the {drawn} largest of {number} {what} are drawn" if drawn < number else ""


def _legend(names: list[Any], width: int) -> str:
    if names == [None]:
        return ""
    listed = [f"{marker} {short(name)}" for marker, name in zip(MARKERS, names, strict=False)]
    if cells("   ".join(listed)) > width:
        listed = [cut(one, max(6, width // len(listed) - 3)) for one in listed]
    return "   ".join(listed)


def place(x: Any) -> Any:
    """The position of a value on the x axis; of a window, its start."""
    if isinstance(x, dict) and x:
        return place(next(iter(x.values())))
    return float(x) if isinstance(x, Decimal) else x


def is_number(y: Any) -> bool:
    return isinstance(y, (int, float, Decimal)) and not isinstance(y, bool) and math.isfinite(y)


def _figure(width: int, height: int, least: int = 5) -> Any:
    import plotext

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(False, False)
    plotext.plotsize(max(width, 20), max(height, least))
    return plotext


Line = list[tuple[float, float]]


def _by_name(points: list[Point], names: list[Any]) -> dict[Any, Line]:
    """The places of the points of each line, in the order of x."""
    lines: dict[Any, Line] = {name: [] for name in names}
    for x, y, name in points:
        lines[name].append((x, float(y)))
    for name, line in lines.items():
        line.sort(key=lambda point: point[0])
        lines[name] = line[:: max(1, len(line) // POINTS)]
    return lines


def _lines(lines: dict[Any, Line], width: int, height: int, timed: bool) -> str:
    figure = _figure(width, height)
    for marker, line in zip(MARKERS, lines.values(), strict=False):
        figure.plot(*zip(*line, strict=True), marker="braille" if len(lines) == 1 else marker)
    values = [y for line in lines.values() for _, y in line]
    whole = all(y.is_integer() for y in values)
    figure.yticks(*_ticks(min(values), max(values), max(2, height // 4), whole=whole))
    _label_x(figure, lines, width, timed)
    return str(figure.build())


def _dense(points: list[Point], names: list[Any], width: int) -> bool:
    """Whether several lines have so many points that they would hide one another."""
    places = len({x for x, _, _ in points})
    return len(names) > 1 and places * DENSE > width and len(points) > places


def _panels(lines: dict[Any, Line], width: int, height: int, timed: bool) -> str:
    """A plot for each line, one above another with the same axes; that of x is below the last one."""
    panel_height = (height - 2) // len(lines)
    at = [x for line in lines.values() for x, _ in line]
    values = [y for line in lines.values() for _, y in line]
    low, high, whole = min(values), max(values), all(y.is_integer() for y in values)
    drawn = []
    for number, (name, line) in enumerate(lines.items(), 1):
        last = number == len(lines)
        figure = _figure(width, panel_height - 1 + (2 if last else 0), least=1)
        figure.plot(*zip(*line, strict=True), marker="braille")
        figure.xlim(min(at), max(at))
        figure.xaxes(last, False)
        figure.yaxes(True, False)
        figure.ylim(low, high)
        figure.yticks([low, high], [f"{y:,.0f}" if whole else f"{y:,.4g}" for y in (low, high)])
        if last:
            _label_x(figure, lines, width, timed)
        else:
            figure.xticks([])
        drawn.append(f"{cut(visible(short(name)), width)}\n" + str(figure.build()).rstrip("\n"))
    return "\n".join(drawn)


def _label_x(figure: Any, lines: dict[Any, Line], width: int, timed: bool) -> None:
    at = [x for line in lines.values() for x, _ in line]
    if timed:
        low, high = min(at), max(at)
        ticks, step = _time_ticks(low, high, max(2, min(6, width // 14)))
        figure.xticks(ticks, [_time_label(t, high - low, step) for t in ticks])
    else:
        figure.xticks(*_ticks(min(at), max(at), max(2, width // 14)))


def _ticks(low: float, high: float, count: int, *, whole: bool = False) -> tuple[list[float], list[str]]:
    """(places, labels) of about so many round numbers; of whole ones for values that are whole."""
    step = max((high - low) / max(count, 1) or abs(low) or 1.0, float(whole))
    size = 10.0 ** math.floor(math.log10(step))
    step = next(f * size for f in (1, 2, 5, 10) if f * size >= step * 0.999)
    first = math.ceil(low / step - 1e-9)
    places = [(first + i) * step for i in range(int((high - first * step) / step + 1e-9) + 1)] or [low]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return places, [f"{place:,.{digits}f}" for place in places]


_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_TIME_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY * ten for ten in (1, 10, 100, 1_000) for n in (1, 2, 5)),
)
"""The seconds between the labels of an axis of times."""


def _time_ticks(low: float, high: float, most: int) -> tuple[list[float], float]:
    """(places of so many round times at most, the seconds between them); the ends where there are no two."""
    step = next((step for step in _TIME_STEPS if (high - low) // step < most), _TIME_STEPS[-1])
    first = math.ceil(low / step) * step
    places = [float(place) for place in range(first, math.floor(high) + 1, step)]
    return (places, step) if len(places) > 1 else (sorted({low, high}), 1)


def _on_axis(x: Any) -> float:
    """A number, or the seconds since 1970 of a date or time, taken as UTC."""
    if isinstance(x, dt.datetime):
        return x.replace(tzinfo=dt.UTC).timestamp()
    if isinstance(x, dt.date):
        return dt.datetime(x.year, x.month, x.day, tzinfo=dt.UTC).timestamp()
    return float(x)


def _time_label(seconds: float, span: float, step: float) -> str:
    """The label of a time on an axis of so many seconds, with a label at each step."""
    at = dt.datetime.fromtimestamp(seconds, dt.UTC)
    if step >= _DAY or span > 3 * _DAY:
        return at.strftime("%Y-%m-%d")
    return at.strftime("%m-%d %H:%M" if span > _DAY else "%H:%M" if step >= _MINUTE else "%H:%M:%S")


def _bars(points: list[Point], width: int, height: int) -> list[str]:
    """A bar of each of the largest values, the largest on top, with the value behind it. Bars of negative
    values end where those of positive ones begin.
    """
    largest = sorted(points, key=lambda p: float(p[1]), reverse=True)[: max(1, height)]
    names = [visible(short(x) if n is None else f"{short(x)} {short(n)}") for x, _, n in largest]
    names = [cut(name, max(8, width // 3)) for name in names]
    values = [value for (value,) in texts([(y,) for _, y, _ in largest])]
    numbers = [float(y) for _, y, _ in largest]
    label = max(map(cells, names))
    low, high = min(0.0, *numbers), max(0.0, *numbers)
    scale = max(1, width - label - max(map(len, values)) - 3) / (high - low or 1.0)
    zero = round(-low * scale)
    lines = []
    for name, value, number in zip(names, values, numbers, strict=True):
        whole, part = divmod(round(number * scale * 8), 8)
        length = min(zero, round(-number * scale))
        bar = " " * zero + "█" * whole + _EIGHTHS[part] if number >= 0 else f"{'█' * length:>{zero}}"
        lines.append(f"{name}{' ' * (label - cells(name))} │{bar} {value}")
    return lines


_EIGHTHS = ("", *"▏▎▍▌▋▊▉")
