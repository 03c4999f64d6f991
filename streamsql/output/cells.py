"""One value to text. Nothing is altered: no rounding, no guessing of numbers in texts."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from typing import Any

from streamsql.errors import cells
from streamsql.results import unique_names

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
        return text(_fields(value))
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
        return plain(_fields(value))
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.isoformat(" ") if isinstance(value, dt.datetime) else text(value)


def _fields(row: Any) -> dict[str, Any]:
    """The fields of a row of Spark, those with the same name too."""
    return dict(zip(unique_names(row.__fields__), row, strict=True))


def json_text(value: Any) -> str:
    """A value as JSON; what could steer a terminal is escaped, as JSON does."""
    return _HIDDEN.sub(lambda m: f"\\u{ord(m.group()):04x}", json.dumps(plain(value), ensure_ascii=False))


# Control characters, ANSI escapes among them, what turns the direction of writing (it can make a
# text look like another), line ends of Unicode, and halves of characters, which cannot be written.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _shown(found: re.Match[str]) -> str:
    character = found.group()
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def visible(value: str) -> str:
    """A text in one line in which nothing steers the terminal: such characters are written as \\n, \\x1b.

    A text that has none stays as it is; in one that has, backslashes are doubled, to tell them apart.
    """
    if value.isprintable() or not _HIDDEN.search(value):
        return value
    return _HIDDEN.sub(_shown, value.replace("\\", "\\\\"))


def harmless(value: str) -> str:
    """A text of several lines for a terminal: line ends and tabs stay, other control characters are
    written as in `visible`.
    """
    return _HIDDEN.sub(lambda m: m.group() if m.group() in "\n\t" else _shown(m), value)


def cut(value: str, limit: int) -> str:
    """A text of at most `limit` cells, 0 for no limit; one that is longer ends in …"""
    if not limit or cells(value) <= limit:
        return value
    # No character that is seen is narrower than a cell, but combining ones are: leave room for them.
    kept = value[: limit * 8]
    while kept and cells(kept) > limit - 1:
        over = cells(kept) - limit + 1
        kept = kept[: -max(1, over // 2)]
    return kept.rstrip("\u200d") + "…"
