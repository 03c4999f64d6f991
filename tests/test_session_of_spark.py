"""What belongs to one session of Spark (variables, global views, settings) beside queries that are kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Console, notes_of

from streamsql.errors import StreamsqlError
from streamsql.results import Done

ROOMS = ("streamsql/plan/", "streamsql/runtime/", "streamsql/features/verify/")

COUNTS = """
CREATE STREAM s (k STRING, v INT) USING values;
CREATE LIVE TABLE t AS SELECT k, count(*) AS n FROM s GROUP BY k;
INSERT INTO s VALUES ('a', 1), ('b', 3), ('c', 9);
AWAIT QUERY t IDLE;
"""
MORE = "INSERT INTO s VALUES ('a', 2); AWAIT QUERY ALL IDLE;"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, v FROM s WHERE v > least",
        "SELECT k, n + least AS m FROM t",
        "SELECT k, row_number() OVER (ORDER BY v) AS place FROM s WHERE v > least",
        "SELECT k, row_number() OVER (ORDER BY v) + `least` AS place FROM s",
        "SELECT k FROM few",
    ],
)
def test_a_kept_query_reads_no_variable_of_the_session(console: Console, query: str) -> None:
    console.run(f"{COUNTS} DECLARE OR REPLACE VARIABLE least INT DEFAULT 2;")
    console.run("CREATE TEMPORARY VIEW few AS SELECT k FROM t WHERE n < least;")
    with pytest.raises(StreamsqlError, match="kept reads the session variable least") as caught:
        console.run(f"CREATE LIVE TABLE kept AS {query};")
    assert caught.value.code == "SESSION_VARIABLE"
    assert "DEFINE least = '…'; and ${least}" in (caught.value.hint or "")
    assert [name for name, *_ in console.rows("SHOW LIVE TABLES;")] == ["t"]
    console.run("DEFINE least = '2';")
    with_value = re.sub("`?least`?", "${least}", query).replace("few", "t WHERE n < ${least}")
    console.run(f"CREATE LIVE TABLE kept AS {with_value};")


def test_a_select_reads_variables_of_the_session(console: Console) -> None:
    console.run(f"{COUNTS} DECLARE OR REPLACE VARIABLE least INT DEFAULT 2;")
    assert sorted(console.rows("SELECT k FROM s WHERE v > least;")) == [("b",), ("c",)]
    assert sorted(console.rows("SELECT k, n + least FROM t;")) == [("a", 3), ("b", 3), ("c", 3)]
    console.run("SET VAR least = 3;")
    assert console.rows("SELECT k FROM s WHERE v > least;") == [("c",)]


def test_a_column_comes_before_a_variable_of_its_name(console: Console) -> None:
    console.run(f"{COUNTS} DECLARE OR REPLACE VARIABLE v INT DEFAULT 100;")
    console.run("CREATE LIVE TABLE kept AS SELECT k FROM s WHERE v > 2; AWAIT QUERY kept IDLE;")
    assert sorted(console.rows("SELECT * FROM kept;")) == [("b",), ("c",)]


@pytest.mark.parametrize("query", ["SELECT * FROM t", "SELECT k FROM v WHERE n > 0"])
def test_a_global_view_over_live_tables_is_refused_with_a_view_that_follows(
    console: Console, query: str
) -> None:
    console.run(f"{COUNTS} CREATE TEMPORARY VIEW v AS SELECT * FROM t;")
    with pytest.raises(StreamsqlError, match="a global view cannot read streams and live tables") as caught:
        console.run(f"CREATE GLOBAL TEMPORARY VIEW g AS {query};")
    console.run(caught.value.proposal)
    console.run(MORE)
    assert sorted(console.rows("SELECT * FROM g;")) == sorted(console.rows(f"{query};"))


def test_a_global_view_over_streams_is_refused(console: Console) -> None:
    console.run(COUNTS)
    with pytest.raises(StreamsqlError, match="a global view cannot read streams") as caught:
        console.run("CREATE OR REPLACE GLOBAL TEMPORARY VIEW g AS SELECT k FROM s WHERE v > 1;")
    console.run(caught.value.proposal)
    assert sorted(console.rows("SELECT * FROM g;")) == [("b",), ("c",)]


def test_other_global_views_have_the_name_that_spark_gives_them(console: Console) -> None:
    [created] = console.run("CREATE GLOBAL TEMPORARY VIEW g AS SELECT 1 AS x;")
    assert created == Done(message="view global_temp.g created")
    assert console.rows("SELECT * FROM global_temp.g;") == [(1,)]
    assert console.rows("DESCRIBE global_temp.g;")[0][:2] == ("x", "INT")
    with pytest.raises(StreamsqlError, match="there is no stream, table or view g"):
        console.run("SELECT * FROM g;")
    console.run("DROP VIEW global_temp.g;")


def test_execute_immediate_reads_the_live_tables_of_now(console: Console) -> None:
    console.run(f"{COUNTS} CREATE TEMPORARY VIEW v AS SELECT k, n * 2 AS m FROM t;")
    console.run(MORE)
    assert sorted(console.rows("EXECUTE IMMEDIATE 'SELECT * FROM t';")) == [("a", 2), ("b", 1), ("c", 1)]
    assert console.rows("EXECUTE IMMEDIATE 'SELECT m FROM v WHERE k = ?' USING 'a';") == [(4,)]
    assert console.rows("BEGIN EXECUTE IMMEDIATE 'SELECT max(n) FROM t'; END;") == [(2,)]


def test_execute_immediate_of_a_joined_literal_and_of_one_with_parameters(console: Console) -> None:
    console.run(COUNTS)
    assert console.rows("EXECUTE IMMEDIATE 'SELECT max(n) ' 'FROM t';") == [(1,)]
    assert console.rows("EXECUTE IMMEDIATE 'SELECT k FROM t WHERE k = ''a''';") == [("a",)]
    joined = "EXECUTE IMMEDIATE 'SELECT max(IDENTIFIER(:c ''n'')) FROM IDENTIFIER(''t'')' USING 't.' AS c;"
    assert console.rows(joined) == [(1,)]
    with pytest.raises(StreamsqlError, match=r"missing '\)'"):
        console.run("EXECUTE IMMEDIATE 'SELECT max(n FROM t';")


def test_execute_immediate_over_a_stream_is_refused_with_the_statement(console: Console) -> None:
    console.run(COUNTS)
    with pytest.raises(StreamsqlError, match="EXECUTE IMMEDIATE runs no query over a stream") as caught:
        console.run("EXECUTE IMMEDIATE 'SELECT k FROM s WHERE v > 2';")
    assert sorted(console.rows(caught.value.proposal)) == [("b",), ("c",)]


def test_execute_immediate_of_a_variable_does_not_propose_the_name_that_was_written(console: Console) -> None:
    console.run(f"{COUNTS} DECLARE OR REPLACE VARIABLE written STRING DEFAULT 'SELECT * FROM t';")
    with pytest.raises(StreamsqlError, match="Spark does not see t here") as caught:
        console.run("EXECUTE IMMEDIATE written;")
    assert (caught.value.hint or "").startswith("SELECT … FROM t:")


def test_a_setting_with_which_no_query_is_split_is_named_with_the_way_back(console: Console) -> None:
    console.run("CREATE STREAM s (k STRING, v INT) USING values; SET spark.sql.groupByAliases = false;")
    places = "SELECT v, row_number() OVER (ORDER BY v DESC) AS place FROM s"
    for statement in (places, f"CREATE LIVE TABLE places AS {places}"):
        with pytest.raises(StreamsqlError, match="a window function") as caught:
            console.run(f"{statement};")
        way = (caught.value.hint or "").splitlines()[-1]
        assert way == "or: SET spark.sql.groupByAliases = true; then the query runs in stages"
    console.run(f"SET spark.sql.groupByAliases = true; CREATE LIVE TABLE places AS {places};")
    console.run("INSERT INTO s VALUES ('a', 1), ('b', 2); AWAIT QUERY places IDLE;")
    assert sorted(console.rows("SELECT * FROM places;")) == [(1, 2), (2, 1)]


def test_set_computes_what_reads_live_tables_again_and_names_the_other_queries(console: Console) -> None:
    console.run(
        """CREATE STREAM s (at TIMESTAMP) USING values;
        CREATE LIVE TABLE days AS SELECT date(at) AS d, count(*) AS n FROM s GROUP BY date(at);
        CREATE LIVE TABLE staged AS SELECT at, row_number() OVER (ORDER BY at) AS place FROM s;
        CREATE LIVE TABLE hours AS SELECT hour(at) AS h, place FROM staged;
        INSERT INTO s VALUES (TIMESTAMP'2024-03-31 12:30:00Z'); AWAIT QUERY ALL IDLE;"""
    )
    [result] = console.run("SET spark.sql.session.timeZone = 'Asia/Tokyo';")
    [keeping] = notes_of(result)
    assert keeping.startswith("days, staged still run with spark.sql.session.timeZone as it was before")
    console.run("AWAIT QUERY hours IDLE;")
    assert console.rows("SELECT h FROM hours;") == [(21,)]


def test_verify_says_that_the_batch_has_another_setting_than_the_query(console: Console) -> None:
    console.run(
        """SET spark.sql.session.timeZone = 'UTC'; CREATE STREAM s (at TIMESTAMP, n STRING) USING values;
        CREATE LIVE TABLE days AS SELECT date(at) AS d, count(*) AS n FROM s GROUP BY date(at);
        SET spark.sql.ansi.enabled = false; CREATE LIVE TABLE ints AS SELECT CAST(n AS INT) AS i FROM s;
        INSERT INTO s VALUES (TIMESTAMP'2024-03-31 23:30:00Z', 'x'); AWAIT QUERY ALL IDLE;
        SET spark.sql.session.timeZone = 'Asia/Tokyo'; SET spark.sql.ansi.enabled = true;"""
    )
    with pytest.raises(StreamsqlError, match="days has 1 row, 1 missing and 1 too many") as caught:
        console.run("VERIFY QUERY days;")
    sentence = "the query was started with spark.sql.session.timeZone = UTC, and the batch has Asia/Tokyo"
    assert sentence in (caught.value.detail or "")
    with pytest.raises(StreamsqlError, match="the value 'x'") as caught:
        console.run("VERIFY QUERY ints;")
    assert "started with spark.sql.ansi.enabled = false, and the batch has true" in (
        caught.value.detail or ""
    )
    console.run("SET spark.sql.session.timeZone = 'UTC'; SET spark.sql.ansi.enabled = false;")
    console.run("VERIFY QUERY days; VERIFY QUERY ints;")


COLLATED = """
CREATE STREAM s (k STRING COLLATE UTF8_LCASE, v INT) USING values;
CREATE STREAM p (k STRING, v INT) USING values;
"""
OF_COLLATED = [
    "SELECT lower(k) AS l, count(*) AS n, sum(v) AS total FROM s GROUP BY k",
    "SELECT lower(k) AS l FROM (SELECT DISTINCT k FROM s)",
    "SELECT lower(a.k) AS l, a.v, b.m FROM s a JOIN (SELECT k, max(v) AS m FROM s GROUP BY k) b ON a.k = b.k",
    "SELECT max(v) AS m FROM p GROUP BY k COLLATE UNICODE_CI",
    "SELECT v, lower(max(k)) AS l FROM s GROUP BY v",
    "SELECT lower(a.k) AS l, b.v FROM s a JOIN s b ON a.k = b.k",
]


@pytest.mark.parametrize("query", OF_COLLATED)
def test_texts_with_a_collation_are_grouped_as_spark_groups_them(console: Console, query: str) -> None:
    """Spark's state stores refuse such keys in the first micro-batch, once the query runs."""
    rows = ["('a', 1), ('A', 2)", "('B', 1)", "('b', 5), ('a', 1)"]
    console.run(f"{COLLATED} CREATE LIVE TABLE t AS {query};")
    for values in rows:
        console.run(f"INSERT INTO s VALUES {values}; INSERT INTO p VALUES {values};")
    console.run("AWAIT QUERY ALL IDLE;")
    console.run(f"CREATE TABLE all_rows AS SELECT * FROM VALUES {', '.join(rows)} AS r (k, v);")
    batch = f"WITH s AS (SELECT k COLLATE UTF8_LCASE AS k, v FROM all_rows), p AS (TABLE all_rows) {query}"
    assert sorted(console.rows("SELECT * FROM t;")) == sorted(console.rows(f"{batch};"))
    console.run("DROP TABLE all_rows;")


