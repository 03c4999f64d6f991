"""A query that writes into a sink is changed beside it, compared with it, and put in its place."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from test_change import IDLE, ROWS, STREAM, refusal, said
from test_reopened import Open, opened  # noqa: F401  the fixture

ROOMS = ("streamsql/features/change/", "streamsql/runtime/")

OLD = "SELECT k, sum(n) AS total FROM s GROUP BY k"
NEW = "SELECT k, sum(n) AS total FROM s WHERE n > 1 AND k <> 'b' GROUP BY k"


@pytest.fixture
def table(packages: Callable[[str], None], tmp_path: Path) -> Callable[[], list[tuple[Any, ...]]]:
    """The rows of the table of the sink `out`."""
    packages("sqlite")

    def rows() -> list[tuple[Any, ...]]:
        with sqlite3.connect(tmp_path / "x.db") as connection:
            return connection.execute("SELECT k, total FROM t ORDER BY k").fetchall()

    return rows


def keyed(folder: Path) -> str:
    return f"CREATE SINK out USING jdbc KEY (k) OPTIONS (url 'jdbc:sqlite:{folder}/x.db', table 't');"


def test_a_keyed_sink_gets_upserts_and_deletes(
    opened: Open, table: Callable[[], list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    console = opened()
    console.run(STREAM + ROWS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    assert said_started(console, f"INSERT INTO out STAGED AS QUERY q {NEW};") == "staged change of q started"
    console.run(IDLE)
    assert table() == [("a", 4), ("b", 2)], "its sink is not touched"
    assert [row[:3] for row in console.rows("SHOW STAGED;")] == [("q", "query", "running")]
    assert [row[0] for row in console.rows("SHOW QUERIES;")] == ["q", "q$staged"]
    assert console.rows("SHOW LIVE TABLES;") == []
    compared = console.run("COMPARE QUERY q;")[-1]
    assert notes_of(compared) == ("2 rows before, 1 after: 1 only before, 1 changed",)
    assert compared.rows == [  # type: ignore[attr-defined]
        ("before", "total", "a", 4), ("after", "total", "a", 3), ("only before", "", "b", 2),
    ]  # fmt: skip
    assert said(console, "PROMOTE q;") == "q is promoted: generation 2 is in use"
    assert table() == [("a", 3)]
    assert console.rows("SHOW STAGED;") == []
    console.run("INSERT INTO s VALUES ('a', 10), ('b', 9), ('c', 7), ('d', 1);" + IDLE)
    assert table() == sorted(console.rows(f"{NEW};")), "it goes on from the checkpoint of the change"
    again = opened()
    assert again.warnings == [] and again.notes == []
    assert "n > 1" in again.rows("SHOW GENERATIONS OF q;")[0][-1]
    again.run("START QUERY ALL; INSERT INTO s VALUES ('c', 5);" + IDLE)
    assert table() == sorted(again.rows(f"{NEW};"))


def said_started(console: Any, text: str) -> str:
    return str(console.run(text)[-1].message)
