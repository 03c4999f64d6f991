"""The text of a type: its capitals, and the fields of a STRUCT."""

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
