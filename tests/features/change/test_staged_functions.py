"""A changed function is kept beside the one in use, with all that calls it, and they are promoted as one."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Console
from test_change import IDLE, crashing, refusal, said
from test_reopened import Open, opened  # noqa: F401  the fixture
from test_staged_streams import said_of
from test_staged_views import in_a_new_spark

ROOMS = ("streamsql/features/change/", "streamsql/runtime/", "streamsql/plan/lowering/")

MODULE = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


def one(n: int) -> int:
    return n + 1


def two(n: int) -> int:
    return n + 2


class Digits:
    def eval(self, n: int):
        for digit in str(n):
            yield (digit,)


class Twice:
    def eval(self, n: int):
        for digit in str(n) * 2:
            yield (digit,)


class Count(StatefulProcessor):
    step = 1

    def init(self, handle):
        self.count = handle.getValueState("count", "n BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        n = (self.count.get()[0] if self.count.exists() else 0) + self.step * sum(1 for _ in rows)
        self.count.update((n,))
        yield Row(k=key[0], n=n)


class CountTens(Count):
    step = 10
"""
BASE = "CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3);"
FUNCTION = "CREATE FUNCTION f AS 'changing.one' LANGUAGE PYTHON RETURNS INT;"
TABLES = (
    "CREATE TEMPORARY VIEW v AS SELECT 'a' AS k, f(10) AS ten;"
    "CREATE LIVE TABLE t AS SELECT k, f(n) AS m, count(*) AS c FROM s WHERE f(n) > 2 GROUP BY k, f(n);"
    "CREATE LIVE TABLE u AS SELECT s.k, v.ten FROM s JOIN v ON s.k = v.k;"
    "CREATE LIVE TABLE other AS SELECT count(*) AS c FROM s;"
)
STAGED = "CREATE OR REPLACE FUNCTION f STAGED AS 'changing.two' LANGUAGE PYTHON RETURNS INT;"
BEFORE = {"t": [("a", 4, 1), ("b", 3, 1)], "u": [("a", 11), ("a", 11)]}
AFTER = {"t": [("a", 3, 1), ("a", 5, 1), ("b", 4, 1)], "u": [("a", 12), ("a", 12)]}


@pytest.fixture(autouse=True)
def in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "changing.py").write_text(MODULE)
    monkeypatch.chdir(folder)


def rows(console: Any, suffix: str = "") -> dict[str, list[Any]]:
    return {t: sorted(console.rows(f"SELECT * FROM `{t}{suffix}`;")) for t in ("t", "u")}


def test_from_staged_to_promoted_and_back(opened: Open) -> None:
    opened = in_a_new_spark(opened)
    console = opened()
    console.run(BASE + FUNCTION + TABLES + IDLE)
    assert said_of(console, STAGED) == "staged: function f, v, t, u"
    console.run(IDLE)
    assert rows(console) == BEFORE, "nothing in use is touched"
    assert rows(console, "$staged") == AFTER
    assert console.rows("SELECT f(1);") == [(2,)]
    assert console.rows("SELECT ten FROM v;") == [(11,)]
    assert [row[0] for row in console.rows("SHOW PYTHON FUNCTIONS;")] == ["f"]
    kinds = {row[0]: row[1] for row in console.rows("SHOW STAGED;")}
    assert kinds == {"t": "live table", "u": "live table", "f": "function", "v": "view"}
    assert refusal(console, "DROP FUNCTION f;").code == "IN_USE"
    again = opened()
    assert again.warnings == []
    again.run("START QUERY ALL; INSERT INTO s VALUES ('c', 7);" + IDLE)
    assert ("c", 9, 1) in again.rows("SELECT * FROM `t$staged`;")
    assert ("c", 8, 1) in again.rows("SELECT * FROM t;")
    assert said(again, "PROMOTE f;").startswith("f, v, t, u are promoted: generations 2, 2 are in use; ")
    assert again.rows("SELECT f(1), ten FROM v;") == [(3, 12)]
    assert sorted(again.rows("SELECT * FROM t;")) == [*AFTER["t"], ("c", 9, 1)]
    again.run("INSERT INTO s VALUES ('a', 3);" + IDLE + "VERIFY LIVE TABLE t; VERIFY LIVE TABLE u;")
    third = opened()
    assert third.warnings == []
    third.run("START QUERY ALL;" + IDLE + "VERIFY LIVE TABLE t;")
    assert third.rows("SELECT f(1), ten FROM v;") == [(3, 12)]
    third.run("ROLLBACK FUNCTION f;" + IDLE + "VERIFY LIVE TABLE t; VERIFY LIVE TABLE u;")
    assert sorted(third.rows("SELECT * FROM t;")) == [("a", 4, 2), ("b", 3, 1), ("c", 8, 1)]
    assert third.rows("SELECT f(1), ten FROM v;") == [(2, 11)]
    third.run("ROLLBACK f;" + IDLE)
    assert third.rows("SELECT f(1), ten FROM v;") == [(3, 12)]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("statement", ["PROMOTE f;", "ROLLBACK f;"])
