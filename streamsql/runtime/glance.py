"""Short answers about the console itself, as tables."""

from __future__ import annotations

from typing import Any

from streamsql.results import Rows


def table(columns: tuple[str, ...], rows: list[tuple[Any, ...]], numeric: tuple[int, ...] = ()) -> Rows:
    return Rows((), columns, rows, tuple(i in numeric for i in range(len(columns))), glance=True)


def pairs_of(pairs: list[tuple[str, Any]]) -> Rows:
    return table(("property", "value"), [p for p in pairs if p[1] not in ("", None)])
