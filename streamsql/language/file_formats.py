"""The formats of files, as their names tell them."""

from __future__ import annotations

import re

_NAMED = re.compile(r".+\.(?P<format>csv|tsv|json|jsonl|ndjson|parquet|orc|avro|txt)(\.gz)?", re.IGNORECASE)
_READ_BY = {"tsv": "csv", "jsonl": "json", "ndjson": "json", "txt": "text"}


def extension(path: str) -> str:
    """The extension of the name of a file, in lower case, if it tells a format; else ""."""
    named = _NAMED.fullmatch(path)
    return named["format"].casefold() if named else ""


def read_by(path: str) -> str:
    """The connector (and format of Spark) that reads files of such a name; "" if the name does not tell."""
    kind = extension(path)
    return _READ_BY.get(kind, kind)