def test_what_cannot_run_in_stages_is_refused_before_it_starts(console: Console) -> None:
    console.run(COLLATED)
    for query in ("OUTPUT MODE UPDATE AS SELECT k, count(*) AS n FROM s GROUP BY k",
                  "AS SELECT DISTINCT ON (k) k, v FROM s"):  # fmt: skip
        with pytest.raises(StreamsqlError, match="a text with a collation") as caught:
            console.run(f"CREATE LIVE TABLE t {query};")
        assert caught.value.code == "NOT_ON_STREAMS"
    assert caught.value.hint == "CREATE LIVE TABLE all_s AS SELECT * FROM s; and the query over all_s"
    console.run("CREATE LIVE TABLE all_s AS SELECT * FROM s; INSERT INTO s VALUES ('a', 1), ('A', 1);")
    console.run("CREATE LIVE TABLE t AS SELECT DISTINCT ON (k) lower(k) AS l FROM all_s; AWAIT QUERY t IDLE;")
    assert console.rows("SELECT * FROM t;") == [("a",)]


def test_char_and_varchar_of_a_stream_are_read_as_string(console: Console, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"k": "a long text", "x": {"name": "b"}, "l": ["c"]}\n')
    [result] = console.run(
        f"""CREATE STREAM s (k VARCHAR(3), x STRUCT<name: CHAR(2) NOT NULL>, l ARRAY<VARCHAR(1)> COMMENT 'c')
        USING json OPTIONS (path '{tmp_path}/in');"""
    )
    assert notes_of(result) == (
        "k VARCHAR(3) is read as STRING: its length is not checked",
        "x STRUCT<name: CHAR(2) NOT NULL> is read as STRUCT<name: STRING NOT NULL>: it is not padded, and "
        "its length is not checked",
        "l ARRAY<VARCHAR(1)> is read as ARRAY<STRING>: its length is not checked",
    )
    assert console.rows("SELECT k, x.name, l[0] FROM s;") == [("a long text", "b", "c")]
    assert ("column k", "STRING") in console.rows("DESCRIBE STREAM s;")
    [plain] = console.run("CREATE STREAM plain (varchar VARCHAR) USING values;")
    assert notes_of(plain) == ()
    console.run("INSERT INTO plain VALUES ('x');")
    assert console.rows("SELECT varchar FROM plain;") == [("x",)]


