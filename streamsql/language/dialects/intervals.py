"""Intervals of other consoles in Spark's words."""

from __future__ import annotations

import re

from streamsql.language.tokens import quote

_UNITS = {
    "us": "microsecond", "ms": "millisecond", "msec": "millisecond", "s": "second", "sec": "second",
    "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week", "mon": "month",
    "y": "year", "yr": "year",
}  # fmt: skip
"""Units of PostgreSQL's intervals that Spark does not know, without an s at their end."""
_AMOUNT = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_CLOCK = re.compile(r"(\d+:\d\d)(:\d\d(?:\.\d+)?)?")
_PARTS = ("year", "month", "week", "day", "hour", "minute", "second")
_SPARKS = frozenset((*_PARTS, "millisecond", "microsecond"))


def interval(value: str, *, signed: bool) -> str | None:
    """The interval of a text such as `5 min`, `1h 30m`, `01:30` or, behind a sign, `1 month 2 days`; None
    for a text that is none.
    """
    clock = _CLOCK.fullmatch(value.strip())
    if clock:
        return f"INTERVAL {quote(clock[1] + (clock[2] or ':00'))} HOUR TO SECOND"
    amounts = [(number, _unit(unit)) for number, unit in _AMOUNT.findall(value)]
    if not amounts or _AMOUNT.sub("", value).strip() or not {unit for _, unit in amounts} <= _SPARKS:
        return None
    by_part = {unit: number for number, unit in amounts}
    months = {"year", "month"}
    if not months.isdisjoint(by_part) and not by_part.keys() <= months:
        if not signed or not by_part.keys() <= set(_PARTS):
            return None  # alone it is of a type that no row of a result can have
        last = max(_PARTS.index(part) for part in by_part)
        return f"make_interval({', '.join(by_part.get(part, '0') for part in _PARTS[: last + 1])})"
    listed = " ".join(f"{number} {unit}{'s' * (number != '1')}" for number, unit in amounts)
    return f"INTERVAL {quote(listed)}"


def _unit(written: str) -> str:
    unit = written.casefold()
    short = unit if unit in _UNITS else unit.removesuffix("s")
    return _UNITS.get(short, short)
