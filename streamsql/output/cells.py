"""One value to text. Nothing is altered: no rounding, no guessing of numbers in texts."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

NULL = "NULL"


def text(value: Any, *, null: str = NULL) -> str:
    """A value as a person reads it: NULL for None, {name: value} for structs, [a, b] for arrays."""
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(k)}: {text(v)}" for k, v in value.items()) + "}"
    if hasattr(value, "asDict"):
        return text(value.asDict())
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text(v) for v in value) + "]"
    if isinstance(value, (bytes, bytearray)):
        return "0x" + bytes(value).hex()
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)


def plain(value: Any) -> Any:
    """A value as JSON has it. A decimal that a JSON number would alter becomes a text."""
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
        return plain(value.asDict())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.isoformat(" ") if isinstance(value, dt.datetime) else text(value)


def json_text(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False)
