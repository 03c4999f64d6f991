"""A changed view is kept beside the one in use, with all that reads it, and they are promoted as one."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

from typing import Any

from test_change import IDLE, said
from test_reopened import Open, opened  # noqa: F401  the fixture
from test_staged_streams import said_of

ROOMS = ("streamsql/features/change/", "streamsql/runtime/", "streamsql/plan/lowering/")

BASE = "CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3);"
VIEW = "CREATE TEMPORARY VIEW v AS SELECT * FROM VALUES ('a', 'A'), ('b', 'B') AS x(k, name);"
OVER = "CREATE TEMPORARY VIEW w AS SELECT k, concat(name, '!') AS name FROM v;"
TABLES = (
    "CREATE LIVE TABLE t AS SELECT v.name, sum(n) AS total FROM s JOIN v ON s.k = v.k GROUP BY v.name;"
    "CREATE STREAM named AS SELECT w.name AS name, n FROM s JOIN w ON s.k = w.k;"
    "CREATE LIVE TABLE u AS SELECT name, n FROM named;"
    "CREATE LIVE TABLE top AS SELECT max(total) AS m FROM t;"
    "CREATE LIVE TABLE other AS SELECT count(*) AS c FROM s;"
)
ALL = BASE + VIEW + OVER + TABLES + IDLE
STAGED = (
    "CREATE OR REPLACE TEMPORARY VIEW v STAGED AS "
    "SELECT * FROM VALUES ('a', 'X'), ('b', 'X'), ('c', 'Z') AS x(k, name);"
)
BEFORE = {"t": [("A", 4), ("B", 2)], "u": [("A!", 1), ("A!", 3), ("B!", 2)], "top": [(4,)]}
AFTER = {"t": [("X", 6)], "u": [("X!", 1), ("X!", 2), ("X!", 3)], "top": [(6,)]}


def rows(console: Any, suffix: str = "") -> dict[str, list[Any]]:
    return {t: sorted(console.rows(f"SELECT * FROM {t}{suffix};")) for t in ("t", "u", "top")}


def verified(console: Any) -> None:
    for name in ("t", "u"):
        console.run(f"VERIFY LIVE TABLE {name};")


def test_from_staged_to_promoted_and_back(opened: Open) -> None:
    console = opened()
    console.run(ALL)
    assert said_of(console, STAGED) == "staged: view v, w, t, u, top"
    console.run(IDLE)
    assert rows(console) == BEFORE, "nothing in use is touched"
    assert rows(console, "$staged") == AFTER
    assert sorted(console.rows("SELECT * FROM v;")) == [("a", "A"), ("b", "B")]
    assert [row[0] for row in console.rows("SHOW VIEWS;")] == ["v", "w"]
    tables = dict.fromkeys(("t", "u", "top"), ("live table", "running"))
    views = dict.fromkeys(("v", "w"), ("view", ""))
    assert {row[0]: row[1:3] for row in console.rows("SHOW STAGED;")} == tables | views
    console.run("INSERT INTO s VALUES ('c', 9);" + IDLE)
    promoted = said(console, "PROMOTE v;")
    assert promoted == (
        "v, w, t, u, top are promoted: generations 2, 2, 2 are in use; "
        "ROLLBACK v, w; brings back what was in use before"
    )
    assert sorted(console.rows("SELECT * FROM t;")) == [("X", 6), ("Z", 9)]
    assert console.rows("SELECT count(*) FROM w;") == [(3,)]
    assert console.rows("SHOW STAGED;") == []
    console.run("INSERT INTO s VALUES ('c', 1), ('d', 5);" + IDLE)
    verified(console)
    again = opened()
    assert again.warnings == []
    assert console.rows("SELECT count(*) FROM w;") == [(3,)]
    again.run("START QUERY ALL;" + IDLE)
    assert sorted(again.rows("SELECT * FROM t;")) == [("X", 6), ("Z", 10)]
    assert said(again, "ROLLBACK v;").startswith("v, w, ")
    again.run(IDLE)
    assert rows(again) == BEFORE
    assert sorted(again.rows("SELECT * FROM v;")) == [("a", "A"), ("b", "B")]
    verified(again)
    again.run("ROLLBACK v;" + IDLE)
    assert sorted(again.rows("SELECT * FROM t;")) == [("X", 6), ("Z", 10)], "and forth"
    assert console.rows("SELECT count(*) FROM w;") == [(3,)]
    verified(again)
