"""Rows as a plot in a terminal: lines over numbers and times, bars over texts. Pure functions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from streamsql.output.cells import text
from streamsql.output.control_characters import visible

MARKERS = ("•", "x", "o", "+", "*", "#", "@", "=")
POINTS = 2_000
"""The largest number of points of a line; a terminal shows fewer."""


def chart(rows: Sequence[tuple[Any, Any, Any]], width: int, height: int, title: str = "") -> list[str]:
    """A plot of (x, y, name of the line or None) as lines of text, width cells wide, height lines high.

    x: a number, date, time, or a window (placed at its start); other types are drawn as bars. Rows without
    x or y are omitted.
    """
    points = [(place(x), y, name) for x, y, name in rows if x is not None and is_number(y)]
    if not points:
        return [title, "(no rows to draw yet)"][not title :]
    if all(isinstance(x, (int, float, dt.datetime, dt.date)) for x, _, _ in points):
        drawn = _lines(points, width, height, title)
    else:
        drawn = _bars(points, width, height, title)
    return [line.removesuffix("\x1b[0m").rstrip() for line in drawn.rstrip("\n").split("\n")]


def place(x: Any) -> Any:
    """The position of a value on the x axis; of a window, its start."""
    if isinstance(x, dict) and x:
        return place(next(iter(x.values())))
    return float(x) if isinstance(x, Decimal) else x


def is_number(y: Any) -> bool:
    return isinstance(y, (int, float, Decimal)) and not isinstance(y, bool) and y == y


def _figure(width: int, height: int, title: str) -> Any:
    import plotext

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(False, False)
    plotext.plotsize(max(width, 20), max(height, 6))
    if title:
        plotext.title(visible(title))
    return plotext


def _lines(points: list[tuple[Any, Any, Any]], width: int, height: int, title: str) -> str:
    figure = _figure(width, height, title)
    lines: dict[Any, list[tuple[float, float]]] = {}
    for x, y, name in points:
        lines.setdefault(name, []).append((_on_axis(x), float(y)))
    for number, (name, line) in enumerate(lines.items()):
        line.sort(key=lambda point: point[0])
        line = line[:: max(1, len(line) // POINTS)]
        marker = "braille" if len(lines) == 1 else MARKERS[number % len(MARKERS)]
        label = None if name is None else visible(text(name))
        figure.plot([x for x, _ in line], [y for _, y in line], marker=marker, label=label)
    if isinstance(points[0][0], (dt.datetime, dt.date)):
        at = [x for line in lines.values() for x, _ in line]
        low, high = min(at), max(at)
        count = max(2, min(6, width // 20)) if high > low else 1
        ticks = [low + (high - low) * i / max(count - 1, 1) for i in range(count)]
        figure.xticks(ticks, [_time_label(t, high - low) for t in ticks])
    return str(figure.build())


def _on_axis(x: Any) -> float:
    """A number, or the seconds since 1970 of a date or time, taken as UTC."""
    if isinstance(x, dt.datetime):
        return x.replace(tzinfo=dt.UTC).timestamp()
    if isinstance(x, dt.date):
        return dt.datetime(x.year, x.month, x.day, tzinfo=dt.UTC).timestamp()
    return float(x)


def _time_label(seconds: float, span: float) -> str:
    at = dt.datetime.fromtimestamp(seconds, dt.UTC)
    if span > 3 * 86_400:
        return at.strftime("%Y-%m-%d")
    return at.strftime("%m-%d %H:%M" if span > 86_400 else "%H:%M" if span > 3_600 else "%H:%M:%S")


def _bars(points: list[tuple[Any, Any, Any]], width: int, height: int, title: str) -> str:
    """A bar chart of as many of the largest values as fit, the largest on top."""
    largest = sorted(points, key=lambda p: float(p[1]), reverse=True)[: max(1, (height - 3) // 2)]
    names = [visible(text(x) if n is None else f"{text(x)} {text(n)}") for x, _, n in largest]
    names = [n if len(n) <= width // 3 else n[: width // 3 - 1] + "…" for n in names]
    figure = _figure(width, height, title)
    figure.bar(names[::-1], [float(y) for _, y, _ in largest][::-1], orientation="horizontal", width=0.3)
    return str(figure.build())
