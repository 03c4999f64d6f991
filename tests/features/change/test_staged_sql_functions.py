"""A changed function in SQL is kept beside the one in use, with all that calls it, and they are promoted as one."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Console
from test_change import IDLE, refusal, said
from test_reopened import Open, opened  # noqa: F401  the fixture
from test_staged_streams import said_of
from test_staged_views import in_a_new_spark

ROOMS = ("streamsql/features/change/", "streamsql/runtime/", "streamsql/plan/lowering/")

BASE = "CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3);"
FUNCTIONS = (
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1;"
    "CREATE FUNCTION g(x INT) RETURNS INT COMMENT 'over f' RETURN CASE WHEN f(x) > 2 THEN f(x) * 10 END;"
)
TABLES = (
    "CREATE TEMPORARY VIEW v AS SELECT 'a' AS k, g(10) AS ten;"
    "CREATE TEMPORARY FUNCTION most() RETURNS INT RETURN (SELECT max(ten) FROM v);"
    "CREATE STREAM marked AS SELECT k, f(n) AS m FROM s;"
    "CREATE LIVE TABLE t AS SELECT k, f(n) AS m, count(*) AS c FROM s WHERE f(n) > 2 GROUP BY k, f(n);"
    "CREATE LIVE TABLE u AS SELECT k, m, most() AS most FROM marked;"
    "CREATE LIVE TABLE w AS SELECT s.k, g(n) AS g, v.ten FROM s JOIN v ON s.k = v.k;"
    "CREATE LIVE TABLE other AS SELECT count(*) AS c FROM s;"
)
STAGED = "CREATE OR REPLACE FUNCTION f STAGED (x INT) RETURNS INT RETURN x + 2;"
BEFORE = {
    "t": [("a", 4, 1), ("b", 3, 1)],
    "u": [("a", 2, 110), ("a", 4, 110), ("b", 3, 110)],
    "w": [("a", 40, 110), ("a", None, 110)],
}
AFTER = {
    "t": [("a", 3, 1), ("a", 5, 1), ("b", 4, 1)],
    "u": [("a", 3, 120), ("a", 5, 120), ("b", 4, 120)],
    "w": [("a", 30, 120), ("a", 50, 120)],
}
VERIFY = "VERIFY LIVE TABLE t; VERIFY LIVE TABLE u; VERIFY LIVE TABLE w;"


def rows(console: Any, suffix: str = "") -> dict[str, list[Any]]:
    return {t: sorted(console.rows(f"SELECT * FROM `{t}{suffix}`;"), key=str) for t in ("t", "u", "w")}


def test_from_staged_to_promoted_and_back(opened: Open) -> None:
    opened = in_a_new_spark(opened)
    console = opened()
    console.run(BASE + FUNCTIONS + TABLES + IDLE)
    assert said_of(console, STAGED) == "staged: function f, g, v, most, t, u, w"
    console.run(IDLE)
    assert rows(console) == BEFORE, "nothing in use is touched"
    assert rows(console, "$staged") == AFTER
    assert console.rows("SELECT f(1), g(2), most();") == [(2, 30, 110)]
    kinds = dict.fromkeys("fg", "function") | {"v": "view", "most": "function"}
    assert {row[0]: row[1] for row in console.rows("SHOW STAGED;") if row[1] != "live table"} == kinds
    fault = refusal(console, "DROP FUNCTION g;")
    assert (fault.code, fault.hint) == ("IN_USE", "PROMOTE g; or DROP STAGED g; first")
    again = opened()
    assert again.warnings == []
    assert again.session.parts.temporary.news() == ()
    again.run("START QUERY ALL; INSERT INTO s VALUES ('c', 7);" + IDLE)
    assert ("c", 9, 1) in again.rows("SELECT * FROM `t$staged`;")
    assert ("c", 8, 1) in again.rows("SELECT * FROM t;")
    promoted = said(again, "PROMOTE f;")
    assert promoted.startswith("f, g, v, most, t, u, w are promoted: generations 2, 2, 2 are in use; ")
    assert again.rows("SELECT f(1), g(2), most();") == [(3, 40, 120)]
    assert sorted(again.rows("SELECT * FROM t;")) == [*AFTER["t"], ("c", 9, 1)]
    again.run("INSERT INTO s VALUES ('a', 3);" + IDLE + VERIFY)
    third = opened()
    assert third.warnings == []
    third.run("START QUERY ALL;" + IDLE + VERIFY)
    assert third.rows("SELECT f(1), g(2), most();") == [(3, 40, 120)]
    assert "x + 2" in third.text("SHOW CREATE FUNCTION f;")
    third.run("ROLLBACK FUNCTION f;" + IDLE + VERIFY)
    assert sorted(third.rows("SELECT * FROM t;")) == [("a", 4, 2), ("b", 3, 1), ("c", 8, 1)]
    assert third.rows("SELECT f(1), g(2), most();") == [(2, 30, 110)]
    third.run("ROLLBACK f;" + IDLE + VERIFY)
    assert third.rows("SELECT f(1), g(2), most();") == [(3, 40, 120)]
    third.run("CREATE OR REPLACE FUNCTION g(x INT) RETURNS INT RETURN 7;")
    assert refusal(third, "ROLLBACK g;").code == "NO_GENERATION", "another definition was in use since"


def test_dropped_and_what_reads_two_changes(opened: Open) -> None:
    console = opened()
    console.run(BASE + FUNCTIONS + TABLES + IDLE + STAGED + IDLE)
    console.run("CREATE OR REPLACE TEMPORARY VIEW v STAGED AS SELECT 'b' AS k, f(1) AS ten;" + IDLE)
    assert console.rows("SELECT DISTINCT most FROM u$staged;") == [(3,)]
    fault = refusal(console, "DROP STAGED f;")
    assert (fault.code, fault.hint) == ("IN_USE", "DROP STAGED f, v; removes them together")
    console.run("DROP STAGED f, v;")
    assert console.rows("SHOW STAGED;") == [] and rows(console) == BEFORE
    again = opened()
    assert again.warnings == []
    again.run("START QUERY ALL;" + STAGED + IDLE + "DROP STAGED f; DROP FUNCTION g;")
    assert refusal(again, "SELECT g(1);").code == "UNRESOLVED_ROUTINE"


def test_as_one_set(opened: Open) -> None:
    """A definition that changes again in the set is read by what was staged before, through a view, too."""
    console = opened()
    console.run(BASE + FUNCTIONS + TABLES + IDLE)
    console.run(
        "BEGIN CHANGE c; CREATE OR REPLACE FUNCTION f(x INT) RETURNS INT RETURN x + 5;"
        "CREATE TEMPORARY FUNCTION twice(x INT) RETURNS INT RETURN 2 * f(x);"
        "CREATE OR REPLACE LIVE TABLE u AS SELECT k, twice(m) AS m, most() AS most FROM marked;"
    )
    assert console.rows("SELECT f(1);") == [(2,)]
    ended = console.run("END CHANGE;")[-1].message  # type: ignore[attr-defined]
    assert ended == "change c of f, twice, u, g, v, most, t, w: COMPARE CHANGE c; PROMOTE CHANGE c;"
    console.run(
        IDLE + "BEGIN CHANGE c; CREATE OR REPLACE FUNCTION f(x INT) RETURNS INT RETURN x + 2;"
        "CREATE OR REPLACE LIVE TABLE u AS SELECT k, twice(m) AS m, most() AS most FROM marked; END CHANGE;"
        + IDLE
    )
    expected = {**AFTER, "u": [("a", 10, 120), ("a", 14, 120), ("b", 12, 120)]}
    assert rows(console, "$staged") == expected and rows(console) == BEFORE
    compared = {row[0]: row[3:] for row in console.rows("COMPARE CHANGE c;")}
    assert compared == {"t": (2, 3, 0), "u": (3, 3, 0), "w": (2, 2, 0)}
    again = opened()
    assert again.warnings == []
    again.run("START QUERY ALL;" + IDLE + "PROMOTE CHANGE c;" + IDLE + VERIFY)
    assert rows(again) == expected and again.rows("SELECT twice(1);") == [(6,)]
    third = opened()
    assert third.warnings == []
    third.run("START QUERY ALL; ROLLBACK CHANGE c;" + IDLE + VERIFY)
    assert rows(third) == BEFORE


def test_a_table_function_and_one_over_python(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "adding.py").write_text(
        "def one(n: int) -> int:\n    return n + 1\n\ndef two(n: int) -> int:\n    return n + 2\n"
    )
    monkeypatch.chdir(tmp_path)
    opened = in_a_new_spark(opened)
    console = opened()
    console.run(
        BASE + "CREATE FUNCTION py AS 'adding.one' LANGUAGE PYTHON RETURNS INT;"
        "CREATE TEMPORARY FUNCTION over_py(n INT) RETURNS INT RETURN py(n) * 10;"
        "CREATE TEMPORARY FUNCTION below(most INT) RETURNS TABLE (k STRING, a INT)"
        " RETURN SELECT k, over_py(a) FROM VALUES ('a', 1), ('b', 9) AS x(k, a) WHERE a < most;"
        "CREATE LIVE TABLE t AS SELECT s.k, b.a FROM s JOIN below(5) AS b ON b.k = s.k;" + IDLE
    )
    assert console.rows("SELECT * FROM t;") == [("a", 20), ("a", 20)]
    staged = "CREATE OR REPLACE FUNCTION py STAGED AS 'adding.two' LANGUAGE PYTHON RETURNS INT;"
    assert said_of(console, staged) == "staged: function py, over_py, below, t"
    again = opened()
    again.run("START QUERY ALL;" + IDLE)
    assert again.rows("SELECT * FROM `t$staged`;") == [("a", 30), ("a", 30)]
    assert again.rows("SELECT * FROM t;") == [("a", 20), ("a", 20)]
    again.run("PROMOTE py; INSERT INTO s VALUES ('a', 0);" + IDLE)
    assert again.rows("SELECT * FROM t;") == [("a", 30)] * 3
    third = opened()
    third.run("START QUERY ALL; INSERT INTO s VALUES ('a', 0);" + IDLE)
    assert third.rows("SELECT * FROM t;") == [("a", 30)] * 4
    assert third.rows("SELECT * FROM below(5);") == [("a", 30)]


def test_what_cannot_be_staged(console: Console) -> None:
    console.run(BASE + FUNCTIONS + "CREATE LIVE TABLE t AS SELECT k, f(n) FROM s;" + IDLE)
    console.run("CREATE TEMPORARY FUNCTION tf(x INT) RETURNS INT RETURN x;")
    fault = refusal(console, STAGED)
    assert fault.message == "the live table t cannot be computed from the change"
    assert "the column f(n) has no name" in fault.detail
    for statement, code in (
        (STAGED.replace(" f ", " ff "), "UNKNOWN_FUNCTION"),
        (STAGED.replace(" OR REPLACE", ""), "CLAUSE_CONFLICT"),
        (STAGED.replace("FUNCTION", "TEMPORARY FUNCTION"), "CLAUSE_CONFLICT"),
        (STAGED.replace(" f ", " other.f "), "NOT_STAGEABLE"),
        (STAGED.replace("x + 2", "tf(x)"), "NOT_STAGEABLE"),
        (
            STAGED.replace("(x INT) RETURNS INT RETURN x + 2", "AS 'm.f' LANGUAGE PYTHON RETURNS INT"),
            "NOT_STAGEABLE",
        ),
        ("CREATE FUNCTION f AS 'm.f' LANGUAGE PYTHON RETURNS INT;", "ALREADY_EXISTS"),
        ("PROMOTE f;", "NOT_STAGED"),
        ("DROP STAGED f;", "NOT_STAGED"),
        ("ROLLBACK f;", "NO_GENERATION"),
    ):
        assert refusal(console, statement).code == code, statement
    console.run("DROP LIVE TABLE t;")
    text = "CREATE OR REPLACE FUNCTION f STAGED (x INT) RETURNS INT RETURN nothing + 1;"
    fault = refusal(console, text)
    assert fault.span is not None and text[fault.span.start : fault.span.end] == "nothing"
    fault = refusal(console, "CREATE OR REPLACE FUNCTION f STAGED (x INT, y INT) RETURNS INT RETURN x + y;")
    assert fault.message == "the function g cannot be computed from the change"
    assert console.rows("SHOW STAGED;") == [], "of what fails nothing is left"
    assert console.rows("SELECT f(1), g(2);") == [(2, 30)]
    missing = refusal(console, "PREVIEW CHANGE CREATE OR REPLACE FUNCTION ff(x INT) RETURNS INT RETURN x;")
    assert (missing.code, missing.hint) == ("UNKNOWN_FUNCTION", "did you mean f?")
    answer = console.rows("PREVIEW CHANGE CREATE OR REPLACE FUNCTION f(x INT) RETURNS INT RETURN x;")
    assert answer[:2] == [("function", "f"), ("staged with it", "g")]
