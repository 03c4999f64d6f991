"""A set of changes creates live tables: they are built beside what is in use, and put in use with the others."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Console
from test_change import IDLE, crashing, refusal, said
from test_reopened import Open, opened  # noqa: F401  the fixture

ROOMS = ("streamsql/features/change/", "streamsql/runtime/")

IN_USE = (
    "CREATE STREAM base (k STRING, n INT) USING values; CREATE STREAM s AS SELECT k, n FROM base;"
    "CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM s GROUP BY k;"
    "INSERT INTO base VALUES ('a', 1), ('a', 3), ('b', 2);" + IDLE
)
SET = (
    "BEGIN CHANGE c; CREATE OR REPLACE STREAM s AS SELECT k, n FROM base WHERE n > 1;"
    "CREATE LIVE TABLE most AS SELECT k, max(n) AS most FROM s GROUP BY k;"
    "CREATE LIVE TABLE wide AS SELECT k, most * 10 AS tens FROM most;"
    "CREATE OR REPLACE LIVE TABLE t AS SELECT k, most AS total FROM most;"
    "END CHANGE;" + IDLE
)
BEFORE, AFTER = [("a", 4), ("b", 2)], [("a", 3), ("b", 2)]
TABLES = ("t", "most", "wide")


def verified(console: Any) -> None:
    catalog = console.session.catalog
    for table in catalog.live_tables():
        if not catalog.queries[table.name].inputs:
            console.run(f"VERIFY LIVE TABLE {table.name};")


def test_a_new_live_table_from_staged_to_promoted_and_back(opened: Open) -> None:
    console = opened()
    console.run(IN_USE + SET)
    assert [row[0] for row in console.rows("SHOW LIVE TABLES;")] == ["t"]
    assert {row[0]: row[-1] for row in console.rows("SHOW STAGED;")} == dict.fromkeys(("s", *TABLES), "c")
    fault = refusal(console, "SELECT * FROM wide;")
    assert fault.message == "the live table wide is new, and only staged"
    assert fault.hint == "PROMOTE CHANGE c;\nor SELECT * FROM `wide$staged`;"
    assert sorted(console.rows("SELECT * FROM wide$staged;")) == [("a", 30), ("b", 20)]
    compared = console.run("COMPARE CHANGE c;")[-1]
    assert sorted(compared.rows) == [  # type: ignore[attr-defined]
        ("most", 0, 2, 0, 2, 0), ("t", 2, 2, 1, 1, 0), ("wide", 0, 2, 0, 2, 0),
    ]  # fmt: skip
    again = opened()
    assert (again.warnings, again.notes) == ([], [])
    again.run("START QUERY ALL; INSERT INTO base VALUES ('c', 1), ('c', 7);" + IDLE)
    assert sorted(again.rows("SELECT * FROM t;")) == [*BEFORE, ("c", 8)]
    promoted = said(again, "PROMOTE CHANGE c;")
    assert promoted.endswith("; ROLLBACK CHANGE c; brings back what was in use before")
    again.run(IDLE)
    assert sorted(again.rows("SELECT * FROM wide;")) == [("a", 30), ("b", 20), ("c", 70)]
    assert sorted(again.rows("SELECT * FROM t;")) == [*AFTER, ("c", 7)]
    verified(again)
    third = opened()
    assert (third.warnings, third.notes) == ([], [])
    third.run("START QUERY ALL; INSERT INTO base VALUES ('d', 1), ('d', 2);" + IDLE)
    assert sorted(third.rows("SELECT * FROM wide;")) == [("a", 30), ("b", 20), ("c", 70), ("d", 20)]
    back = said(third, "ROLLBACK CHANGE c;")
    assert "most, wide are not in use any more" in back
    third.run(IDLE)
    assert [row[0] for row in third.rows("SHOW LIVE TABLES;")] == ["t"]
    assert sorted(third.rows("SELECT * FROM t;")) == [*BEFORE, ("c", 8), ("d", 3)]
    assert refusal(third, "SELECT * FROM wide;").code != "NOT_PROMOTED"
    verified(third)
    last = opened()
    assert (last.warnings, last.notes) == ([], [])
    last.run("START QUERY ALL; INSERT INTO base VALUES ('e', 1), ('e', 5);" + IDLE)
    assert sorted(last.rows("SELECT * FROM t;")) == [*BEFORE, ("c", 8), ("d", 3), ("e", 6)]
    last.run("ROLLBACK CHANGE c;" + IDLE)
    assert sorted(last.rows("SELECT * FROM wide;")) == [
        ("a", 30), ("b", 20), ("c", 70), ("d", 20), ("e", 50),
    ]  # fmt: skip
    verified(last)


def test_what_is_refused_about_new_live_tables(console: Console) -> None:
    console.run(IN_USE + "CREATE SINK out USING noop; CREATE TEMPORARY VIEW names AS SELECT 'a' AS k;")
    outside = "CREATE OR REPLACE LIVE TABLE fresh STAGED AS SELECT k FROM s;"
    assert refusal(console, outside).code == "UNKNOWN_LIVE_TABLE"
    console.run("BEGIN CHANGE c;")
    cases = {
        "CREATE LIVE TABLE s AS SELECT k FROM base;": ("ALREADY_EXISTS", "s"),
        "CREATE LIVE TABLE out AS SELECT k FROM base;": ("ALREADY_EXISTS", "out"),
        "CREATE LIVE TABLE fresh AS SELECT nothing FROM s;": ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "nothing"),
        "CREATE LIVE TABLE fresh ON LATE INTO out AS SELECT k FROM s;": ("CLAUSE_CONFLICT", "out"),
        "INSERT INTO out AS QUERY fresh SELECT k FROM s;": ("NOT_STAGEABLE", "fresh"),
    }
    for statement, (code, word) in cases.items():
        fault = refusal(console, statement)
        assert fault.code == code, statement
        assert fault.span is not None and statement[fault.span.start : fault.span.end] == word
    assert console.rows("SHOW STAGED;") == []
    assert said(console, "END CHANGE;") == "nothing was changed in c, and it is removed"
    console.run("BEGIN CHANGE c; CREATE LIVE TABLE Fresh AS SELECT k FROM s;")
    assert refusal(console, "CREATE LIVE TABLE fresh AS SELECT k FROM s;").code == "ALREADY_EXISTS"
    console.run("CREATE LIVE TABLE IF NOT EXISTS fresh AS SELECT n FROM s;")
    console.run("CREATE OR REPLACE LIVE TABLE fresh AS SELECT k, n FROM s; END CHANGE;" + IDLE)
    assert len(console.rows("SELECT k, n FROM fresh$staged;")) == 3
    for statement in (
        "CREATE LIVE TABLE fresh AS SELECT k FROM s;",
        "CREATE OR REPLACE LIVE TABLE fresh AS SELECT k FROM s;",
        "CREATE STREAM fresh AS SELECT k FROM base;",
        "DESCRIBE LIVE TABLE fresh;",
        "DROP LIVE TABLE fresh;",
        "WATCH fresh;",
        "COMPARE LIVE TABLE fresh;",
        "INSERT INTO out AS QUERY of_fresh SELECT k FROM fresh;",
    ):
        fault = refusal(console, statement)
        assert fault.code == "NOT_PROMOTED", statement
        assert fault.hint == "PROMOTE CHANGE c;\nor SELECT * FROM `fresh$staged`;"
    assert refusal(console, "PROMOTE t;").code == "NOT_STAGED"
    assert refusal(console, "ROLLBACK CHANGE c;").code == "NOT_PROMOTED"
    answer = console.rows("BEGIN CHANGE d; PREVIEW CHANGE CREATE LIVE TABLE other AS SELECT k FROM fresh;")
    assert answer == [
        ("live table", "other"), ("change", "it is new: all of its rows"), ("read", "Fresh: 3 rows"),
    ]  # fmt: skip
    assert said(console, "END CHANGE;") == "nothing was changed in d, and it is removed"
    console.run("DROP CHANGE c;")
    assert console.rows("SHOW STAGED;") == []
    console.run("CREATE LIVE TABLE fresh AS SELECT k FROM s;")


def test_new_live_tables_follow_what_is_staged_after_them(opened: Open) -> None:
    """In a set, and where a stream is staged alone; what has them keeps them from going."""
    console = opened()
    console.run(
        IN_USE + "BEGIN CHANGE c; CREATE LIVE TABLE most AS SELECT k, max(n) AS most FROM s GROUP BY k;"
        "CREATE OR REPLACE STREAM s AS SELECT k, n FROM base WHERE n < 3; END CHANGE;" + IDLE
    )
    assert sorted(console.rows("SELECT * FROM most$staged;")) == [("a", 1), ("b", 2)]
    console.run("CREATE OR REPLACE STREAM s STAGED AS SELECT k, n FROM base WHERE n < 2;" + IDLE)
    assert console.rows("SELECT * FROM most$staged;") == [("a", 1)]
    fault = refusal(console, "DROP STAGED s;")
    assert fault.hint == "DROP STAGED s, most; removes them together"
    fault = refusal(console, "PROMOTE most;")
    assert fault.hint == "PROMOTE s, most; puts them in use together"
    console.run("PROMOTE CHANGE c; CREATE LIVE TABLE over AS SELECT count(*) AS c FROM most;" + IDLE)
    assert console.rows("SELECT * FROM over;") == [(1,)]
    fault = refusal(console, "ROLLBACK CHANGE c;")
    assert (fault.code, fault.hint) == ("IN_USE", "DROP LIVE TABLE over; first")
    assert refusal(console, "ROLLBACK most;").code == "NO_GENERATION"
    verified(console)
    console.run("DROP LIVE TABLE over; ROLLBACK CHANGE c;" + IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) == BEFORE
    console.run("CREATE LIVE TABLE most AS SELECT k FROM s;" + IDLE)
    assert refusal(console, "ROLLBACK CHANGE c;").message == "most has been changed since c was promoted"
    again = opened()
    assert (again.warnings, again.notes) == ([], [])
    again.run("DROP LIVE TABLE most; DROP CHANGE c;")
    last = opened()
    assert last.warnings == []
    assert [row[0] for row in last.rows("SHOW LIVE TABLES;")] == ["t"]


def test_a_new_live_table_without_a_workspace(console: Console) -> None:
    console.run(IN_USE + SET)
    console.run("PROMOTE CHANGE c; INSERT INTO base VALUES ('c', 9);" + IDLE)
    assert sorted(console.rows("SELECT * FROM wide;")) == [("a", 30), ("b", 20), ("c", 90)]
    verified(console)


ONLY_NEW = (
    "BEGIN CHANGE c; CREATE LIVE TABLE most AS SELECT k, max(n) AS most FROM s GROUP BY k;"
    "CREATE LIVE TABLE wide AS SELECT k, most * 10 AS tens FROM most; END CHANGE;" + IDLE
)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "statement", ["PROMOTE CHANGE c;", "ROLLBACK CHANGE c;", "ROLLBACK CHANGE c; -- again"]
)
def test_a_crash_leaves_new_live_tables_in_use_or_not(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    console = opened()
    console.run(IN_USE + ONLY_NEW)
    if statement.startswith("ROLLBACK"):
        console.run("PROMOTE CHANGE c;" + IDLE + "ROLLBACK CHANGE c;" * statement.endswith("again"))
    console.session.close()
    seen = set()
    for console in crashing(tmp_path, opened, monkeypatch, statement, by=3):
        assert (console.warnings, console.notes) == ([], [])
        in_use = [row[0] for row in console.rows("SHOW LIVE TABLES;")]
        assert in_use in (["t"], ["t", "most", "wide"])
        staged = [row[0] for row in console.rows("SHOW STAGED;")]
        assert staged == (["most", "wide"] if statement.startswith("PROMOTE") and in_use == ["t"] else [])
        console.run("START QUERY ALL; INSERT INTO base VALUES ('c', 7);" + IDLE)
        assert sorted(console.rows("SELECT * FROM t;")) == [("a", 4), ("b", 2), ("c", 7)]
        if in_use == ["t"]:
            console.run(("PROMOTE" if staged else "ROLLBACK") + " CHANGE c;" + IDLE)
        assert sorted(console.rows("SELECT * FROM wide;")) == [("a", 30), ("b", 20), ("c", 70)]
        verified(console)
        seen.add(len(in_use))
    assert seen == {1, 3}
