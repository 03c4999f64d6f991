"""The text of a type: its capitals, the fields of a STRUCT, and whether another type has all its values."""

from __future__ import annotations

import re

_TYPE_WORD = re.compile(r"(?<![\w`])\w+(?!\w|:|`)")


def in_capitals(type_text: str) -> str:
    """A type of Spark's simpleString as SQL writes it: STRUCT<a: INT>."""
    return _TYPE_WORD.sub(lambda word: word[0].upper(), type_text).replace(":", ": ").replace(",", ", ")


def struct_fields(type_text: str) -> list[tuple[str, str]]:
    """(name, type) of each field of `STRUCT<a: INT, b: STRING>`; [] for other types."""
    text = type_text.strip()
    if not text.upper().startswith("STRUCT<"):
        return []
    fields: list[tuple[str, str]] = []
    depth, start = 0, 7
    for at in range(7, len(text)):
        depth += (text[at] in "<(") - (text[at] in ">)")
        if (text[at] == "," and depth == 0) or depth < 0:
            name, _, kind = text[start:at].strip().replace(":", " ", 1).partition(" ")
            fields.append((name.strip("`"), kind.strip()))
            start = at + 1
        if depth < 0:
            break
    return [(name, kind) for name, kind in fields if name]


_WIDER = {
    "tinyint": ("smallint", "int", "bigint"),
    "smallint": ("int", "bigint"),
    "int": ("bigint",),
    "float": ("double",),
}
"""A type, and those that have each of its values."""
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def is_wider(old: str, new: str) -> bool:
    """Whether a type has all values of another: numbers of more digits, structs with more fields."""
    old, new = (text.casefold().replace(" ", "") for text in (old, new))
    if old == new or new in _WIDER.get(old, ()):
        return True
    digits = [_DECIMAL.fullmatch(text) for text in (old, new)]
    if digits[0] and digits[1]:
        (whole, scale), (wide, long) = ((int(d[1]) - int(d[2]), int(d[2])) for d in digits if d)
        return wide >= whole and long >= scale
    arrays = [text[len("array<") : -1] for text in (old, new) if text.startswith("array<")]
    if len(arrays) == 2:
        return is_wider(*arrays)
    fields = dict(struct_fields(new))
    return (
        bool(fields)
        and bool(struct_fields(old))
        and all(name in fields and is_wider(kind, fields[name]) for name, kind in struct_fields(old))
    )
