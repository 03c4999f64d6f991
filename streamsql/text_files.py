"""Files of rows: their formats by their names, and texts, compressed where the name ends with .gz."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO, cast

PACKED = ".gz"
_ENDINGS = {"ndjson": "jsonl", "tab": "tsv", "pq": "parquet"}


def open_text(path: Path, mode: str, *, packed: bool | None = None, **options: Any) -> TextIO:
    """Open a file of text, in UTF-8 by default. mode: r or w; packed: whether it is compressed, None for what
    its name says; options: those of open, without the buffering.
    """
    if path.suffix.casefold() == PACKED if packed is None else packed:
        import gzip  # few files are

        return cast(TextIO, gzip.open(path, f"{mode}t", **{"encoding": "utf-8", **options}))
    return cast(TextIO, path.open(mode, **{"encoding": "utf-8", **options}))


def format_of(path: str) -> str:
    """The format that the ending of a path says, also before .gz, whether or not it is known; "" without
    one.
    """
    name = path.rpartition("/")[2]
    if name.casefold().endswith(PACKED) and name.count(".") > 1:
        name = name[: -len(PACKED)]
    _, dot, ending = name.rpartition(".")
    return _ENDINGS.get(ending.lower(), ending.lower()) if dot else ""
