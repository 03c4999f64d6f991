"""Changes of several live tables and streams are staged, compared, promoted and rolled back as one set."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, drop_tables
from scripts import run_process
from test_change import IDLE, crashing, refusal, said
from test_reopened import Open, opened  # noqa: F401  the fixture
from test_server import Host, rows_of, run
from test_staged_streams import AFTER, ALL, BEFORE, rows, verified

ROOMS = ("streamsql/features/change/", "streamsql/runtime/")

STREAM = "CREATE OR REPLACE STREAM s AS SELECT k, n FROM base WHERE n > 1;"
TABLE = "CREATE OR REPLACE LIVE TABLE t AS SELECT k, sum(n) AS total, count(*) AS c FROM s GROUP BY k;"
NEW = "CREATE LIVE TABLE most AS SELECT k, max(total) AS most FROM t GROUP BY k;"
SET = "BEGIN CHANGE c;" + TABLE + STREAM + NEW + "END CHANGE;"
T_AFTER = [("a", 3, 1), ("b", 2, 1)]


def test_from_begin_to_promoted_and_back(opened: Open) -> None:
    console = opened()
    console.run(ALL)
    assert said(console, "BEGIN CHANGE c;") == "change c is open until END CHANGE"
    console.run(TABLE + STREAM + IDLE)
    assert rows(console) == BEFORE, "a SELECT between them reads what is in use"
    assert console.session.summary().change == "c", "the prompt shows it"
    ended = console.run("END CHANGE;")[-1].message  # type: ignore[attr-defined]
    assert ended == "change c of t, s, u, top: COMPARE CHANGE c; PROMOTE CHANGE c;"
    assert console.session.summary().change == ""
    console.run(IDLE)
    assert sorted(console.rows("SELECT * FROM t$staged;")) == T_AFTER, (
        "also what was staged before the stream"
    )
    assert {row[0]: row[-1] for row in console.rows("SHOW STAGED;")} == dict.fromkeys(
        ("t", "s", "u", "top"), "c"
    )
    compared = console.run("COMPARE CHANGE c;")[-1]
    assert sorted(compared.rows) == [  # type: ignore[attr-defined]
        ("t", 2, 2, 0, 0, 1), ("top", 1, 1, 1, 1, 0), ("u", 2, 2, 0, 0, 1),
    ]  # fmt: skip
    again = opened()
    assert again.warnings == []
    again.run("START QUERY ALL; INSERT INTO base VALUES ('c', 1), ('c', 7);" + IDLE)
    promoted = said(again, "PROMOTE CHANGE c;")
    assert promoted.startswith("s, t, ") and promoted.endswith(
        "; ROLLBACK CHANGE c; brings back what was in use before"
    )
    assert sorted(again.rows("SELECT * FROM t;")) == [*T_AFTER, ("c", 7, 1)]
    assert again.rows("SELECT * FROM top;") == [(7,)]
    verified(again)
    third = opened()
    assert third.warnings == []
    third.run("START QUERY ALL; ROLLBACK CHANGE c;" + IDLE)
    assert rows(third) == {
        "t": [("a", 4), ("b", 2), ("c", 8)],
        "u": [("a", 8), ("b", 4), ("c", 16)],
        "top": [(8,)],
    }
    verified(third)
    third.run("ROLLBACK CHANGE c;" + IDLE)
    assert sorted(third.rows("SELECT * FROM t;")) == [*T_AFTER, ("c", 7, 1)], "and forth"
    verified(third)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("statement", ["PROMOTE CHANGE c;", "ROLLBACK CHANGE c;"])
def test_a_crash_leaves_the_one_or_the_other_whole(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    console = opened()
    console.run(ALL + SET + IDLE)
    if statement.startswith("ROLLBACK"):
        console.run("PROMOTE CHANGE c;" + IDLE)
    console.session.close()
    seen = set()
    for console in crashing(tmp_path, opened, monkeypatch, statement, by=4):
        assert console.warnings == []
        after = "n > 1" in console.text("SHOW CREATE STREAM s;")
        assert after == ("count" in console.text("SHOW CREATE LIVE TABLE t;"))
        assert after == ("most" in [row[0] for row in console.rows("SHOW LIVE TABLES;")])
        console.run("START QUERY ALL;" + IDLE)
        assert sorted(console.rows("SELECT * FROM t;")) == (T_AFTER if after else BEFORE["t"])
        assert sorted(console.rows("SELECT * FROM u;")) == (AFTER if after else BEFORE)["u"]
        verified(console)
        if after and statement.startswith("PROMOTE"):
            console.run("ROLLBACK CHANGE c;" + IDLE)
            assert rows(console) == BEFORE, "the set knows that it was promoted"
        elif statement.startswith("ROLLBACK"):
            console.run((not after) * ("ROLLBACK CHANGE c;" + IDLE))
            assert sorted(console.rows("SELECT * FROM most;")) == [("a", 3), ("b", 2)]
        seen.add(after)
    assert seen == {False, True}


def test_a_set_of_live_tables_only(opened: Open) -> None:
    console = opened()
    console.run(
        ALL + "BEGIN CHANGE c; CREATE OR REPLACE LIVE TABLE t AS SELECT k, max(n) AS total FROM s GROUP BY k;"
        "END CHANGE;" + IDLE
    )
    assert console.rows("SELECT * FROM top$staged;") == [(3,)], "what reads it is staged, too"
    console.run("PROMOTE CHANGE c;" + IDLE)
    assert console.rows("SELECT * FROM top;") == [(3,)]
    console.run(
        "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT k, min(n) AS total FROM s GROUP BY k; PROMOTE t;"
    )
    fault = refusal(console, "ROLLBACK CHANGE c;")
    assert fault.message == "t has been changed since c was promoted"


def test_a_set_is_opened_again(opened: Open) -> None:
    """It is in the workspace; that it is open is not."""
    console = opened()
    console.run(ALL + "BEGIN CHANGE c;" + TABLE)
    again = opened()
    assert again.session.summary().change == ""
    again.run("START QUERY ALL;" + IDLE)
    assert said(again, "BEGIN CHANGE c;") == "change c is open until END CHANGE; staged in it: t"
    again.run(STREAM + "END CHANGE;" + IDLE)
    assert sorted(again.rows("SELECT * FROM t$staged;")) == T_AFTER
    again.run("DROP CHANGE c;")
    assert again.rows("SHOW STAGED;") == []
    assert refusal(again, "PROMOTE CHANGE c;").code == "UNKNOWN_CHANGE"
    assert rows(again) == BEFORE
    assert (opened().warnings, opened().notes) == ([], [])


def test_a_new_stream_belongs_to_the_set(opened: Open) -> None:
    console = opened()
    console.run(
        ALL + "BEGIN CHANGE c; CREATE STREAM big AS SELECT k, n FROM base WHERE n > 2;"
        "CREATE OR REPLACE LIVE TABLE t AS SELECT k, sum(n) AS total FROM big GROUP BY k; END CHANGE;" + IDLE
    )
    assert "big" not in [row[0] for row in console.rows("SHOW STREAMS;")]
    assert refusal(console, "SELECT * FROM big;")
    assert console.rows("SELECT * FROM t$staged;") == [("a", 3)]
    console.run("PROMOTE CHANGE c;" + IDLE)
    assert "big" in [row[0] for row in console.rows("SHOW STREAMS;")]
    console.run("ROLLBACK CHANGE c;" + IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) == BEFORE["t"]
    console.run("ROLLBACK CHANGE c;" + IDLE)
    assert console.rows("SELECT * FROM t;") == [("a", 3)]
    verified(console)


def test_what_a_set_refuses(console: Console) -> None:
    console.run(ALL)
    fault = refusal(console, "END CHANGE;")
    assert (fault.code, fault.hint) == ("NO_CHANGE_OPEN", "BEGIN CHANGE name;")
    assert refusal(console, "PROMOTE CHANGE nothing;").code == "UNKNOWN_CHANGE"
    console.run("CREATE TEMPORARY VIEW v AS SELECT 1 AS one; BEGIN CHANGE c;")
    for statement, code, word in (
        ("BEGIN CHANGE d;", "CHANGE_OPEN", "d"),
        ("CREATE LIVE TABLE t AS SELECT k FROM s;", "ALREADY_EXISTS", "t"),
        ("CREATE OR REPLACE GLOBAL TEMPORARY VIEW v AS SELECT 2 AS one;", "NOT_STAGEABLE", ""),
        ("CREATE VIEW new_one AS SELECT 2 AS one;", "CLAUSE_CONFLICT", ""),
        (
            "CREATE OR REPLACE LIVE TABLE t AS SELECT nothing FROM s;",
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "nothing",
        ),
    ):
        fault = refusal(console, statement)
        assert fault.code == code, statement
        if word:
            assert fault.span is not None and statement[fault.span.start : fault.span.end] == word
    assert said(console, "END CHANGE;") == "nothing was changed in c, and it is removed"
    assert console.rows("SHOW STAGED;") == []
    console.run("BEGIN CHANGE c;" + TABLE)
    assert refusal(console, "PROMOTE CHANGE c;").code == "CHANGE_OPEN"
    console.run("END CHANGE; BEGIN CHANGE d;")
    fault = refusal(console, TABLE)
    assert fault.message == "t is staged in the change c"
    console.run("END CHANGE;")
    assert refusal(console, "ROLLBACK CHANGE c;").code == "NOT_PROMOTED"
    assert rows(console) == BEFORE


# ---- sessions and scripts


def test_that_it_is_open_belongs_to_a_client(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    host = Host(tmp_path / "w", spark)
    try:
        one, other = host.attach(), host.attach()
        run(one, ALL)
        run(one, "BEGIN CHANGE c;")
        assert (one.summary().change, other.summary().change) == ("c", "")
        run(one, STREAM)
        run(other, "CREATE OR REPLACE LIVE TABLE other AS SELECT count(*) + 1 AS c FROM base;")
        assert rows_of(other, "SHOW STAGED;")[0][0] == "s", "and other was replaced at once"
        run(other, "CREATE STREAM mine AS SELECT k FROM base;")
        assert "mine" in {row[0] for row in rows_of(one, "SHOW STREAMS;")}
        run(one, "END CHANGE; AWAIT QUERY ALL IDLE;")
        assert one.summary().change == ""
        run(other, "PROMOTE CHANGE c;")
        assert sorted(rows_of(one, "SELECT * FROM t;")) == AFTER["t"]
    finally:
        host.close()
        drop_tables(spark)


def test_a_script_that_leaves_it_open_says_so(processes: None, tmp_path: Path) -> None:
    script = ALL + "BEGIN CHANGE c;" + STREAM + "SELECT * FROM nothing; END CHANGE;"
    done = run_process("--workspace", str(tmp_path / "w"), "-e", script)
    assert done.code == 1
    said = " ".join(done.err.split())
    assert "change c has no END CHANGE: what is staged stays; BEGIN CHANGE c; goes on with it" in said
    more = "START QUERY ALL; BEGIN CHANGE c; END CHANGE; AWAIT QUERY ALL IDLE; PROMOTE CHANGE c; SELECT * FROM t;"
    done = run_process("--workspace", str(tmp_path / "w"), "-e", more)
    assert done.code == 0, done.err
    assert "a,3" in done.out.replace(" ", "") or "3" in done.out


def test_a_table_that_must_change_too_is_named(console: Console) -> None:
    """An error of END CHANGE leaves the set open."""
    console.run(
        "CREATE STREAM base (k STRING, n INT) USING values; CREATE STREAM s AS SELECT k, n FROM base;"
        "CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM s GROUP BY k;"
        "INSERT INTO base VALUES ('a', 1); BEGIN CHANGE c; CREATE OR REPLACE STREAM s AS SELECT k, n AS m FROM base;"
    )
    fault = refusal(console, "END CHANGE;")
    assert fault.message == "the live table t cannot be computed from the change"
    assert "no column n" in fault.detail
    assert console.session.summary().change == "c"
    assert [row[0] for row in console.rows("SHOW STAGED;")] == ["s"]
    console.run(
        "CREATE OR REPLACE LIVE TABLE t AS SELECT k, sum(m) AS total FROM s GROUP BY k; END CHANGE;"
        "AWAIT QUERY ALL IDLE; PROMOTE CHANGE c; AWAIT QUERY ALL IDLE; VERIFY LIVE TABLE t;"
    )
    assert console.rows("SELECT * FROM t;") == [("a", 1)]


def test_a_set_of_a_stream_a_live_table_and_a_query(opened: Open, tmp_path: Path) -> None:
    """The query goes on with the changed stream from where it stops; a keyed sink would get the difference."""
    console = opened()
    console.run(
        "CREATE STREAM s (k STRING, n INT) USING values; CREATE STREAM big AS SELECT k, n FROM s WHERE n > 1;"
        f"CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');"
        "CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM big GROUP BY k;"
        "INSERT INTO out AS QUERY q SELECT k, n FROM big;"
        "INSERT INTO s VALUES ('a', 1), ('a', 2), ('b', 5);" + IDLE
    )
    written = f"SELECT k, n FROM json.`{tmp_path}/out` ORDER BY k, n;"
    assert console.rows(written) == [("a", 2), ("b", 5)]
    console.run(
        "BEGIN CHANGE c; CREATE OR REPLACE STREAM big AS SELECT k, n FROM s WHERE n > 3;"
        "INSERT INTO out AS QUERY q FROM NOW SELECT k, n * 10 AS n FROM big; END CHANGE;"
        "INSERT INTO s VALUES ('c', 3), ('c', 7);" + IDLE
    )
    kinds = {row[0]: (row[1], row[-1]) for row in console.rows("SHOW STAGED;")}
    assert kinds == {"big": ("stream", "c"), "t": ("live table", "c"), "q": ("query", "c")}
    compared = {row[0]: row[1:] for row in console.rows("COMPARE CHANGE c;")}
    assert compared == {"t": (3, 2, 1, 0, 1), "q": (2, 1, 2, 1, 0)}
    console = opened()
    console.run("START QUERY ALL;" + IDLE)
    console.run("PROMOTE CHANGE c; INSERT INTO s VALUES ('d', 3), ('d', 9);" + IDLE + "VERIFY LIVE TABLE t;")
    assert console.rows(written) == [("a", 2), ("b", 5), ("c", 3), ("c", 7), ("d", 90)]
    assert sorted(console.rows("SELECT * FROM t;")) == [("b", 5), ("c", 7), ("d", 9)]
    assert console.rows("SHOW STAGED;") == []
    fault = refusal(console, "ROLLBACK CHANGE c;")
    assert (fault.code, fault.hint) == ("ROWS_TWICE", "ROLLBACK CHANGE c WITH DUPLICATES;")
    console.run("ROLLBACK CHANGE c WITH DUPLICATES;" + IDLE + "VERIFY LIVE TABLE t;")
    again = [("a", 2), ("b", 5), ("c", 3), ("c", 7), ("d", 3), ("d", 9), ("d", 90)]
    assert console.rows(written) == again, "the earlier query writes what came since, too"
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 2), ("b", 5), ("c", 10), ("d", 12)]


def test_a_set_with_a_query_into_a_sink_with_key_is_rolled_back_whole(
    opened: Open, packages: Callable[[str], None], tmp_path: Path
) -> None:
    """The sink gets the difference to the SELECT before, over the stream and the view before."""
    packages("sqlite")
    console = opened()
    console.run(
        "CREATE STREAM s (k STRING, n INT) USING values; CREATE STREAM big AS SELECT k, n FROM s WHERE n > 1;"
        "CREATE TEMPORARY VIEW names AS SELECT * FROM VALUES ('a', 'Ann'), ('b', 'Bob'), ('c', 'Cy') AS v(k, name);"
        f"CREATE SINK out USING jdbc KEY (k) OPTIONS (url 'jdbc:sqlite:{tmp_path}/x.db', table 't');"
        "CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM big GROUP BY k;"
        "INSERT INTO out AS QUERY q SELECT name AS k, sum(n) AS total FROM big JOIN names USING (k) GROUP BY name;"
        "INSERT INTO s VALUES ('a', 1), ('a', 2), ('b', 5);" + IDLE
    )

    def table() -> list[tuple[Any, ...]]:
        with sqlite3.connect(tmp_path / "x.db") as connection:
            return connection.execute("SELECT k, total FROM t ORDER BY k").fetchall()

    batch = "SELECT name, sum(n) FROM big JOIN names USING (k) GROUP BY name;"
    console.run(
        "BEGIN CHANGE c; CREATE OR REPLACE STREAM big AS SELECT k, n FROM s WHERE n > 3;"
        "CREATE OR REPLACE TEMPORARY VIEW names AS SELECT * FROM VALUES ('b', 'Bea'), ('c', 'Cy') AS v(k, name);"
        "INSERT INTO out AS QUERY q SELECT upper(name) AS k, max(n) AS total FROM big JOIN names USING (k)"
        " GROUP BY name; END CHANGE; PROMOTE CHANGE c; INSERT INTO s VALUES ('c', 3), ('c', 7);" + IDLE
    )
    assert table() == [("BEA", 5), ("CY", 7)]
    console = opened()
    console.run("START QUERY ALL;" + IDLE)
    back = said(console, "ROLLBACK CHANGE c;")
    assert back.endswith("; out gets the difference by key")
    assert table() == sorted(console.rows(batch)) == [("Ann", 2), ("Bob", 5), ("Cy", 10)]
    assert console.rows("SHOW STAGED;") == []
    console.run("INSERT INTO s VALUES ('a', 3), ('b', 1);" + IDLE + "VERIFY LIVE TABLE t;")
    assert table() == sorted(console.rows(batch))
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 5), ("b", 5), ("c", 10)]
    again = opened()
    assert (again.warnings, again.notes) == ([], [])
    again.run("START QUERY ALL;" + IDLE + "ROLLBACK CHANGE c;" + IDLE + "VERIFY LIVE TABLE t;")
    assert table() == [("BEA", 5), ("CY", 7)]
    assert sorted(again.rows("SELECT * FROM t;")) == [("b", 5), ("c", 7)]


def test_a_stream_and_the_staged_query_that_reads_it(console: Console, tmp_path: Path) -> None:
    console.run(
        "CREATE STREAM s (k STRING, n INT) USING values; CREATE STREAM big AS SELECT k, n FROM s WHERE n > 1;"
        f"CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');"
        "INSERT INTO out AS QUERY q SELECT k, n FROM big;"
        "INSERT INTO out STAGED AS QUERY q FROM NOW SELECT k, n + 1 AS n FROM big;" + IDLE
    )
    stage = "CREATE OR REPLACE STREAM big STAGED AS SELECT k, n FROM s WHERE n > 3;"
    fault = refusal(console, stage)
    assert (fault.code, fault.hint) == ("IN_USE", "PROMOTE q; or DROP STAGED q; first")
    console.run(
        f"DROP STAGED q; {stage} INSERT INTO out STAGED AS QUERY q FROM NOW SELECT k, n + 1 AS n FROM big;"
    )
    fault = refusal(console, "DROP STAGED big;")
    assert fault.hint == "DROP STAGED big, q; removes them together"
    fault = refusal(console, "PROMOTE q;")
    assert fault.hint == "PROMOTE big, q; puts them in use together"
    console.run("DROP STAGED big, q;")
    assert console.rows("SHOW STAGED;") == []
    assert [row[0] for row in console.rows("SHOW QUERIES;")] == ["q"]
