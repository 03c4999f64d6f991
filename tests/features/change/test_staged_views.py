"""A changed view is kept beside the one in use, with all that reads it, and they are promoted as one."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Console, drop_tables
from test_change import IDLE, crashing, refusal, said
from test_reopened import Open, opened  # noqa: F401  the fixture
from test_staged_streams import said_of

ROOMS = ("streamsql/features/change/", "streamsql/runtime/", "streamsql/plan/lowering/")

BASE = "CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3);"
VIEW = "CREATE TEMPORARY VIEW v AS SELECT * FROM VALUES ('a', 'A'), ('b', 'B') AS x(k, name);"
BANG = "CREATE TEMPORARY FUNCTION bang(x STRING) RETURNS STRING RETURN concat(x, (SELECT max('!') FROM v));"
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
    return {t: sorted(console.rows(f"SELECT * FROM `{t}{suffix}`;")) for t in ("t", "u", "top")}


def verified(console: Any) -> None:
    for name in ("t", "u"):
        console.run(f"VERIFY LIVE TABLE {name};")


def in_a_new_spark(opened: Open) -> Open:
    """Opens the workspace as a console does that starts Spark: the views are created there."""

    def make() -> Any:
        console = opened()
        spark = console.session.spark
        drop_tables(spark)
        console.session.parts.temporary.restore(spark)
        return console

    return make


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


def test_a_staged_view_is_there_on_the_next_day(opened: Open) -> None:
    opened = in_a_new_spark(opened)
    console = opened()
    console.run(ALL + STAGED + IDLE)
    again = opened()
    assert again.warnings == []
    assert rows(again) == BEFORE
    again.run("START QUERY ALL; INSERT INTO s VALUES ('b', 1), ('c', 7);" + IDLE)
    assert sorted(again.rows("SELECT * FROM t$staged;")) == [("X", 7), ("Z", 7)]
    assert sorted(again.rows("SELECT * FROM t;")) == [("A", 4), ("B", 3)]
    again.run("PROMOTE v;")
    third = opened()
    assert third.warnings == []
    third.run("START QUERY ALL;" + IDLE)
    verified(third)
    assert sorted(third.rows("SELECT * FROM u;"))[-1] == ("Z!", 7)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("statement", ["PROMOTE v;", "ROLLBACK v;"])
def test_a_crash_leaves_the_one_or_the_other_whole(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    again = in_a_new_spark(opened)
    console = again()
    one = "CREATE LIVE TABLE t AS SELECT w.name, sum(n) AS total FROM s JOIN w ON s.k = w.k GROUP BY w.name;"
    over = OVER.replace("concat(name, '!')", "bang(name)")
    console.run(BASE + VIEW + BANG + over + one + IDLE + STAGED + IDLE)
    if statement.startswith("ROLLBACK"):
        console.run("PROMOTE v;" + IDLE)
    console.session.close()
    seen = set()
    for console in crashing(tmp_path, again, monkeypatch, statement, by=3):
        assert console.warnings == []
        after = console.rows("SELECT count(*) FROM v;") == [(3,)]
        assert sorted(console.rows("SELECT * FROM t;")) == ([("X!", 6)] if after else [("A!", 4), ("B!", 2)])
        assert console.rows("SELECT name FROM w WHERE k = 'a';") == [("X!",) if after else ("A!",)]
        staged = {row[0] for row in console.rows("SHOW STAGED;")}
        left = statement.startswith("PROMOTE") and not after
        assert staged == ({"v", "bang", "w", "t"} if left else set())
        console.run("START QUERY ALL; INSERT INTO s VALUES ('b', 1);" + IDLE + "VERIFY LIVE TABLE t;")
        assert console.rows("SELECT total FROM t WHERE name <> 'A!';") == [(7,) if after else (3,)]
        seen.add(after)
    assert seen == {False, True}


def test_dropped(opened: Open) -> None:
    console = opened()
    console.run(ALL + STAGED + IDLE)
    for statement in ("DROP VIEW v;", "ALTER VIEW w RENAME TO z;"):
        fault = refusal(console, statement)
        assert fault.code == "IN_USE" and "DROP STAGED" in fault.hint
    console.run("CREATE OR REPLACE LIVE TABLE u STAGED AS SELECT name, n + 1 AS n FROM named;" + IDLE)
    assert sorted(console.rows("SELECT * FROM u$staged;")) == [("X!", 2), ("X!", 3), ("X!", 4)]
    fault = refusal(console, "DROP STAGED v;")
    assert (fault.code, fault.hint) == ("IN_USE", "DROP STAGED v, u; removes them together")
    assert refusal(console, "PROMOTE u;").code == "IN_USE"
    console.run(fault.hint.partition(";")[0] + ";" + IDLE)
    assert console.rows("SHOW STAGED;") == []
    assert rows(console) == BEFORE
    again = opened()
    assert (again.warnings, again.notes) == ([], [])
    again.run("START QUERY ALL;" + STAGED + IDLE + "DROP STAGED v; DROP VIEW w;")
    assert again.rows("SHOW STAGED;") == []


def test_a_view_that_no_query_reads(opened: Open) -> None:
    console = opened()
    console.run(
        VIEW + "CREATE VIEW lasting AS SELECT 1 AS a; CREATE VIEW above AS SELECT a + 1 AS b FROM lasting;"
    )
    assert said_of(console, STAGED) == "staged: view v"
    assert console.rows("SELECT count(*) FROM v;") == [(2,)]
    assert (
        said_of(console, "CREATE OR REPLACE VIEW lasting STAGED AS SELECT 5 AS a;")
        == "staged: view lasting, above"
    )
    assert console.rows("SELECT b FROM above;") == [(2,)]
    done = said(console, "PROMOTE VIEW lasting, v;")
    assert (
        done
        == "lasting, v, above are promoted; ROLLBACK lasting, v, above; brings back what was in use before"
    )
    assert console.rows("SELECT b FROM above;") == [(6,)]
    assert console.rows("SELECT count(*) FROM v;") == [(3,)]
    again = opened()
    assert again.warnings == []
    assert again.rows("SELECT b FROM above;") == [(6,)]
    kinds = {row[0]: row[1] for row in again.rows("SHOW VIEWS;")}
    assert kinds == {"v": "temporary view", "lasting": "view", "above": "view"}
    again.run("ROLLBACK VIEW lasting;")
    assert again.rows("SELECT b FROM above;") == [(2,)]
    assert again.rows("SELECT count(*) FROM v;") == [(3,)]
    again.run("CREATE OR REPLACE VIEW lasting AS SELECT 7 AS a;")
    assert refusal(again, "ROLLBACK lasting;").code == "NO_GENERATION", "another definition was in use since"
    assert opened().warnings == []


def test_a_query_that_goes_to_spark_as_text(opened: Open) -> None:
    """Streams, live tables and views have other names in Spark until PROMOTE."""
    console = opened()
    console.run("SET spark.sql.parser.escapedStringLiterals = true;" + ALL + STAGED + IDLE)
    assert rows(console) == BEFORE
    assert rows(console, "$staged") == AFTER
    console.run("CREATE OR REPLACE STREAM s STAGED (k STRING, n INT, extra INT) USING values;" + IDLE)
    assert rows(console) == BEFORE
    assert rows(console, "$staged") == AFTER
    console.run("PROMOTE v, s; INSERT INTO s VALUES ('c', 9, 1);" + IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) == [("X", 6), ("Z", 9)]
    assert console.rows("SELECT * FROM top;") == [(9,)]
    console.run("RESET spark.sql.parser.escapedStringLiterals;")


def test_a_query_into_a_sink_goes_on_without_state(opened: Open, tmp_path: Path) -> None:
    console = opened()
    console.run(
        ALL + f"CREATE SINK files USING json OPTIONS (path '{tmp_path}/out');"
        "CREATE SINK counts USING memory;"
        "INSERT INTO files AS QUERY q SELECT name, n FROM named;"
        "INSERT INTO counts AS QUERY c SELECT name, count(*) AS c FROM named GROUP BY name;"
        + IDLE
        + STAGED
        + IDLE
    )
    fault = refusal(console, "PROMOTE v;")
    assert fault.code == "IN_USE" and fault.message.startswith("c reads v, w, and cannot go on")
    assert "keeps state" in fault.detail and fault.hint.startswith(
        "STOP QUERY c; PROMOTE v, w; then START QUERY c"
    )
    assert rows(console) == BEFORE and rows(console, "$staged") == AFTER
    promoted = said(console, "STOP QUERY c; PROMOTE v;")
    assert "; q goes on from the checkpoint; ROLLBACK v, w;" in promoted
    console.run("INSERT INTO s VALUES ('b', 5);" + IDLE)
    read = f"SELECT name, n FROM json.`{tmp_path}/out`;"
    assert sorted(console.rows(read)) == [("A!", 1), ("A!", 3), ("B!", 2), ("X!", 5)], "each row once"


def test_a_view_over_a_staged_stream_is_staged(opened: Open) -> None:
    console = opened()
    console.run(
        "CREATE STREAM base (k STRING, n INT) USING values; INSERT INTO base VALUES ('a', 1), ('b', 2);"
        "CREATE STREAM s AS SELECT k, n FROM base WHERE n > 0; CREATE TEMPORARY VIEW v AS SELECT * FROM s;"
        "CREATE LIVE TABLE w AS SELECT k, count(*) AS c FROM v GROUP BY k;" + IDLE
    )
    staged = "CREATE OR REPLACE STREAM s STAGED AS SELECT k, n, n * 2 AS m FROM base WHERE n > 1;"
    assert said_of(console, staged) == "staged: stream s, v, w"
    console.run(IDLE)
    assert sorted(console.rows("SELECT * FROM w;")) == [("a", 1), ("b", 1)]
    assert console.rows("SELECT * FROM w$staged;") == [("b", 1)]
    console.run("PROMOTE s; INSERT INTO base VALUES ('a', 1), ('c', 7);" + IDLE)
    assert sorted(console.rows("SELECT * FROM w;")) == [("b", 1), ("c", 1)]
    assert sorted(console.rows("SELECT m FROM v;")) == [(4,), (14,)], "with its new column"
    again = opened()
    assert again.warnings == []
    again.run("START QUERY ALL; ROLLBACK s;" + IDLE)
    assert sorted(again.rows("SELECT * FROM w;")) == [("a", 2), ("b", 1), ("c", 1)]


def test_as_one_set(opened: Open) -> None:
    console = opened()
    console.run(ALL)
    console.run(
        "BEGIN CHANGE c; CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 'a' AS k, 'N' AS name;"
        "CREATE TEMPORARY VIEW more AS SELECT upper(name) AS name FROM v;"
        "CREATE OR REPLACE LIVE TABLE u AS SELECT named.name, more.name AS other FROM named, more;"
    )
    assert sorted(console.rows("SELECT * FROM v;")) == [("a", "A"), ("b", "B")]
    ended = console.run("END CHANGE;")[-1].message  # type: ignore[attr-defined]
    assert ended == "change c of v, more, u, w, t, top: COMPARE CHANGE c; PROMOTE CHANGE c;"
    console.run(IDLE)
    assert console.rows("SELECT * FROM u$staged;") == [("N!", "N"), ("N!", "N")]
    assert {row[-1] for row in console.rows("SHOW STAGED;")} == {"c"}
    again = opened()
    assert again.warnings == []
    again.run("START QUERY ALL;" + IDLE + "PROMOTE CHANGE c;" + IDLE)
    assert again.rows("SELECT * FROM t;") == [("N", 4)]
    assert again.rows("SELECT * FROM u;") == [("N!", "N"), ("N!", "N")]
    verified(again)
    third = opened()
    assert third.warnings == []
    third.run("START QUERY ALL; ROLLBACK CHANGE c;" + IDLE)
    assert rows(third) == BEFORE
    verified(third)


def test_what_cannot_be_staged(console: Console) -> None:
    console.run(ALL + "CREATE VIEW lasting AS SELECT 1 AS a;")
    for statement, code in (
        ("CREATE OR REPLACE TEMPORARY VIEW vv STAGED AS SELECT 1 AS a;", "UNKNOWN_VIEW"),
        ("CREATE TEMPORARY VIEW v STAGED AS SELECT 1 AS a;", "CLAUSE_CONFLICT"),
        ("CREATE OR REPLACE VIEW v STAGED AS SELECT 1 AS a;", "CLAUSE_CONFLICT"),
        ("CREATE OR REPLACE TEMPORARY VIEW lasting STAGED AS SELECT 1 AS a;", "CLAUSE_CONFLICT"),
        ("CREATE OR REPLACE VIEW lasting STAGED AS SELECT k FROM s;", "NOT_ON_STREAMS"),
        ("CREATE OR REPLACE VIEW lasting STAGED AS SELECT k AS a FROM v;", "NOT_STAGEABLE"),
        ("CREATE OR REPLACE VIEW other.v STAGED AS SELECT 1 AS a;", "NOT_STAGEABLE"),
        ("CREATE OR REPLACE GLOBAL TEMPORARY VIEW v STAGED AS SELECT 1 AS a;", "NOT_STAGEABLE"),
        ("PROMOTE v;", "NOT_STAGED"),
        ("DROP STAGED v;", "NOT_STAGED"),
        ("ROLLBACK v;", "NO_GENERATION"),
    ):
        assert refusal(console, statement).code == code, statement
    assert "v" in refusal(console, "CREATE OR REPLACE TEMPORARY VIEW vv STAGED AS SELECT 1 AS a;").hint
    text = "CREATE OR REPLACE TEMPORARY VIEW v STAGED AS SELECT nothing FROM VALUES (1) AS x(k);"
    fault = refusal(console, text)
    assert fault.span is not None and text[fault.span.start : fault.span.end] == "nothing"
    fault = refusal(console, "CREATE OR REPLACE TEMPORARY VIEW v STAGED AS SELECT 1 AS k;")
    assert fault.message == "the view w cannot be computed from the change"
    assert console.rows("SHOW STAGED;") == [], "of what fails nothing is left"
    assert rows(console) == BEFORE
    assert sorted(console.rows("SELECT * FROM v;")) == [("a", "A"), ("b", "B")]


def test_what_a_name_means(opened: Open) -> None:
    """Where a query names something else as a view is named, that stays."""
    console = opened()
    console.run(
        BASE
        + VIEW
        + "CREATE LIVE TABLE r AS SELECT v.name AS v, x.name AS x, c.k FROM s AS c JOIN v ON v.k = c.k"
        " JOIN v AS x ON x.k = c.k;"
        "CREATE LIVE TABLE own AS WITH v AS (SELECT k FROM s) SELECT v.k FROM v;"
        "CREATE LIVE TABLE inner_one AS SELECT k FROM s WHERE k IN (SELECT v.k FROM v WHERE v.name = 'B');"
        + IDLE
    )
    assert said_of(console, STAGED) == "staged: view v, r, inner_one"
    console.run(IDLE)
    assert sorted(console.rows("SELECT DISTINCT * FROM r$staged;")) == [("X", "X", "a"), ("X", "X", "b")]
    assert console.rows("SELECT * FROM inner_one$staged;") == []
    console.run("PROMOTE v; VERIFY LIVE TABLE r; VERIFY LIVE TABLE inner_one;")


def test_preview_of_a_view_and_a_function(console: Console) -> None:
    console.run(
        """CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('b', 5);
        CREATE FUNCTION capwords AS 'string.capwords' LANGUAGE PYTHON RETURNS STRING;
        CREATE TEMPORARY VIEW big AS SELECT capwords(k) AS k, n FROM s WHERE n > 1;
        CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM big GROUP BY k;"""
        + IDLE
    )
    view = "CREATE OR REPLACE TEMPORARY VIEW big AS SELECT capwords(k) AS k, n FROM s WHERE n > 3;"
    answer = console.rows(f"PREVIEW CHANGE {view}")
    assert answer[:4] == [("view", "big"), ("staged with it", "t"), ("live table", "t"), answer[3]]
    assert answer[3] == ("change", "stream big, WHERE: n > 1 → n > 3")
    assert dict(answer)["read again"].startswith("s: 2 rows so far, 1 file, ")
    function = "CREATE OR REPLACE FUNCTION capwords AS 'string.capwords_2' LANGUAGE PYTHON RETURNS STRING;"
    answer = console.rows(f"PREVIEW CHANGE {function}")
    assert answer[:2] == [("function", "capwords"), ("staged with it", "big, t")]
    assert console.rows("SHOW STAGED;") == []
    missing = refusal(console, "PREVIEW CHANGE CREATE OR REPLACE TEMPORARY VIEW bg AS SELECT 1;")
    assert (missing.code, missing.hint) == ("UNKNOWN_VIEW", "did you mean big?")