def test_a_script_of_spark_does_not_write_into_streams(console: Console) -> None:
    console.run(COUNTS)
    with pytest.raises(
        StreamsqlError, match="s is a stream: a script of Spark does not write into it"
    ) as caught:
        console.run("BEGIN DECLARE i INT DEFAULT 1; INSERT INTO s VALUES ('w', i); END;")
    assert caught.value.hint == "INSERT INTO s … outside of BEGIN … END"
    with pytest.raises(StreamsqlError, match="cannot read the statement at 'LIVE'") as caught:
        console.run("BEGIN CREATE LIVE TABLE u AS SELECT k FROM s; END;")
    assert caught.value.hint == "statements of the console stand outside of BEGIN … END"
    console.run("BEGIN CREATE TABLE plain (k STRING); INSERT INTO plain VALUES ('x'); END;")
    assert console.rows("SELECT * FROM plain;") == [("x",)]
    console.run("DROP TABLE plain;")


@pytest.mark.parametrize(
    ("insert", "fact", "hint"),
    [
        ("VALUES ('x')", "the rows have 1 value, for 2 columns", "INSERT INTO name (column, …) names"),
        ("SELECT 'x', 1, 2", "the rows have 3 values, for 2 columns", ""),
    ],
)
def test_rows_of_another_width_are_counted(console: Console, insert: str, fact: str, hint: str) -> None:
    console.run(COUNTS)
    with pytest.raises(StreamsqlError, match=fact) as caught:
        console.run(f"INSERT INTO s {insert};")
    assert (caught.value.hint or "").startswith(hint) and bool(caught.value.hint) == bool(hint)
    console.run("INSERT INTO s (k) VALUES ('x');")


