"""Results about the console itself, as tables."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, TypeVar

from streamsql.language.redaction import redact, redact_any
from streamsql.results import InfoRows, Rows
from streamsql.runtime.parts import SessionParts
from streamsql.secrets import redact_option


def table(
    columns: tuple[str, ...],
    rows: list[tuple[Any, ...]],
    numeric: tuple[int, ...] = (),
    nothing: str = "",
    matters: tuple[str, ...] = (),
    same: tuple[tuple[str, str], ...] = (),
) -> InfoRows:
    """A table about the console. nothing: what a window says if it has no rows; matters, same: as in
    InfoRows.
    """
    right = tuple(i in numeric for i in range(len(columns)))
    shown = InfoRows((), columns, rows, right, nothing=nothing, matters=matters, same=same)
    return without_secrets(shown)


def named_like(shown: InfoRows, like: str) -> InfoRows:
    """The rows whose first column, a name, matches a pattern of LIKE, in which * or % stands for any text,
    and | is "or", as in SHOW TABLES of Spark; all of them for "".
    """
    if not like:
        return shown
    any_text = re.sub(r"[^\w|]", lambda sign: ".*" if sign[0] in "*%" else re.escape(sign[0]), like)
    pattern = re.compile(any_text, re.IGNORECASE)
    rows = [row for row in shown.rows if pattern.fullmatch(row[0])]
    return replace(shown, rows=rows, nothing=f"no name like {like}")


def pairs_of(pairs: list[tuple[str, Any]]) -> InfoRows:
    return table(("property", "value"), [p for p in pairs if p[1] not in ("", None)])


def sections_of(sections: list[tuple[str, list[tuple[str, Any]]]]) -> InfoRows:
    """Pairs under titles; a section without values is left out."""
    pairs: list[tuple[str, Any]] = []
    titles: list[tuple[int, str]] = []
    for title, part in sections:
        filled = [p for p in part if p[1] not in ("", None)]
        if filled:
            titles.append((len(pairs), title))
        pairs += filled
    return replace(pairs_of(pairs), sections=tuple(titles))


def size_text(size: float) -> str:
    """A number of bytes: 312 bytes, 4.1 KiB."""
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} {units[0]}" if units[0] == "bytes" else f"{size:.1f} {units[0]}"


ZONE = "spark.sql.session.timeZone"


def session_zone(parts: SessionParts) -> str:
    """The session time zone; while Spark does not run, the one that is set, or "" for that of the machine."""
    if parts.engine.started:
        return str(parts.spark.conf.get(ZONE))
    return parts.settings.start_conf().get(ZONE, "")


_KEYS = ("key", "property", "option")
_SQL = ("query", "statement")


_Table = TypeVar("_Table", bound=Rows)


def without_secrets(rows: _Table) -> _Table:
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
