"""Formats rows as lines without line ends. Pure functions."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from streamsql.errors import cells
from streamsql.output.cells import json_text, moments, plain, short, text
from streamsql.output.colors import BOLD, DIM, paint
from streamsql.output.control_characters import visible
from streamsql.output.document import PLAIN, Style
from streamsql.output.drawn_tables import blocks, table
from streamsql.results import Rows

SHOWN_AS_THEY_ARE = frozenset({int, float, str, dt.date})
"""The types of values whose text is that of Python."""
TIMES = frozenset({dt.datetime})


def vertical(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    """A block for each row, a line for each column."""
    names = [visible(c) for c in rows.columns]
    width = max(map(cells, names), default=0)
    labels = [n + " " * (width - cells(n)) for n in names]
    if style.color:
        labels = [paint(n, BOLD) for n in labels]
    for number, row in enumerate(rows.rows, 1):
        yield f"-[ row {number} ]" + "-" * max(0, width)
        for label, value in zip(labels, row, strict=True):
            shown = visible(short(value, null=style.null))
            yield f"{label} | {paint(shown, DIM) if style.color and value is None else shown}"


def markdown(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    def line(row: list[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|") for c in row) + " |"

    yield line([visible(c) for c in rows.columns])
    right = rows.numeric or (False,) * len(rows.columns)
    yield "|" + "|".join("---:" if r else "---" for r in right) + "|"
    for row in rows.rows:
        yield line([visible(text(v, null=style.null)) for v in row])


def csv(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    """RFC 4180; NULL is an empty field, an empty text is "".

    Without csv.writer, which in Python 3.11 writes both the same (QUOTE_NOTNULL needs 3.12).
    """
    quoted = re.compile(rf'[{re.escape(style.delimiter)}"\n\r]|\A\s|\s\Z|\A\Z').search

    def field(value: str) -> str:
        return '"' + value.replace('"', '""') + '"' if quoted(value) else value

    return _delimited(rows, style.delimiter, field, "")


def tsv(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    """Tabs between fields; \\N is NULL, and tabs and line ends in a value are escaped."""
    escaped = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
    return _delimited(rows, "\t", lambda value: value.translate(escaped), "\\N")


def _delimited(rows: Rows, delimiter: str, field: Callable[[str], str], null: str) -> Iterator[str]:
    """Lines of fields. Rows are converted many at a time, by columns. field: makes a field of a text."""

    def fields(column: Sequence[Any]) -> Iterable[str]:
        if SHOWN_AS_THEY_ARE.issuperset(map(type, column)):
            return map(field, map(str, column))
        if TIMES.issuperset(map(type, column)):
            return map(field, moments(column))
        return [null if value is None else field(text(value)) for value in column]

    yield delimiter.join(map(field, rows.columns))
    yield from map(delimiter.join, _by_columns(rows, fields))


def _by_columns(rows: Rows, converted: Callable[[Sequence[Any]], Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    """The rows with the values of each column converted, many rows at a time."""
    for block in blocks(rows.rows):
        yield from zip(*map(converted, zip(*block, strict=True)), strict=True)


def jsonl(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    for values in _by_columns(rows, lambda column: map(plain, column)):
        yield json_text(dict(zip(rows.columns, values, strict=True)))


def json(rows: Rows, style: Style = PLAIN) -> Iterator[str]:
    yield "["
    before = None
    for line in jsonl(rows):
        if before is not None:
            yield f"  {before},"
        before = line
    if before is not None:
        yield f"  {before}"
    yield "]"


FORMATS: dict[str, Callable[..., Iterator[str]]] = {
    "table": table,
    "csv": csv,
    "tsv": tsv,
    "json": json,
    "jsonl": jsonl,
    "markdown": markdown,
    "vertical": vertical,
}
# Formats for programs: values are not escaped for terminals.
RAW = frozenset({"csv", "tsv", "json", "jsonl"})
