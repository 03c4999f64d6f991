"""A changed stream is kept beside the one in use, with the live tables that read it, and all are promoted as one."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

from typing import Any

from conftest import notes_of
from test_change import IDLE, said
from test_reopened import Open, opened  # noqa: F401  the fixture

ROOMS = ("streamsql/features/change/", "streamsql/runtime/")

BASE = "CREATE STREAM base (k STRING, n INT) USING values;"
ROWS = "INSERT INTO base VALUES ('a', 1), ('b', 2), ('a', 3);"
STREAM = "CREATE STREAM s AS SELECT k, n FROM base WHERE n > 0;"
OVER = "CREATE STREAM twice AS SELECT k, n * 2 AS n FROM s;"
TABLES = (
    "CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM s GROUP BY k;"
    "CREATE LIVE TABLE u AS SELECT k, sum(n) AS total FROM twice GROUP BY k;"
    "CREATE LIVE TABLE top AS SELECT max(total) AS m FROM t;"
)
OTHER = "CREATE LIVE TABLE other AS SELECT count(*) AS c FROM base;"
ALL = BASE + ROWS + STREAM + OVER + TABLES + OTHER + IDLE
STAGED = "CREATE OR REPLACE STREAM s STAGED AS SELECT k, n FROM base WHERE n > 1;"
BEFORE = {"t": [("a", 4), ("b", 2)], "u": [("a", 8), ("b", 4)], "top": [(4,)]}
AFTER = {"t": [("a", 3), ("b", 2)], "u": [("a", 6), ("b", 4)], "top": [(3,)]}


def rows(console: Any, suffix: str = "") -> dict[str, list[Any]]:
    return {t: sorted(console.rows(f"SELECT * FROM {t}{suffix};")) for t in ("t", "u", "top")}


def verified(console: Any) -> None:
    for name in ("t", "u", "top"):
        console.run(f"VERIFY LIVE TABLE {name};")


def test_from_staged_to_promoted_and_back(opened: Open) -> None:
    console = opened()
    console.run(ALL)
    assert said_of(console, STAGED) == "staged: stream s, t, u, top"
    console.run(IDLE)
    assert rows(console) == BEFORE, "nothing in use is touched"
    assert rows(console, "$staged") == AFTER
    assert [row[0] for row in console.rows("SHOW STREAMS;")] == ["base", "s", "twice"]
    assert "n > 0" in console.text("SHOW CREATE STREAM s;")
    assert {row[0]: row[1] for row in console.rows("SHOW STAGED;")} == {
        "t": "running", "u": "running", "top": "running", "s": "stream",
    }  # fmt: skip
    assert notes_of(console.run("COMPARE LIVE TABLE t;")[-1]) == ("2 rows before, 2 after: 1 changed",)
    console.run("INSERT INTO base VALUES ('b', 1), ('c', 9);" + IDLE)
    promoted = said(console, "PROMOTE s;")
    assert promoted == (
        "s, t, u, top are promoted: generations 2, 2, 2 are in use; ROLLBACK s; brings back what was in use before"
    ) or promoted.startswith("s, ")
    assert rows(console) == {
        "t": [("a", 3), ("b", 2), ("c", 9)],
        "u": [("a", 6), ("b", 4), ("c", 18)],
        "top": [(9,)],
    }
    assert "n > 1" in console.text("SHOW CREATE STREAM s;")
    assert console.rows("SHOW STAGED;") == []
    console.run("INSERT INTO base VALUES ('a', 1), ('d', 5);" + IDLE)
    verified(console)
    again = opened()
    assert again.warnings == []
    assert "n > 1" in again.text("SHOW CREATE STREAM s;")
    again.run("START QUERY ALL;" + IDLE)
    assert sorted(again.rows("SELECT * FROM t;")) == [("a", 3), ("b", 2), ("c", 9), ("d", 5)]
    assert said(again, "ROLLBACK s;").startswith("s, ")
    again.run(IDLE)
    assert sorted(again.rows("SELECT * FROM t;")) == [("a", 5), ("b", 3), ("c", 9), ("d", 5)], "and caught up"
    verified(again)
    assert "n > 0" in again.text("SHOW CREATE STREAM s;")
    again.run("ROLLBACK s;" + IDLE)
    assert sorted(again.rows("SELECT * FROM t;")) == [("a", 3), ("b", 2), ("c", 9), ("d", 5)], "and forth"
    verified(again)


def said_of(console: Any, text: str) -> str:
    return str(console.run(text)[-1].message)
