"""Intervals of other consoles in Spark's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from streamsql.language.other_edits import Edit
from streamsql.language.token_groups import closing, items_of
from streamsql.language.tokens import Token, quote, unquote


def interval_edits(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """All edits of the intervals of a statement, in any order."""
    for edits in (_intervals, _mixed_intervals, _window_intervals, _enclosed):
        yield from edits(text, tokens)


_UNITS = {
    "us": "microsecond", "ms": "millisecond", "msec": "millisecond", "s": "second", "sec": "second",
    "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week", "mon": "month",
    "y": "year", "yr": "year",
}  # fmt: skip
"""Units of PostgreSQL's intervals that Spark does not know, without an s at their end."""
_SPARKS_UNITS = frozenset("second minute hour day week month year millisecond microsecond".split())
_AMOUNT = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_CLOCK = re.compile(r"\d+:\d\d(:\d\d(\.\d+)?)?")


def _intervals(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """'5 min'::interval, interval '5 min' and now() - '5 minutes' of PostgreSQL."""
    for at in range(len(tokens) - 1):
        token = tokens[at]
        behind = [t.upper for t in tokens[at + 1 : at + 3]]
        cast = token.kind == "string" and behind == ["::", "INTERVAL"]
        written = token.upper == "INTERVAL" and tokens[at + 1].kind == "string"
        signed = token.text in ("+", "-") and tokens[at + 1].kind == "string" and at > 0
        signed = signed and behind[1:] != ["::"] and not _mixed_interval(unquote(tokens[at + 1]))
        if signed and _is_interval(unquote(tokens[at + 1])):
            yield tokens[at + 1].start, tokens[at + 1].start, "INTERVAL "
        if not cast and not written:
            continue
        value = unquote(token if cast else tokens[at + 1])
        own = "" if _mixed_interval(value) else _interval(value)
        clock = bool(_CLOCK.fullmatch(own))
        if own and (cast or (own != value and not clock)):
            unit = " HOUR TO SECOND" if clock else ""
            yield token.start, tokens[at + 2 if cast else at + 1].end, f"INTERVAL {quote(own)}{unit}"


def _is_interval(value: str) -> bool:
    """Whether a text beside a sign is an interval, with units that Spark has."""
    units = [m[2].casefold().removesuffix("s") for m in _AMOUNT.finditer(value)]
    return bool(units) and not _AMOUNT.sub("", value).strip() and set(units) <= _SPARKS_UNITS


def _interval(value: str) -> str:
    """The text of an interval with Spark's units; "" for one that Spark does not have."""
    if _CLOCK.fullmatch(value.strip()):
        return value.strip() if value.count(":") == 2 else f"{value.strip()}:00"
    if not value.strip() or _AMOUNT.sub("", value).strip():
        return ""

    def own(match: re.Match[str]) -> str:
        unit = match[2].casefold()
        short = unit if unit in _UNITS else unit.removesuffix("s")
        return f"{match[1]} {_UNITS[short]}s" if short in _UNITS else match[0]

    return _AMOUNT.sub(own, value)


_PARTS = ("year", "month", "week", "day", "hour", "minute", "second")


def _mixed_interval(value: str) -> str:
    """`1 month 2 days` as make_interval(0, 1, 0, 2); "" where Spark takes the text, months or days alone."""
    amounts = {m[2].casefold().removesuffix("s"): m[1] for m in _AMOUNT.finditer(value)}
    if {"year", "month"}.isdisjoint(amounts) or amounts.keys() <= {"year", "month"}:
        return ""
    if not amounts.keys() <= set(_PARTS) or _AMOUNT.sub("", value).strip():
        return ""
    last = max(_PARTS.index(part) for part in amounts)
    return f"make_interval({', '.join(amounts.get(part, '0') for part in _PARTS[: last + 1])})"


def _mixed_intervals(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """+ INTERVAL '1 month 2 days' and + '1 month 2 days'::interval of PostgreSQL."""
    for at in range(1, len(tokens) - 1):  # alone it is of a type that no row of a result can have
        behind = [t.upper for t in tokens[at + 1 : at + 3]]
        if tokens[at].upper == "INTERVAL" and tokens[at + 1].kind == "string":
            value, last = tokens[at + 1], tokens[at + 1]
        elif tokens[at].kind == "string" and behind == ["::", "INTERVAL"]:
            value, last = tokens[at], tokens[at + 2]
        else:
            continue
        own = _mixed_interval(unquote(value))
        if own and tokens[at - 1].text in ("+", "-"):
            yield tokens[at].start, last.end, own


_WINDOWS = frozenset(("WINDOW", "SESSION_WINDOW"))


def _window_intervals(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """window(ts, INTERVAL 10 MINUTES) and window(ts, INTERVAL '10' MINUTES): Spark takes a text there."""
    for at in range(len(tokens) - 1):
        if tokens[at].upper not in _WINDOWS or tokens[at + 1].text != "(":
            continue
        items = list(items_of(list(tokens[at + 2 : closing(tokens, at + 1)])))
        for item in items[1:]:
            amount = unquote(item[1]) if len(item) > 1 and item[1].kind in ("number", "string") else ""
            if amount and item[0].upper == "INTERVAL" and len(item) in (2, 3):
                unit = f" {item[2].text}" if len(item) == 3 else ""
                yield item[0].start, item[-1].end, quote(f"{amount}{unit}".lower())


def _enclosed(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """INTERVAL (3) DAYS of DuckDB."""
    for at in range(1, len(tokens) - 3):
        signs = [t.text for t in tokens[at : at + 3]]
        if tokens[at - 1].upper == "INTERVAL" and signs[::2] == ["(", ")"] and signs[1].isdigit():
            yield tokens[at - 1].end, tokens[at + 2].end, f" {signs[1]}"
