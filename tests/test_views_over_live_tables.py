"""Temporary views and functions over live tables: who uses one, reads the live tables as they are now."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Console, notes_of
from test_reopened import Open, opened, said  # noqa: F401  the fixture
from test_stages import changes

from streamsql.errors import StreamsqlError
from streamsql.results import Rows

ROOMS = ("streamsql/plan/", "streamsql/runtime/")

VIEWS = """
CREATE STREAM s (k STRING, n INT) USING values;
CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM s GROUP BY k;
INSERT INTO s VALUES ('a', 1);
AWAIT QUERY t IDLE;
CREATE TEMPORARY VIEW v AS SELECT k, total * 2 AS twice FROM t;
CREATE TEMPORARY VIEW w (k, more) AS SELECT k, twice + 1 FROM v;
CREATE TEMPORARY FUNCTION most() RETURNS BIGINT RETURN (SELECT max(twice) FROM v);
CREATE TEMPORARY FUNCTION over_rows(least BIGINT) RETURNS TABLE (k STRING, x BIGINT)
  RETURN SELECT k, total FROM t WHERE total > least;
"""
MORE = "INSERT INTO s VALUES ('a', 10), ('b', 5); AWAIT QUERY ALL IDLE;"


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT * FROM v", [("a", 22), ("b", 10)]),
        ("SELECT k, more FROM w WHERE more > 11", [("a", 23)]),
        ("SELECT t.k, total, more FROM t JOIN w ON t.k = w.k", [("a", 11, 23), ("b", 5, 11)]),
        ("SELECT k FROM t WHERE total IN (SELECT more - 12 FROM w)", [("a",)]),
        ("WITH x AS (SELECT max(twice) AS m FROM v) SELECT m FROM x", [(22,)]),
        ("SELECT most() + 1 AS m", [(23,)]),
        ("SELECT k, x FROM over_rows(5)", [("a", 11)]),
        ("SELECT k FROM t WHERE 2 * total = most()", [("a",)]),
        ("SELECT v.k, count(DISTINCT s.n) FROM s JOIN v ON s.k = v.k GROUP BY v.k", [("a", 2), ("b", 1)]),
    ],
)
def test_a_select_reads_the_live_tables_of_now(console: Console, query: str, rows: list[object]) -> None:
    console.run(VIEWS)
    assert console.rows("SELECT * FROM v;") == [("a", 2)]
    console.run(MORE)
    assert sorted(console.rows(f"{query};")) == rows


def test_what_is_kept_up_to_date_follows_through_views(console: Console, tmp_path: Path) -> None:
    console.run(
        f"""{VIEWS} CREATE SINK f USING json OPTIONS (path '{tmp_path}/f');
        CREATE LIVE TABLE most AS SELECT max(more) AS m, count(*) AS c FROM w;
        CREATE LIVE TABLE mixed AS SELECT s.k, s.n, v.twice FROM s JOIN v ON s.k = v.k;
        CREATE LIVE TABLE called AS SELECT most() AS m, count(*) AS c FROM over_rows(0);
        CREATE LIVE TABLE beside AS SELECT k, n, most() AS m FROM s;
        INSERT INTO f AS QUERY q SELECT * FROM v WHERE twice > 2; AWAIT QUERY ALL IDLE;"""
    )
    assert console.rows("SELECT * FROM most;") == [(3, 1)]
    assert console.rows("SELECT * FROM mixed;") == [("a", 1, 2)]
    console.run(MORE)
    assert console.rows("SELECT * FROM most;") == [(23, 2)]
    assert sorted(console.rows("SELECT * FROM mixed;")) == [("a", 1, 22), ("a", 10, 22), ("b", 5, 10)]
    assert console.rows("SELECT * FROM called;") == [(22, 2)]
    assert sorted(console.rows("SELECT * FROM beside;")) == [("a", 1, 22), ("a", 10, 22), ("b", 5, 22)]
    assert sorted(changes(tmp_path / "f")) == [["+I", "a", 22], ["+I", "b", 10]]
    described = dict(console.rows("DESCRIBE LIVE TABLE most;"))
    assert described["inputs"] == "t"
    with pytest.raises(StreamsqlError, match="t is read by most") as caught:
        console.run("DROP LIVE TABLE t;")
    assert caught.value.code == "IN_USE"


def test_views_over_streams_and_live_tables_run_in_stages(console: Console) -> None:
    console.run(
        f"""{VIEWS} CREATE TEMPORARY VIEW both AS SELECT s.k, s.n, t.total FROM s JOIN t ON s.k = t.k;
        CREATE TEMPORARY VIEW plain AS SELECT k, n FROM s WHERE n > 1;
        CREATE TEMPORARY VIEW named (a, b COMMENT 'their number, (whole)') COMMENT 'c' AS SELECT k, n FROM s;
        CREATE LIVE TABLE of_named AS SELECT a, count(*) AS c FROM named GROUP BY a;
        CREATE LIVE TABLE sums AS SELECT k, count(*) AS c, max(total) AS m FROM both GROUP BY k;
        CREATE LIVE TABLE apart AS SELECT k, count(DISTINCT n) AS c FROM plain GROUP BY k ORDER BY k LIMIT 1;
        {MORE}"""
    )
    assert sorted(console.rows("SELECT * FROM sums;")) == [("a", 2, 11), ("b", 1, 5)]
    assert console.rows("SELECT * FROM apart;") == [("a", 1)]
    assert sorted(console.rows("SELECT * FROM of_named;")) == [("a", 2), ("b", 1)]
    assert "is verified: 2 rows" in said(console, "VERIFY LIVE TABLE of_named;")
    assert sorted(console.rows("SELECT k, n, total FROM both;")) == [("a", 1, 11), ("a", 10, 11), ("b", 5, 5)]


def test_what_was_dropped_is_not_read_through_a_view_or_by_its_name(console: Console) -> None:
    console.run(
        f"{VIEWS} CREATE TEMPORARY VIEW plain AS SELECT k FROM s; SELECT * FROM w; DROP LIVE TABLE t;"
    )
    with pytest.raises(StreamsqlError) as caught:
        console.run("SELECT * FROM v;")
    assert caught.value.message == "the view v reads the live table t, which does not exist any more"
    assert caught.value.hint == "CREATE LIVE TABLE t AS …; or DROP VIEW v;"
    with pytest.raises(StreamsqlError, match="there is no stream, table or view t"):
        console.run("SELECT * FROM t;")
    console.run("DROP STREAM s;")
    views = console.run("SHOW VIEWS;")[0]
    assert isinstance(views, Rows) and [row[0] for row in views.rows] == ["plain", "v", "w"]
    console.run(
        "CREATE STREAM s (k STRING, n INT) USING values; CREATE LIVE TABLE t AS SELECT k, n AS total FROM s;"
        "INSERT INTO s VALUES ('z', 3); AWAIT QUERY t IDLE;"
    )
    assert console.rows("SELECT * FROM v;") == [("z", 6)]
    console.run("DROP VIEW w; DROP VIEW v; DROP VIEW plain;")


def test_a_view_and_a_function_are_replaced_and_dropped(console: Console) -> None:
    console.run(
        f"""{VIEWS} CREATE LIVE TABLE doubled AS SELECT k, twice, most() AS m FROM v;
        CREATE TEMPORARY VIEW big AS SELECT k, n FROM s WHERE n > 2; CREATE LIVE TABLE counted AS SELECT k FROM big;"""
    )
    assert console.rows("SELECT * FROM doubled;") == [("a", 2, 2)]
    console.run(
        "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT k, total * 200 AS twice FROM t; AWAIT QUERY ALL IDLE;"
    )
    assert console.rows("SELECT * FROM doubled;") == [("a", 200, 200)]
    console.run(
        "CREATE OR REPLACE TEMPORARY FUNCTION most() RETURNS BIGINT RETURN (SELECT min(total) FROM t);"
        "AWAIT QUERY ALL IDLE;"
    )
    assert console.rows("SELECT * FROM doubled;") == [("a", 200, 1)]
    console.run(
        "CREATE LIVE TABLE other AS SELECT k, max(n) AS most FROM s GROUP BY k; AWAIT QUERY other IDLE;"
        "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT k, most AS twice FROM other;"
        "INSERT INTO s VALUES ('a', 7); AWAIT QUERY ALL IDLE;"
    )
    assert console.rows("SELECT * FROM doubled;") == [("a", 7, 8)]
    [note] = notes_of(
        console.run("CREATE OR REPLACE TEMPORARY VIEW big AS SELECT k, n FROM s WHERE n > 0;")[-1]
    )
    assert note.startswith("counted still runs with the view big as it was before: STOP QUERY counted; START")
    [note] = notes_of(console.run("DROP TEMPORARY FUNCTION most;")[-1])
    assert note == "doubled still uses most, and cannot be started again without it"
    with pytest.raises(StreamsqlError, match="s is read by t, counted, other"):
        console.run("DROP STREAM s;")


@pytest.mark.slow
def test_the_next_day_and_another_name(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()

    def add(name: str, *rows: tuple[str, int]) -> None:
        lines = "".join(f"{json.dumps({'k': k, 'n': n})}\n" for k, n in rows)
        (tmp_path / name).write_text(lines)
        (tmp_path / name).rename(tmp_path / "in" / name)

    add("1.json", ("a", 1))
    console = opened()
    streams = f"CREATE STREAM s (k STRING, n INT) USING json OPTIONS (path '{tmp_path}/in');"
    console.run(
        f"{streams} CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM s GROUP BY k;"
        "CREATE TEMPORARY VIEW v AS SELECT k, total * 2 AS twice FROM t;"
        "CREATE LIVE TABLE most AS SELECT max(twice) AS m FROM v;"
        "CREATE TEMPORARY FUNCTION sums() RETURNS BIGINT RETURN (SELECT sum(total) FROM t);"
        "CREATE LIVE TABLE called AS SELECT DISTINCT sums() AS m FROM v; AWAIT QUERY ALL IDLE;"
    )
    assert console.rows("SELECT * FROM most;") == [(2,)]
    console = opened()
    assert console.warnings == []
    add("2.json", ("a", 10), ("b", 5))
    console.run("START QUERY ALL; AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM most;") == [(22,)]
    assert "t is named u now" in said(console, "ALTER LIVE TABLE t RENAME TO u;")
    add("3.json", ("b", 50))
    console.run("AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM most;") == [(110,)]
    assert console.rows("SELECT m, sums() FROM called;") == [(66, 66)]
    assert sorted(console.rows("SELECT * FROM v;")) == [("a", 22), ("b", 110)]
    with pytest.raises(StreamsqlError, match="there is no stream, table or view t"):
        console.run("SELECT * FROM t;")
    console.run(
        "BEGIN CHANGE c; CREATE OR REPLACE LIVE TABLE u AS SELECT k, max(n) AS total FROM s GROUP BY k;"
        "END CHANGE; AWAIT QUERY ALL IDLE;"
    )
    assert console.rows("SELECT * FROM most$staged;") == [(100,)]
    assert console.rows("SELECT * FROM most;") == [(110,)]
    console.run("PROMOTE CHANGE c; AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM most;") == [(100,)]
    console.run("ROLLBACK CHANGE c; AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM most;") == [(110,)]


def test_what_reads_a_view_follows_alter_view(console: Console) -> None:
    console.run(
        f"""{VIEWS} CREATE LIVE TABLE over_v AS SELECT k, twice FROM v;
        CREATE TABLE base AS SELECT 1 AS x; CREATE VIEW lasting AS SELECT x FROM base;
        CREATE LIVE TABLE crossed AS SELECT t.k, x FROM t CROSS JOIN lasting; AWAIT QUERY ALL IDLE;"""
    )
    console.run("ALTER VIEW v AS SELECT k, total * 3 AS twice FROM t;")
    console.run("ALTER VIEW lasting AS SELECT x + 10 AS x FROM base; AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM over_v;") == console.rows("SELECT k, twice FROM v;") == [("a", 3)]
    assert console.rows("SELECT * FROM crossed;") == [("a", 11)]
    [result] = console.run("ALTER VIEW lasting RENAME TO renamed;")
    assert notes_of(result) == ("crossed still uses lasting, and cannot be started again without it",)
    [result] = console.run("ALTER TABLE base RENAME TO other;")
    assert notes_of(result) == ()
    console.run("STOP QUERY ALL; DROP VIEW renamed; DROP TABLE other;")
