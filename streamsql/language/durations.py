"""Durations, as written in SQL and as Spark expects them."""

from __future__ import annotations

import re
from decimal import Decimal

from streamsql.errors import RuleFault, Span, SyntaxFault, did_you_mean
from streamsql.language.grammar import Node
from streamsql.language.tokens import tokenize

_INTERVAL = re.compile(r"^\s*interval\s+", re.IGNORECASE)
_DURATION = re.compile(r"\s*+([-+]?\s*+(?:\d++(?:\.\d*+)?+|\.\d++))\s*+([A-Za-zµ]++)")


def _duration_pairs(text: str) -> list[tuple[str, str]]:
    """The number and unit of each part of a duration; empty if the text is not a duration."""
    pairs, at = [], 0
    while part := _DURATION.match(text, at):
        pairs.append((part.group(1).replace(" ", ""), part.group(2)))
        at = part.end()
    return pairs if not text[at:].strip() else []


def duration_of(node: Node, *, time: str = "") -> str:
    """A Duration node as Spark's interval text: `10 minutes`. Raises RuleFault for months and negative
    durations: a watermark delay or trigger interval has a fixed length (Spark guide, withWatermark).
    time: the event time of a window, if the duration is the length of one.
    """
    interval = node.get("Interval")
    if node.has("NumberPart"):
        text = " ".join(_interval_part(p) for p in node.all("NumberPart"))
    elif interval is None:
        text = node.text("String")
    elif interval.has("String"):
        text = interval.text("String")
    else:
        text = " ".join(_interval_part(p) for p in interval.all("IntervalPart"))
    text = _INTERVAL.sub("", text.strip())
    pairs = _duration_pairs(text)
    if not pairs:
        raise SyntaxFault(
            f"'{text}' is not a duration",
            hint="write INTERVAL 10 MINUTES, or '10 minutes'",
            span=node.span,
            code="BAD_DURATION",
        )
    _check_duration(pairs, node, time)
    return " ".join(_as_spark_reads(number, unit) for number, unit in pairs)


def _check_duration(pairs: list[tuple[str, str]], node: Node, time: str) -> None:
    _check_units(pairs, node.span, "")
    if sum(float(number) * _SECONDS[_unit(unit)] for number, unit in pairs) < 0:
        raise RuleFault(
            "a delay cannot be negative", hint="write 0 seconds or more", span=node.span, code="BAD_DURATION"
        )
    if time:
        _check_units(pairs, node.span, "windows", _by_calendar(pairs, time))
    fixed = "watermark delays and trigger intervals"
    _check_units(pairs, node.span, fixed, "write it in days, such as INTERVAL 30 DAYS")


def _by_calendar(pairs: list[tuple[str, str]], time: str) -> str:
    """The clause that groups by months or years, which no window does."""
    years = any(_unit(unit) == "year" for _, unit in pairs)
    return f"GROUP BY date_trunc('{'YEAR' if years else 'MONTH'}', {time})"


def _check_units(pairs: list[tuple[str, str]], span: Span, what: str, hint: str = "") -> None:
    """what: that for which Spark requires a fixed length, "" if it does not; hint: what to write instead."""
    for _, unit in pairs:
        if _unit(unit) not in _SECONDS:
            raise SyntaxFault(
                f"there is no unit of time {unit}",
                hint=did_you_mean(unit, [u + "s" for u in _SECONDS])
                or "seconds, minutes, hours, days, weeks",
                span=span,
                code="BAD_DURATION",
            )
    if what and any(_unit(u) in ("month", "year") for _, u in pairs):
        raise RuleFault(
            "a month or a year has no fixed length",
            detail=f"Spark requires a fixed length for {what}",
            hint=hint,
            span=span,
            code="BAD_DURATION",
        )


