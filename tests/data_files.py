"""Files that a stream reads."""

from __future__ import annotations

from pathlib import Path


def put_whole(file: Path, text: str) -> None:
    """Write a new file whole: a query that runs would read a part of its rows, or none, and a file is read once."""
    aside = file.with_name(f".{file.name}.aside")
    aside.write_text(text)
    aside.rename(file)