def test_stream_before_a_live_table_is_refused(console: Console) -> None:
    console.run(COUNTS)
    with pytest.raises(StreamsqlError, match="t is a live table, not a stream") as caught:
        console.run("SELECT * FROM STREAM t;")
    assert caught.value.hint == "WATCH t; or FROM t without STREAM"


@pytest.mark.parametrize(
    ("create", "hint"),
    [
        ("CREATE OR REPLACE TABLE t AS SELECT 1", "another name, or DROP LIVE TABLE t;"),
        ("CREATE OR REPLACE TEMPORARY VIEW s AS SELECT 1", "another name, or DROP STREAM s;"),
        ("CREATE OR REPLACE STREAM t (a INT) USING values", "another name, or DROP LIVE TABLE t;"),
        ("CREATE STREAM s (a INT) USING values", "CREATE OR REPLACE …, or DROP STREAM s;"),
        ("CREATE LIVE TABLE t AS SELECT k FROM s", "CREATE OR REPLACE …, or DROP LIVE TABLE t;"),
    ],
)
def test_a_name_in_use_is_offered_for_replacement_by_its_own_kind_only(
    console: Console, create: str, hint: str
) -> None:
    console.run(COUNTS)
    with pytest.raises(StreamsqlError, match="there is already a") as caught:
        console.run(f"{create};")
    assert caught.value.hint == hint
    if hint.startswith("CREATE OR REPLACE"):
        console.run(f"{create.replace('CREATE', 'CREATE OR REPLACE')};")