def window_length(text: str, span: Span, *, session: bool, time: str = "ts") -> float | None:
    """The seconds of a literal in window() or session_window(); None for a text that is no duration, which
    Spark reads. session: months may be in it; time: the event time. Raises SyntaxFault or RuleFault for a
    unit that Spark does not read there.
    """
    pairs = _duration_pairs(_INTERVAL.sub("", text))
    if not pairs:
        return None
    _check_units(pairs, span, "" if session else "windows", _by_calendar(pairs, time))
    parts = [(f"{number} {unit}", _as_spark_reads(number, unit)) for number, unit in pairs]
    unread = next((written for written, full in parts if written.lower() != full), "")
    if unread:
        raise SyntaxFault(
            f"Spark does not read {unread} as the length of a window",
            hint=f"'{' '.join(full for _, full in parts)}'",
            span=span,
            code="BAD_DURATION",
        )
    return sum(float(number) * _SECONDS[_unit(unit)] for number, unit in pairs)


_SECONDS = {
    "microsecond": 1e-6, "millisecond": 1e-3, "second": 1, "minute": 60, "hour": 3600, "day": 86400,
    "week": 7 * 86400, "month": 31 * 86400, "year": 372 * 86400,
}  # fmt: skip
# Common abbreviations; Spark accepts only the full words.
_SHORT = {
    "us": "microsecond", "µs": "microsecond", "micro": "microsecond", "ms": "millisecond",
    "msec": "millisecond", "milli": "millisecond", "s": "second", "sec": "second", "m": "minute",
    "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week",
}  # fmt: skip


def _unit(written: str) -> str:
    """Spark's singular name for a unit; the unit itself if it is unknown."""
    name = written.lower()
    return next((_SHORT.get(n, n) for n in (name, name.removesuffix("s")) if n in {*_SHORT, *_SECONDS}), name)


def _as_spark_reads(number: str, unit: str) -> str:
    """A number and unit as Spark's interval text: full words, fractions of seconds only."""
    name = _unit(unit)
    if name != "second" and "." in number:
        fraction = f"{Decimal(number) * Decimal(str(_SECONDS[name])):f}"
        return f"{fraction.rstrip('0').rstrip('.') if '.' in fraction else fraction} seconds"
    plural = name + "s" if unit.lower() not in (name, name + "s") else unit.lower()
    return f"{number} {plural}"


def shown(duration: str) -> str:
    """A checked duration text as it is shown: INTERVAL '5' SECOND as 5 seconds."""
    parts = ((number, _unit(unit)) for number, unit in _duration_pairs(duration))
    return " ".join(f"{number} {unit}" if number == "1" else f"{number} {unit}s" for number, unit in parts)


def seconds(duration: str) -> float:
    """Length of a checked duration text, in seconds."""
    return sum(float(n) * _SECONDS[_unit(u)] for n, u in _duration_pairs(duration))


def length(text: str) -> float | None:
    """The seconds of a duration such as 7 days; None for a text that is none."""
    text = _INTERVAL.sub("", text)
    units = [_unit(unit) for _, unit in _duration_pairs(text)]
    return seconds(text) if units and all(unit in _SECONDS for unit in units) else None


def _interval_part(node: Node) -> str:
    unit = node.get("Unit")
    assert unit
    return f"{node.text('Number') or node.text('String')} {unit.parts[0].name.lower()}"


def durations_in(text: str) -> float:
    """The sum, in seconds, of all durations that a query names: lengths of windows, gaps of sessions, time
    ranges of joins.
    """
    tokens = tokenize(text, strict=False)
    total = 0.0
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.kind not in ("string", "number"):
            continue
        written = token.text.strip("'\"")
        written = _INTERVAL.sub("", written)
        if after is not None and after.kind == "word" and _unit(after.text) in _SECONDS:
            written = f"{written} {after.text}"
        pairs = _duration_pairs(written)
        if pairs and all(_unit(unit) in _SECONDS for _, unit in pairs):
            total += abs(seconds(written))
    return total
