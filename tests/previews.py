"""What tests ask PREVIEW, and what they make of its proposal."""

from __future__ import annotations

from typing import Any

from conftest import Console

from streamsql.results import Preview


def look(console: Console, statement: str) -> Preview:
    """What a PREVIEW gives; its proposal makes a stream that is read as what was shown."""
    result = console.run(statement)[-1]
    assert isinstance(result, Preview), result
    return result


def taken(console: Console, shown: Preview) -> list[tuple[Any, ...]]:
    """The rows of the stream that the proposal makes, as a query reads them."""
    name = shown.proposal.split()[2]
    console.run(shown.proposal)
    return console.rows(f"SELECT * FROM {name};")
