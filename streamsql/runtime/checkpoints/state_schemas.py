"""Reads the schema files of state stores without Spark (its SchemaHelper, versions 1 to 3): Spark's JSON
schemas in Java's binary strings.
"""

from __future__ import annotations

import json
from typing import Any


class _Binary:
    """The part of Java's DataInputStream that the schema files use. Raises IndexError at the end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self._take(size), "big")

    def text(self) -> str:
        # Java's modified UTF-8 encodes a character beyond U+FFFF as two surrogates.
        raw = self._take(self.number(2)).replace(b"\xc0\x80", b"\0")
        return raw.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16")

    def long_text(self) -> str:
        return "".join(self.text() for _ in range(self.number()))

    def _take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        if len(taken) < size:
            raise IndexError
        self.at += size
        return taken


def read_schemas(data: bytes) -> tuple[tuple[str, str, str], ...]:
    """(column family, key, value) of a file of state schemas. Raises ValueError or IndexError."""
    source = _Binary(data)
    version = source.text()
    if version not in ("v1", "v2", "v3"):
        raise ValueError
    if version != "v3":
        read = source.text if version == "v1" else source.long_text
        return (("default", columns_text(read()), columns_text(read())),)
    start = source.at
    try:
        return _families(source, numbered=True)
    except (ValueError, IndexError):
        source.at = start  # written by Spark 4.0
        return _families(source, numbered=False)


def _families(source: _Binary, *, numbered: bool) -> tuple[tuple[str, str, str], ...]:
    """The column families of schema version 3. numbered: each schema follows a number of two bytes."""

    def schema() -> str:
        if numbered:
            source.number(2)
        return columns_text(source.long_text())

    families = []
    for _ in range(source.number()):
        families.append((source.text(), schema(), schema()))
        source.long_text()  # how the key is encoded
        source.long_text()  # the schema of a map's own key
    return tuple(families)


def columns_text(schema: str) -> str:
    """A schema in Spark's JSON as `name type, …`, with SQL types."""
    return ", ".join(
        f"{f['name']} {type_text(f['type'])}"
        for f in json.loads(schema)["fields"]
        if f["name"] != "__dummy__"
    )


def type_text(kind: Any) -> str:
    """A type in Spark's JSON as a SQL type."""
    if isinstance(kind, str):
        return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(kind, kind)
    inner = kind.get("type")
    if inner == "struct":
        fields = ", ".join(f"{f['name']}: {type_text(f['type'])}" for f in kind["fields"])
        return f"struct<{fields}>"
    if inner == "array":
        return f"array<{type_text(kind['elementType'])}>"
    if inner == "map":
        return f"map<{type_text(kind['keyType'])}, {type_text(kind['valueType'])}>"
    return str(kind.get("class", inner)) if inner == "udt" else str(inner)