TABLES = """
CREATE STREAM s (k STRING, v INT) USING values; CREATE TABLE d (k STRING, name STRING);
INSERT INTO d VALUES ('a', 'Anna'); CREATE TEMPORARY VIEW named AS SELECT * FROM default.d;
CREATE LIVE TABLE t AS SELECT k, count(*) AS n FROM s GROUP BY k;
CREATE LIVE TABLE j AS SELECT t.k, t.n, d.name FROM t JOIN d USING (k);
CREATE LIVE TABLE over_view AS SELECT t.k, named.name FROM t JOIN named ON t.k = named.k;
CREATE LIVE TABLE over_j AS SELECT count(*) AS c FROM j;
CREATE LIVE TABLE once AS SELECT s.k, s.v, d.name FROM s JOIN d USING (k);
INSERT INTO s VALUES ('a', 1), ('b', 3); AWAIT QUERY ALL IDLE;
"""


@pytest.fixture
def tables(console: Console) -> Iterator[Console]:
    console.run(TABLES)
    yield console
    console.run("STOP QUERY ALL; DROP VIEW IF EXISTS named; DROP TABLE IF EXISTS d;")


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("INSERT INTO d VALUES ('b', 'Bert')", [("a", "Anna"), ("b", "Bert")]),
        ("INSERT INTO default.d SELECT k, 'x' FROM t WHERE k = 'b'", [("a", "Anna"), ("b", "x")]),
        ("INSERT OVERWRITE d VALUES ('b', 'Ben')", [("b", "Ben")]),
        ("TRUNCATE TABLE d", []),
        ("BEGIN INSERT INTO d VALUES ('b', 'y'); END", [("a", "Anna"), ("b", "y")]),
    ],
)
def test_what_reads_live_tables_follows_a_table_of_spark(
    tables: Console, statement: str, rows: list[object]
) -> None:
    assert tables.rows("SELECT k, name FROM j;") == [("a", "Anna")]
    tables.run(f"{statement}; AWAIT QUERY ALL IDLE;")
    assert sorted(tables.rows("SELECT k, name FROM j;")) == rows
    assert sorted(tables.rows("SELECT * FROM over_view;")) == rows
    assert tables.rows("SELECT * FROM over_j;") == [(len(rows),)]


def test_a_query_of_a_stream_and_a_table_that_is_overwritten_is_named(tables: Console) -> None:
    [added] = tables.run("INSERT INTO d VALUES ('b', 'Bert');")
    assert notes_of(added) == ()
    tables.run("INSERT INTO s VALUES ('b', 4); AWAIT QUERY once IDLE;")
    assert sorted(tables.rows("SELECT * FROM once;")) == [("a", 1, "Anna"), ("b", 4, "Bert")]
    [result] = tables.run("INSERT OVERWRITE d VALUES ('a', 'Ada');")
    [note] = notes_of(result)
    assert note.startswith("once still runs with the table d as it was before")
    tables.run(note.partition(": ")[2].partition("; starts")[0] + "; INSERT INTO s VALUES ('a', 5);")
    tables.run("AWAIT QUERY once IDLE;")
    assert ("a", 5, "Ada") in tables.rows("SELECT * FROM once;")


def test_dropping_a_table_names_what_cannot_start_without_it(tables: Console) -> None:
    [result] = tables.run("DROP TABLE d;")
    assert notes_of(result) == ("j, once, over_view still use d, and cannot be started again without it",)
    assert tables.rows("SELECT k, name FROM j;") == [("a", "Anna")]


def test_a_table_that_is_overwritten_while_it_is_read_fails_nothing(tables: Console) -> None:
    tables.run("STOP QUERY once;")
    for number in range(8):  # SET begins to compute j, and the statement behind it deletes the files
        tables.run(f"SET spark.sql.session.timeZone = 'Etc/GMT-{number}';")
        tables.run(f"INSERT OVERWRITE d VALUES ('a', '{number}');")
    tables.run("AWAIT QUERY j IDLE; AWAIT QUERY over_view IDLE; AWAIT QUERY over_j IDLE;")
    assert tables.rows("SELECT k, name FROM j;") == [("a", "7")]
    assert tables.rows("SELECT name FROM over_view;") == [("7",)]