def test_a_crash_leaves_the_one_or_the_other_whole(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    again = in_a_new_spark(opened)
    console = again()
    view, table = TABLES.split(";")[:2]
    in_sql = "CREATE TEMPORARY FUNCTION g(n INT) RETURNS INT RETURN f(n)"
    view = view.replace("f(10)", "g(10)")
    console.run(f"{BASE}{FUNCTION}{in_sql};{view};{table};{IDLE}{STAGED}{IDLE}")
    if statement.startswith("ROLLBACK"):
        console.run("PROMOTE f;" + IDLE)
    console.session.close()
    seen = set()
    for console in crashing(tmp_path, again, monkeypatch, statement, by=3):
        assert console.warnings == []
        after = console.rows("SELECT f(1), ten FROM v;") == [(3, 12)]
        assert after or console.rows("SELECT f(1), ten FROM v;") == [(2, 11)]
        assert sorted(console.rows("SELECT * FROM t;")) == (AFTER if after else BEFORE)["t"]
        console.run("START QUERY ALL; INSERT INTO s VALUES ('d', 7);" + IDLE + "VERIFY LIVE TABLE t;")
        assert (("d", 9, 1) if after else ("d", 8, 1)) in console.rows("SELECT * FROM t;")
        seen.add(after)
    assert seen == {False, True}


def test_a_table_function_and_a_stateful_processor(opened: Open) -> None:
    console = opened()
    console.run(
        BASE + "CREATE FUNCTION digits AS 'changing.Digits' LANGUAGE PYTHON RETURNS TABLE (digit STRING);"
        "CREATE FUNCTION counted AS 'changing.Count' LANGUAGE PYTHON RETURNS TABLE (k STRING, n BIGINT);"
        "CREATE LIVE TABLE t AS SELECT k, d.digit FROM s, LATERAL digits(n) AS d;"
        "CREATE LIVE TABLE u AS SELECT k, n FROM counted(TABLE(s) PARTITION BY k);" + IDLE
    )
    console.run(
        "CREATE OR REPLACE FUNCTION digits STAGED AS 'changing.Twice' LANGUAGE PYTHON RETURNS TABLE (digit STRING);"
        "CREATE OR REPLACE FUNCTION counted STAGED AS 'changing.CountTens' LANGUAGE PYTHON"
        " RETURNS TABLE (k STRING, n BIGINT);" + IDLE
    )
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", "1"), ("a", "3"), ("b", "2")]
    assert len(console.rows("SELECT * FROM `t$staged`;")) == 6
    assert sorted(console.rows("SELECT * FROM u;"))[-1] == ("b", 1)
    assert sorted(console.rows("SELECT * FROM `u$staged`;"))[-1] == ("b", 10)
    console.run("PROMOTE digits, counted; INSERT INTO s VALUES ('b', 5);" + IDLE)
    assert len(console.rows("SELECT * FROM t;")) == 8
    assert sorted(console.rows("SELECT * FROM u;"))[-1] == ("b", 20), "its state goes on"
    again = opened()
    assert again.warnings == []
    again.run("START QUERY ALL; INSERT INTO s VALUES ('b', 5);" + IDLE)
    assert sorted(again.rows("SELECT * FROM u;"))[-1] == ("b", 30)


def test_what_cannot_be_staged(console: Console) -> None:
    console.run(BASE + FUNCTION + "CREATE LIVE TABLE t AS SELECT k, f(n) FROM s;" + IDLE)
    fault = refusal(console, STAGED)
    assert fault.message == "the live table t cannot be computed from the change"
    assert "the column f(n) has no name" in fault.detail
    for statement, code in (
        (STAGED.replace(" f ", " ff "), "UNKNOWN_FUNCTION"),
        (STAGED.replace(" OR REPLACE", ""), "CLAUSE_CONFLICT"),
        (STAGED.replace(".two", ".one"), "NOT_STAGEABLE"),
        ("PROMOTE f;", "NOT_STAGED"),
        ("DROP STAGED f;", "NOT_STAGED"),
        ("ROLLBACK f;", "NO_GENERATION"),
    ):
        assert refusal(console, statement).code == code, statement
    assert console.rows("SHOW STAGED;") == []
    console.run(
        f"BEGIN CHANGE c; {STAGED.replace(' STAGED', '')}"
        "CREATE OR REPLACE LIVE TABLE t AS SELECT k, f(n) AS `f(n)` FROM s; END CHANGE;" + IDLE
    )
    assert console.rows("SELECT max(`f(n)`) FROM `t$staged`;") == [(5,)]
    console.run("PROMOTE CHANGE c;" + IDLE)
    assert console.rows("SELECT max(`f(n)`) FROM t;") == [(5,)]
    assert refusal(console, STAGED.replace(".two", ".none")).code == "BAD_PYTHON_CODE"
    assert console.rows("SHOW STAGED;") == []


def test_a_set_of_a_view_a_function_a_live_table_and_a_query(opened: Open, tmp_path: Path) -> None:
    console = opened()
    console.run(
        BASE + FUNCTION + TABLES + f"CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');"
        "INSERT INTO out AS QUERY q SELECT s.k, f(s.n) AS m, v.ten FROM s JOIN v ON s.k = v.k;" + IDLE
    )
    console.run(
        "BEGIN CHANGE c;" + STAGED.replace(" STAGED", "") +
        "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 'b' AS k, f(100) AS ten;"
        "CREATE OR REPLACE LIVE TABLE u AS SELECT s.k, v.ten, f(n) AS m FROM s JOIN v ON s.k = v.k;"
        "INSERT INTO out AS QUERY q FROM NOW SELECT s.k, f(s.n) AS m, v.ten FROM s JOIN v ON s.k = v.k;"
        "END CHANGE; INSERT INTO s VALUES ('a', 5), ('b', 7);" + IDLE
    )  # fmt: skip
    assert sorted(console.rows("SELECT * FROM `u$staged`;")) == [("b", 102, 4), ("b", 102, 9)]
    kinds = {row[0]: (row[1], row[-1]) for row in console.rows("SHOW STAGED;")}
    assert kinds == {
        "f": ("function", "c"), "v": ("view", "c"), "u": ("live table", "c"), "t": ("live table", "c"),
        "q": ("query", "c"),
    }  # fmt: skip
    again = opened()
    assert again.warnings == []
    again.run("START QUERY ALL;" + IDLE + "PROMOTE CHANGE c; INSERT INTO s VALUES ('a', 1), ('b', 9);" + IDLE)
    again.run("VERIFY LIVE TABLE t; VERIFY LIVE TABLE u;")
    written = again.rows(f"SELECT k, m, ten FROM json.`{tmp_path}/out` ORDER BY k, m;")
    assert written == [("a", 2, 11), ("a", 4, 11), ("a", 6, 11), ("b", 11, 102)]
