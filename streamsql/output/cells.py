"""Converts values to text. Values are not altered: strings are not parsed, and of numbers only the endless
fractions of a column of floats are rounded, for a reader; files have every digit.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from streamsql.errors import cells
from streamsql.language.python_values import Pairs
from streamsql.output.control_characters import ESCAPED
from streamsql.results import unique_names

NULL = "NULL"


def text(value: Any, *, null: str = NULL) -> str:
    """A value for a reader: NULL for None, {name: value} for structs, [a, b] for arrays."""
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, Pairs)):
        return "{" + ", ".join(f"{_inner(k)}: {_inner(v)}" for k, v in value.items()) + "}"
    if hasattr(value, "asDict"):
        return text(_fields(value))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_inner, value)) + "]"
    if isinstance(value, (bytes, bytearray)):
        return "0x" + bytes(value).hex()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.timedelta):
        return _interval(value)
    if isinstance(value, dt.time):
        return str(value).rstrip("0") if value.microsecond else str(value)
    return moments([value])[0] if isinstance(value, dt.datetime) else str(value)


def _inner(value: Any) -> str:
    """A value inside of another one, where an empty text would not be seen."""
    return text(value) if value != "" else "''"


def moments(values: Iterable[dt.datetime]) -> list[str]:
    """Times as Spark casts them to texts: with as many digits of a second as each needs."""
    return [s.rstrip("0") if len(s) == IN_FULL else s for s in map(str, values)]


IN_FULL = len("2024-01-01 00:00:00.000000")


def _interval(value: dt.timedelta) -> str:
    """An interval as PostgreSQL and DuckDB write it: 2 days 03:00:00."""
    sign, positive = ("-", -value) if value < dt.timedelta(0) else ("", value)
    days, clock = positive.days, positive - dt.timedelta(positive.days)
    parts = [f"{sign}{days} day{'s' * (days != 1)}"] * bool(days)
    if clock or not days:
        written, _, fraction = str(clock).partition(".")
        parts.append(f"{sign}{written:0>8}" + f".{fraction.rstrip('0')}" * bool(fraction))
    return " ".join(parts)


def texts(rows: Iterable[Sequence[Any]], *, null: str = NULL) -> list[list[str]]:
    """The values of rows for a table: the floats and times of a column have as many digits as it needs."""
    rows = list(rows)
    columns = [_column(column, null) for column in zip(*rows, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in rows]


def _column(values: Sequence[Any], null: str) -> list[str]:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {float}:
        return _floats(values, null)
    if kinds == {dt.datetime}:
        return _times(values, null)
    return [text(value, null=null) for value in values]


def _floats(values: Sequence[float | None], null: str) -> list[str]:
    """Numbers without the noise of the 16th and 17th digit; short fractions have equal length, and endless
    ones, such as those of an average, ROUNDED digits.
    """
    short = [null if v is None else format(v, ".15g") for v in values]
    if any(v is not None and ("e" in s or "n" in s) for s, v in zip(short, values, strict=True)):
        return [text(v, null=null) for v in values]
    if any(v is not None and _is_endless(s) for s, v in zip(short, values, strict=True)):
        return [s if v is None else _rounded(v, s) for s, v in zip(short, values, strict=True)]
    digits = max((len(s.partition(".")[2]) for s, v in zip(short, values, strict=True) if v is not None))
    if digits > ALIGNED:
        return [s if v is None or "." in s else f"{s}.0" for s, v in zip(short, values, strict=True)]
    return [s if v is None else f"{v:.{max(digits, 1)}f}" for s, v in zip(short, values, strict=True)]


def _is_endless(short: str) -> bool:
    """Whether a number has all 15 digits that a float can have, some of them behind the point."""
    return "." in short and len(short.lstrip("-0.").replace(".", "")) >= 14


def _rounded(value: float, short: str) -> str:
    """A number with ROUNDED digits behind the point; a small one with so many that are not zero."""
    if value and abs(value) < 0.1:
        return short if len(short.lstrip("-0.")) <= ROUNDED else f"{value:#.{ROUNDED}g}"
    whole = len(short.lstrip("-").partition(".")[0])
    return f"{value:.{max(1, min(ROUNDED, 15 - whole))}f}"


def _times(values: Sequence[dt.datetime | None], null: str) -> list[str]:
    """Times with as many digits of a second as the one with the most."""
    digits = max(len(f"{v.microsecond:06}".rstrip("0")) for v in values if v is not None)
    if not digits:
        return [text(v, null=null) for v in values]
    zero = [null if v is None else v.isoformat(" ", "microseconds") for v in values]
    return [z if v is None else z[: 20 + digits] + z[26:] for z, v in zip(zero, values, strict=True)]


def short(value: Any, *, null: str = NULL) -> str:
    """A value for a reader, a float without the digits of an endless fraction."""
    return _floats([value], null)[0] if type(value) is float else text(value, null=null)


ROUNDED = 6
"""The digits of endless fractions, such as averages."""
ALIGNED = 4
"""Fractions of up to so many digits are padded to the same length."""


def plain(value: Any) -> Any:
    """A value for JSON. A decimal that a JSON number would alter becomes a string."""
    if value is None or isinstance(value, (int, str)):  # a bool is an int
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, Decimal):
        near = float(value)
        return near if Decimal(repr(near)) == value else format(value, "f")
    if isinstance(value, dict):
        return {text(k): plain(v) for k, v in value.items()}
    if isinstance(value, Pairs):
        names = unique_names(text(k) for k, _ in value.pairs)
        return {name: plain(v) for name, (_, v) in zip(names, value.pairs, strict=True)}
    if hasattr(value, "asDict"):
        return plain(_fields(value))
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return text(value)


def _fields(row: Any) -> dict[str, Any]:
    """The fields of a row of Spark, including those with equal names."""
    return dict(zip(unique_names(row.__fields__), row, strict=True))


def json_text(value: Any) -> str:
    """A value that `plain` returned as JSON; control characters are escaped."""
    written = _ENCODER.encode(value)
    if written.isprintable():
        return written
    return ESCAPED.sub(lambda m: f"\\u{ord(m.group()):04x}", written)


_ENCODER = json.JSONEncoder(ensure_ascii=False)


def cut(value: str, limit: int) -> str:
    """A text cut to `limit` cells, with … at its end; 0 for no limit."""
    if not limit or cells(value) <= limit:
        return value
    # Visible characters take at least one cell, combining ones take none: keep more characters than cells.
    short = value[: limit * 8]
    while short and cells(short) > limit - 1:
        over = cells(short) - limit + 1
        short = short[: -max(1, over // 2)]
    return short.rstrip("\u200d") + "…"
