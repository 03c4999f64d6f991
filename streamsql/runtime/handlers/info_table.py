"""Results about the console itself, as tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamsql.language.redaction import redact, redact_any
from streamsql.results import Rows
from streamsql.secrets import redact_option


def table(
    columns: tuple[str, ...],
    rows: list[tuple[Any, ...]],
    numeric: tuple[int, ...] = (),
    nothing: str = "",
) -> Rows:
    """A table about the console. nothing: what a window says if it has no rows."""
    return without_secrets(
        Rows(
            (), columns, rows, tuple(i in numeric for i in range(len(columns))), glance=True, nothing=nothing
        )
    )


def pairs_of(pairs: list[tuple[str, Any]]) -> Rows:
    return table(("property", "value"), [p for p in pairs if p[1] not in ("", None)])


_KEYS = ("key", "property", "option")
_SQL = ("query", "statement")


def without_secrets(rows: Rows) -> Rows:
    """Rows of settings, statements and messages, with their secrets redacted."""

    def cell(row: tuple[Any, ...], at: int) -> Any:
        value, before = row[at], row[at - 1] if at else ""
        if not isinstance(value, str):
            return value
        if rows.columns[at] in _SQL or before in _SQL:
            return redact(value)
        # DESCRIBE CONNECTOR shows options, not their values.
        if at and rows.columns[at - 1] in _KEYS and rows.columns[at] != "for" and isinstance(before, str):
            value = redact_option(before, value)
        return redact_any(value)

    return replace(rows, rows=[tuple(cell(row, at) for at in range(len(row))) for row in rows.rows])
