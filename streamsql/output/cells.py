"""Converts values to text. Values are not altered: numbers are not rounded, strings not parsed."""

from __future__ import annotations

import datetime as dt
import json
import textwrap
from decimal import Decimal
from typing import Any

from streamsql.errors import cells
from streamsql.output.control_characters import ESCAPED
from streamsql.results import unique_names

NULL = "NULL"


def text(value: Any, *, null: str = NULL) -> str:
    """A value for a reader: NULL for None, {name: value} for structs, [a, b] for arrays."""
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(k)}: {text(v)}" for k, v in value.items()) + "}"
    if hasattr(value, "asDict"):
        return text(_fields(value))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text(v) for v in value) + "]"
    if isinstance(value, (bytes, bytearray)):
        return "0x" + bytes(value).hex()
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)


def plain(value: Any) -> Any:
    """A value for JSON. A decimal that a JSON number would alter becomes a string."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, Decimal):
        near = float(value)
        return near if Decimal(repr(near)) == value else format(value, "f")
    if isinstance(value, dict):
        return {text(k): plain(v) for k, v in value.items()}
    if hasattr(value, "asDict"):
        return plain(_fields(value))
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.isoformat(" ") if isinstance(value, dt.datetime) else text(value)


def _fields(row: Any) -> dict[str, Any]:
    """The fields of a row of Spark, including those with equal names."""
    return dict(zip(unique_names(row.__fields__), row, strict=True))


def json_text(value: Any) -> str:
    """A value as JSON; control characters are escaped."""
    return ESCAPED.sub(lambda m: f"\\u{ord(m.group()):04x}", json.dumps(plain(value), ensure_ascii=False))


def cut(value: str, limit: int) -> str:
    """A text cut to `limit` cells, with … at its end; 0 for no limit."""
    if not limit or cells(value) <= limit:
        return value
    # Visible characters take at least one cell, combining ones take none: keep more characters than cells.
    kept = value[: limit * 8]
    while kept and cells(kept) > limit - 1:
        over = cells(kept) - limit + 1
        kept = kept[: -max(1, over // 2)]
    return kept.rstrip("\u200d") + "…"


def wrap(value: object, room: int) -> list[str]:
    """A long value as lines of at most `room` characters."""
    lines = str(value).split("\n")
    return [p for line in lines for p in textwrap.wrap(line, max(room, 20), drop_whitespace=False) or [""]]
