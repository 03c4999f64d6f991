"""What tests ask WHY, and what they do with its answer."""

from __future__ import annotations

from typing import Any

from conftest import Console

from streamsql.results import Why


def why(console: Console, what: str = "") -> tuple[Why, dict[str, Any]]:
    """The answer of WHY, and its facts."""
    shown = console.run(f"WHY {what};")[0]
    assert isinstance(shown, Why)
    return shown, dict(shown.rows)  # type: ignore[arg-type]


def resolved(console: Console, shown: Why, query: str) -> list[tuple[Any, ...]]:
    """The rows of a live table once the proposal has been typed."""
    console.run(shown.proposal)
    console.run(f"AWAIT QUERY {query} IDLE;")
    return console.rows(f"SELECT * FROM {query} ORDER BY 1;")


def texts(rows: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    return [tuple(map(str, row)) for row in rows]
