"""Rows in each format, as an iterator of lines without line ends. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamsql.output.cells import json_text, text
from streamsql.results import Rows


def table(rows: Rows) -> Iterator[str]:
    """An outlined table; numbers to the right. tabulate gets texts only, so it alters nothing."""
    from tabulate import tabulate

    align = tuple("right" if n else "left" for n in rows.numeric) or ("left",) * len(rows.columns)
    cells = [[_one_line(text(v)) for v in row] for row in rows.rows]
    made = tabulate(
        cells,
        headers=[_one_line(c) for c in rows.columns],
        tablefmt="psql",
        disable_numparse=True,
        colalign=align if cells else None,
    )
    yield from made.splitlines()


def _one_line(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") if (
        "\n" in value or "\r" in value or "\t" in value
    ) else value  # fmt: skip


def vertical(rows: Rows) -> Iterator[str]:
    """A block for each row, a line for each column."""
    width = max((len(c) for c in rows.columns), default=0)
    for number, row in enumerate(rows.rows, 1):
        yield f"-[ row {number} ]" + "-" * max(0, width)
        for name, value in zip(rows.columns, row, strict=True):
            yield f"{name:<{width}} | {_one_line(text(value))}"


def markdown(rows: Rows) -> Iterator[str]:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"

    yield line([_one_line(c) for c in rows.columns])
    right = rows.numeric or (False,) * len(rows.columns)
    yield "|" + "|".join("---:" if r else "---" for r in right) + "|"
    for row in rows.rows:
        yield line([_one_line(text(v)) for v in row])


def csv(rows: Rows) -> Iterator[str]:
    """RFC 4180; NULL is an empty field, an empty text is ""."""

    def field(value: str | None) -> str:
        if value is None:
            return ""
        if value == "" or any(c in value for c in ',"\n\r') or value != value.strip():
            return '"' + value.replace('"', '""') + '"'
        return value

    yield ",".join(field(c) for c in rows.columns)
    for row in rows.rows:
        yield ",".join(field(None if v is None else text(v)) for v in row)


def tsv(rows: Rows) -> Iterator[str]:
    """Tabs between fields; \\N is NULL, and tabs and line ends in a value are escaped."""

    def field(value: object) -> str:
        if value is None:
            return "\\N"
        return (
            text(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
        )

    yield "\t".join(field(c) for c in rows.columns)
    for row in rows.rows:
        yield "\t".join(field(v) for v in row)


def jsonl(rows: Rows) -> Iterator[str]:
    for row in rows.rows:
        yield json_text(dict(zip(rows.columns, row, strict=True)))


def json(rows: Rows) -> Iterator[str]:
    lines = list(jsonl(rows))
    yield "["
    for number, line in enumerate(lines, 1):
        yield "  " + line + ("," if number < len(lines) else "")
    yield "]"


FORMATS: dict[str, Callable[[Rows], Iterator[str]]] = {
    "table": table,
    "csv": csv,
    "tsv": tsv,
    "json": json,
    "jsonl": jsonl,
    "markdown": markdown,
    "vertical": vertical,
}
