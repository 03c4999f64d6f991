"""A changed stream is kept beside the one in use, with the live tables that read it, and all are promoted as one."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from data_files import put_whole
from test_change import IDLE, crashing, refusal, said
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
    for name in ("t", "u"):
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
    tables = dict.fromkeys(("t", "u", "top"), ("live table", "running"))
    assert {row[0]: row[1:3] for row in console.rows("SHOW STAGED;")} == tables | {"s": ("stream", "")}
    assert notes_of(console.run("COMPARE LIVE TABLE t;")[-1]) == ("2 rows before, 2 after: 1 changed",)
    console.run("INSERT INTO base VALUES ('b', 1), ('c', 9);" + IDLE)
    assert said(console, "PROMOTE s;") == (
        "s, t, u, top are promoted: generations 2, 2, 2 are in use; "
        "ROLLBACK s; brings back what was in use before"
    )
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


# ---- the next day, and crashes


def test_a_staged_stream_is_there_on_the_next_day(opened: Open) -> None:
    console = opened()
    console.run(ALL + STAGED + IDLE)
    again = opened()
    assert again.warnings == []
    assert rows(again) == BEFORE
    assert "n > 0" in again.text("SHOW CREATE STREAM s;")
    again.run("START QUERY ALL; INSERT INTO base VALUES ('c', 1), ('c', 7);" + IDLE)
    assert sorted(again.rows("SELECT * FROM u$staged;")) == [("a", 6), ("b", 4), ("c", 14)]
    assert sorted(again.rows("SELECT * FROM u;")) == [("a", 8), ("b", 4), ("c", 16)]
    again.run("PROMOTE s;")
    third = opened()
    assert third.warnings == []
    third.run("START QUERY ALL;" + IDLE)
    verified(third)
    assert sorted(third.rows("SELECT * FROM u;")) == [("a", 6), ("b", 4), ("c", 14)]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("statement", ["PROMOTE s;", "ROLLBACK s;"])
def test_a_crash_leaves_the_one_or_the_other_whole(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    console = opened()
    console.run(ALL + STAGED + IDLE)
    if statement.startswith("ROLLBACK"):
        console.run("PROMOTE s;" + IDLE)
    console.session.close()
    seen = set()
    for console in crashing(tmp_path, opened, monkeypatch, statement, by=3):
        assert console.warnings == []
        after = "n > 1" in console.text("SHOW CREATE STREAM s;")
        assert rows(console) == (AFTER if after else BEFORE)
        staged = {row[0] for row in console.rows("SHOW STAGED;")}
        assert staged == ({"s", "t", "u", "top"} if statement.startswith("PROMOTE") and not after else set())
        console.run("START QUERY ALL;" + IDLE)
        assert rows(console) == (AFTER if after else BEFORE)
        verified(console)
        seen.add(after)
    assert seen == {False, True}


# ---- what else reads it


def test_a_query_into_a_sink_goes_on_if_it_can(opened: Open, tmp_path: Path) -> None:
    """A new column is no change for a query that does not name it; another filter is one."""
    console = opened()
    console.run(
        BASE + ROWS + "CREATE STREAM s AS SELECT k, n FROM base;"
        "CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM s GROUP BY k;"
        f"CREATE SINK files USING json OPTIONS (path '{tmp_path}/out'); INSERT INTO files AS QUERY q SELECT k FROM base;"
        + IDLE
        + "CREATE OR REPLACE STREAM base STAGED (k STRING, n INT, extra INT) USING values;"
        + IDLE
    )
    promoted = said(console, "PROMOTE base;")
    assert "; q goes on from the checkpoint; ROLLBACK base;" in promoted
    console.run("INSERT INTO base VALUES ('z', 5, 1);" + IDLE)
    read = f"SELECT k FROM json.`{tmp_path}/out`;"
    assert sorted(console.rows(read)) == [("a",), ("a",), ("b",), ("z",)], "each row once"
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 4), ("b", 2), ("z", 5)]
    console.run("VERIFY LIVE TABLE t;")
    assert "extra INT removed" in refusal(console, "ROLLBACK base;").detail
    console.run(
        "STOP QUERY q; ROLLBACK base; START QUERY q ACCEPT CHANGES; INSERT INTO base VALUES ('y', 5);" + IDLE
    )
    assert sorted(console.rows(read))[-2:] == [("y",), ("z",)]


def test_a_query_that_cannot_go_on_keeps_all_as_it_was(opened: Open, tmp_path: Path) -> None:
    console = opened()
    console.run(
        ALL + f"CREATE SINK files USING json OPTIONS (path '{tmp_path}/out');"
        "INSERT INTO files AS QUERY q SELECT k, n FROM twice;" + IDLE + STAGED + IDLE
    )
    fault = refusal(console, "PROMOTE s;")
    assert fault.code == "IN_USE"
    assert fault.message == "q reads s, and cannot go on from its checkpoint with the change"
    assert "n > 0 → n > 1" in fault.detail
    assert fault.hint == "STOP QUERY q; PROMOTE s; then START QUERY q FROM BEGINNING; or ACCEPT CHANGES"
    assert fault.span is not None and "PROMOTE s;"[fault.span.start : fault.span.end] == "s"
    assert {row[0]: row[1] for row in console.rows("SHOW QUERIES;")}["q"] == "running"
    assert rows(console) == BEFORE and rows(console, "$staged") == AFTER
    console.run("STOP QUERY q; PROMOTE s; START QUERY q ACCEPT CHANGES;" + IDLE)
    assert rows(console) == AFTER
    verified(console)


# ---- more than one


def test_a_live_table_staged_afterwards_reads_the_staged_stream(opened: Open) -> None:
    console = opened()
    console.run(ALL + STAGED + IDLE)
    console.run(
        "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT k, count(*) AS total FROM s GROUP BY k;" + IDLE
    )
    assert sorted(console.rows("SELECT * FROM t$staged;")) == [("a", 1), ("b", 1)]
    fault = refusal(console, "DROP STAGED s;")
    assert (fault.code, fault.hint) == ("IN_USE", "DROP STAGED s, t; removes them together")
    fault = refusal(console, "PROMOTE t;")
    assert fault.code == "IN_USE" and fault.hint.startswith("PROMOTE s, t")
    console.run("PROMOTE s;" + IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 1), ("b", 1)]
    assert console.rows("SELECT * FROM top;") == [(1,)]
    verified(console)


def test_a_live_table_staged_before_is_staged_anew(opened: Open) -> None:
    console = opened()
    console.run(
        ALL + "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT k, count(*) AS total FROM s GROUP BY k;" + IDLE
    )
    assert sorted(console.rows("SELECT * FROM t$staged;")) == [("a", 2), ("b", 1)]
    console.run(STAGED + IDLE)
    assert sorted(console.rows("SELECT * FROM t$staged;")) == [("a", 1), ("b", 1)]
    assert console.rows("SELECT * FROM top$staged;") == [(1,)]


def test_two_staged_streams(opened: Open) -> None:
    console = opened()
    console.run(ALL + STAGED + "CREATE OR REPLACE STREAM twice STAGED AS SELECT k, n * 3 AS n FROM s;" + IDLE)
    assert sorted(console.rows("SELECT * FROM u$staged;")) == [("a", 9), ("b", 6)]
    for statement in ("PROMOTE s;", "PROMOTE twice;"):
        fault = refusal(console, statement)
        assert fault.code == "IN_USE" and "; puts them in use together" in fault.hint
    console.run(fault.hint.partition(";")[0] + ";" + IDLE)
    assert sorted(console.rows("SELECT * FROM u;")) == [("a", 9), ("b", 6)]
    assert sorted(console.rows("SELECT * FROM t;")) == AFTER["t"]
    verified(console)
    fault = refusal(console, "ROLLBACK u;")
    assert fault.code == "IN_USE" and fault.hint == "ROLLBACK s, twice;"
    console.run(fault.hint + IDLE)
    assert rows(console) == BEFORE
    verified(console)


def test_dropped(opened: Open) -> None:
    console = opened()
    console.run(ALL + STAGED + IDLE + "DROP STAGED s;" + IDLE)
    assert console.rows("SHOW STAGED;") == []
    assert rows(console) == BEFORE
    again = opened()
    assert (again.warnings, again.notes) == ([], [])
    again.run("START QUERY ALL;" + STAGED + "DROP STREAM base CASCADE;")
    assert again.rows("SHOW QUERIES;") == []
    assert opened().warnings == []


# ---- what is refused


def test_what_cannot_be_staged(console: Console, tmp_path: Path) -> None:
    console.run(ALL + "CREATE SINK bad USING memory;")
    for statement, code, word in (
        ("CREATE OR REPLACE STREAM nothing STAGED AS SELECT k FROM base;", "UNKNOWN_STREAM", "nothing"),
        ("CREATE STREAM s STAGED AS SELECT k FROM base;", "CLAUSE_CONFLICT", "s"),
        ("CREATE OR REPLACE STREAM s STAGED AS SELECT k FROM t;", "NO_STREAM", ""),
        ("CREATE OR REPLACE STREAM s STAGED AS SELECT k FROM twice;", "CIRCULAR_DEFINITION", "s"),
        ("CREATE OR REPLACE STREAM base STAGED (k INT, n INT) USING values;", "NOT_STAGEABLE", "base"),
        ("CREATE OR REPLACE STREAM s STAGED (k INT) USING values;", "NOT_STAGEABLE", "s"),
        ("PROMOTE s;", "NOT_STAGED", "s"),
        ("DROP STAGED s;", "NOT_STAGED", "s"),
        ("ROLLBACK s;", "NO_GENERATION", "s"),
    ):
        fault = refusal(console, statement)
        assert fault.code == code, statement
        if word:
            assert fault.span is not None and statement[fault.span.start : fault.span.end] == word, statement
    assert console.rows("SHOW STAGED;") == []
    text = "CREATE OR REPLACE STREAM s STAGED AS SELECT k FROM base;"
    fault = refusal(console, text)
    assert fault.message == "the live table t cannot be computed from the change"
    assert "no column n" in fault.detail and fault.hint.startswith("BEGIN CHANGE")
    assert fault.span is not None and text[fault.span.start : fault.span.end] == "s"
    assert console.rows("SHOW STAGED;") == [], "of what fails nothing is left"
    assert rows(console) == BEFORE


def test_what_else_meets_a_staged_stream(opened: Open) -> None:
    console = opened()
    console.run(ALL + STAGED + IDLE)
    assert sorted(console.rows("SELECT * FROM s$staged;")) == [("a", 3), ("b", 2)], (
        "it can be read by its name"
    )
    assert refusal(console, "ALTER STREAM s RENAME TO z;").code == "IN_USE"
    assert refusal(console, "DROP STREAM s;").code == "IN_USE"
    console.run("CREATE OR REPLACE STREAM s AS SELECT k, n FROM base WHERE n > -1;")
    console.run("PROMOTE s;" + IDLE)
    assert rows(console) == AFTER
    console.run("CREATE OR REPLACE STREAM s AS SELECT k, n FROM base WHERE n > 1;")
    assert refusal(console, "ROLLBACK s;").code == "NO_GENERATION", "another definition was in use since"
    assert refusal(console, "ROLLBACK t;").code == "IN_USE", "and its rows before are those of the one before"


def test_files_are_read_from_another_folder(opened: Open, tmp_path: Path) -> None:
    for name, n in (("old", 1), ("new", 5)):
        (tmp_path / name).mkdir()
        put_whole(tmp_path / name / "a.json", f'{{"k": "a", "n": {n}}}\n')
    console = opened()
    console.run(
        f"CREATE STREAM s USING json OPTIONS (path '{tmp_path}/old');"
        "CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM s GROUP BY k;" + IDLE
    )
    console.run(f"CREATE OR REPLACE STREAM s STAGED USING json OPTIONS (path '{tmp_path}/new');" + IDLE)
    assert console.rows("SELECT * FROM t$staged;") == [("a", 5)]
    console.run("PROMOTE s;" + IDLE + "VERIFY LIVE TABLE t;")
    again = opened()
    assert again.warnings == []
    put_whole(tmp_path / "new" / "b.json", '{"k": "a", "n": 2}\n')
    again.run("START QUERY ALL;" + IDLE)
    assert again.rows("SELECT * FROM t;") == [("a", 7)]
    again.run("ROLLBACK s;" + IDLE)
    assert again.rows("SELECT * FROM t;") == [("a", 1)]
    fault = refusal(again, f"CREATE OR REPLACE STREAM s STAGED USING json OPTIONS (path '{tmp_path}/none');")
    assert fault.span is not None
    assert again.rows("SHOW STAGED;") == []


def test_a_table_in_stages_is_staged_with_its_stream(opened: Open) -> None:
    console = opened()
    console.run(
        ALL + "CREATE LIVE TABLE r AS SELECT k, total, rank() OVER (ORDER BY total DESC) AS r"
        " FROM (SELECT k, sum(n) AS total FROM s GROUP BY k);" + IDLE + STAGED + IDLE
    )
    assert sorted(console.rows("SELECT * FROM r$staged;")) == [("a", 3, 1), ("b", 2, 2)]
    console.run("PROMOTE s; INSERT INTO base VALUES ('b', 9), ('b', 1);" + IDLE)
    assert sorted(console.rows("SELECT * FROM r;")) == [("a", 3, 2), ("b", 11, 1)]
    again = opened()
    assert again.warnings == []
    again.run("START QUERY ALL; ROLLBACK s;" + IDLE)
    assert sorted(again.rows("SELECT * FROM r;")) == [("a", 4, 2), ("b", 12, 1)]


def test_preview_of_a_stream_says_what_is_staged_with_it(console: Console) -> None:
    console.run(ALL + "CREATE SINK o USING memory; INSERT INTO o AS QUERY copy SELECT * FROM twice;" + IDLE)
    preview = f"PREVIEW CHANGE {STAGED.replace(' STAGED', '')}"
    answer = console.rows(preview)
    assert answer[:3] == [
        ("stream", "s"),
        ("staged with it", "t, u, top"),
        ("read by", "copy (goes on from its checkpoint)"),
    ]
    assert [value for name, value in answer if name == "live table"] == ["t", "u", "top"]
    assert ("change", "stream s, WHERE: n > 0 → n > 1") in answer
    read = [value for name, value in answer if name == "read again"]
    assert read[0].startswith("base: 3 rows so far, 1 file, ") and read[-1] == "t: 2 rows"
    assert ("change", "none of its own") in answer, "top reads t"
    console.run("BEGIN CHANGE c;")
    assert console.rows(preview)[:3] == answer[:3]
    console.run("END CHANGE;")
    assert console.rows("SHOW STAGED;") == []
    missing = refusal(console, "PREVIEW CHANGE CREATE OR REPLACE STREAM S2 AS SELECT k FROM base;")
    assert (missing.code, missing.hint) == ("UNKNOWN_STREAM", "did you mean s?")


@pytest.mark.parametrize("in_set", [False, True], ids=["a statement", "END CHANGE"])
def test_what_was_staged_before_stays_where_staging_fails(opened: Open, *, in_set: bool) -> None:
    """A later reader of the changed stream cannot be computed from it, as Spark finds out."""
    console = opened()
    console.run(
        "CREATE STREAM base (k STRING, n INT) USING values; CREATE STREAM s AS SELECT k, n FROM base;"
        "CREATE LIVE TABLE rows AS SELECT k, count(*) AS c FROM s GROUP BY k;"
        "CREATE LIVE TABLE most AS SELECT max(c) AS most FROM rows;"
        "CREATE LIVE TABLE sums AS SELECT k, sum(n) AS total FROM s GROUP BY k;"
        "INSERT INTO base VALUES ('a', 1), ('a', 3), ('b', 2);"
        "CREATE OR REPLACE STREAM s STAGED AS SELECT k, n FROM base WHERE n > 1;" + IDLE
    )
    changed = "CREATE OR REPLACE STREAM s {} AS SELECT k, DATE'2024-01-01' AS n FROM base;"
    folders = "SELECT * FROM rows$staged;", "SELECT * FROM most$staged;", "SELECT * FROM sums$staged;"
    before = [sorted(console.rows(text)) for text in folders]
    assert before == [[("a", 1), ("b", 1)], [(1,)], [("a", 3), ("b", 2)]]
    script = f"BEGIN CHANGE c; {changed.format('')} END CHANGE;" if in_set else changed.format("STAGED")
    fault = refusal(console, script)
    assert fault.message == "the live table sums cannot be computed from the change"
    if in_set:
        console.run("CREATE OR REPLACE STREAM s AS SELECT k, n FROM base WHERE n > 1; END CHANGE;")
    console.run(IDLE)
    assert sorted(row[:3] for row in console.rows("SHOW STAGED;")) == [
        ("most", "live table", "running"), ("rows", "live table", "running"), ("s", "stream", ""),
        ("sums", "live table", "running"),
    ]  # fmt: skip
    assert [sorted(console.rows(text)) for text in folders] == before
    console.run("INSERT INTO base VALUES ('c', 1), ('c', 5);" + IDLE)
    assert sorted(console.rows("SELECT * FROM sums$staged;")) == [("a", 3), ("b", 2), ("c", 5)]
    assert console.rows("SELECT * FROM most$staged;") == [(1,)]
    again = opened()
    assert (again.warnings, again.notes) == ([], [])
    again.run("START QUERY ALL;" + IDLE + "PROMOTE s; VERIFY LIVE TABLE sums; VERIFY LIVE TABLE rows;")
    assert sorted(again.rows("SELECT * FROM sums;")) == [("a", 3), ("b", 2), ("c", 5)]


def test_what_was_staged_before_stays_without_a_workspace(console: Console) -> None:
    console.run(
        "CREATE STREAM base (k STRING, n INT) USING values; CREATE STREAM s AS SELECT k, n FROM base;"
        "CREATE LIVE TABLE rows AS SELECT k, count(*) AS c FROM s GROUP BY k;"
        "CREATE LIVE TABLE sums AS SELECT k, sum(n) AS total FROM s GROUP BY k;"
        "INSERT INTO base VALUES ('a', 1), ('a', 3), ('b', 2);"
        "CREATE OR REPLACE STREAM s STAGED AS SELECT k, n FROM base WHERE n > 1;" + IDLE
    )
    assert refusal(console, "CREATE OR REPLACE STREAM s STAGED AS SELECT k, DATE'2024-01-01' AS n FROM base;")
    console.run("INSERT INTO base VALUES ('c', 1), ('c', 5);" + IDLE)
    assert sorted(console.rows("SELECT * FROM sums$staged;")) == [("a", 3), ("b", 2), ("c", 5)]
    assert sorted(console.rows("SELECT * FROM rows$staged;")) == [("a", 1), ("b", 1), ("c", 1)]
