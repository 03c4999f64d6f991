"""What reads no stream and no live table goes to Spark as it was written: its answer is that of spark.sql."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Console

from streamsql.calls import text_of
from streamsql.catalog import Catalog
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse_script
from streamsql.language.statements.spark import Spark
from streamsql.plan.context import Context
from streamsql.plan.lowering.as_written import changed_language
from streamsql.plan.planner import plan
from streamsql.plan.plans import Collect, Run
from streamsql.results import Done, Text

ROOMS = ("streamsql/language/", "streamsql/plan/")

SETUP = """
CREATE TABLE nums (id INT, word STRING) USING parquet;
INSERT INTO nums VALUES (1, 'one'), (2, 'two'), (3, 'three');
"""
OWN = "CREATE STREAM ticks USING rate; CREATE LIVE TABLE counts AS SELECT count(*) AS n FROM ticks;"
QUERIES = [
    "SELECT count(*) AS n FROM nums HAVING 1",
    "SELECT id FROM nums a GROUP BY id HAVING count(*) = (SELECT count(*) FROM nums b WHERE b.id = a.id) ORDER BY id",
    "SELECT word, count(*) OVER w2 AS n FROM nums WINDOW w1 AS (PARTITION BY word), w2 AS w1 ORDER BY word",
    "SELECT id AS `state`, word stream FROM nums ORDER BY ALL",
    "FROM nums SELECT id WHERE id > 1 ORDER BY id",
    "FROM nums |> WHERE id > 1 |> SELECT id |> ORDER BY id",
    "SELECT DISTINCT word FROM nums JOIN (SELECT 1 AS id) USING (id)",
    "SELECT /*+ BROADCAST(b) */ a.id FROM nums a JOIN nums b ON a.id = b.id ORDER BY 1",
    "VALUES (1, 'a'), (2, 'b')",
    "TABLE nums ORDER BY id DESC LIMIT 1",
    "SELECT \"word\" AS w, 'it''s' AS q",
    "SELECT 7 / 2 AS q, CAST(id AS STRING), m['a'] FROM (SELECT 1 AS id, map('a', 2) AS m)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_text_is_handed_to_spark(query: str) -> None:
    context, planned = Context(Catalog()), None
    for statement in parse_script(Source("a.sql", f"{OWN} {query};")):
        planned = plan(statement, context)
        context = Context(planned.applied(context.catalog))
    assert isinstance(planned, Collect)
    assert text_of(planned.program) == query


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT ON (word) word, id FROM nums",
        "SELECT * FROM TUMBLE(TABLE nums, DESCRIPTOR(at), INTERVAL 1 MINUTE)",
        "SELECT * FROM counts",
        "SELECT * FROM nums JOIN (SELECT n AS id FROM counts) USING (id)",
        "SELECT * FROM ticks",
        "SELECT * FROM STREAM nums",
        "SELECT id FROM nums WHERE id IN (SELECT n FROM counts)",
    ],
)
def test_what_spark_has_not_is_planned(query: str) -> None:
    context, planned = Context(Catalog()), None
    for statement in parse_script(Source("a.sql", f"{OWN} {query};")):
        planned = plan(statement, context)
        context = Context(planned.applied(context.catalog))
    assert isinstance(planned, (Collect, Run))
    assert text_of(planned.program) != query


def test_under_a_setting_that_changes_the_language_a_query_over_a_stream_is_a_text() -> None:
    changed = changed_language({"spark.sql.caseSensitive": "TRUE", "spark.sql.groupByOrdinal": "true"})
    assert changed == ("spark.sql.caseSensitive",)
    context, planned = Context(Catalog(), changed_language=changed), None
    for statement in parse_script(Source("a.sql", f"{OWN} SELECT value FROM ticks WHERE value > 1;")):
        planned = plan(statement, context)
        context = Context(planned.applied(context.catalog), changed_language=changed)
    assert isinstance(planned, Run)
    assert text_of(planned.program) == "SELECT value FROM ticks WHERE value > 1"
    assert planned.as_text == "spark.sql.caseSensitive changes what the text means"


def test_a_stream_is_not_named_in_double_quotes() -> None:
    changed = changed_language({"spark.sql.ansi.doubleQuotedIdentifiers": "true"})
    context = Context(Catalog(), changed_language=changed)
    with pytest.raises(StreamsqlError, match='"ticks" is not planned as the name of a relation'):
        for statement in parse_script(Source("a.sql", f'{OWN} SELECT value FROM ("ticks");')):
            planned = plan(statement, context)
            context = Context(planned.applied(context.catalog), changed_language=changed)


def test_answers_are_those_of_spark(console: Console, spark: Any) -> None:
    console.run(SETUP)
    for query in QUERIES:
        expected = [tuple(row) for row in spark.sql(query).collect()]
        assert console.rows(f"{query};") == expected, query


@pytest.mark.parametrize(
    "having",
    [
        "EXISTS (SELECT 1 FROM nums WHERE id < min(a.v))",
        "(SELECT max(id) FROM nums WHERE id < max(v)) = 2",
    ],
)
def test_a_query_in_having_aggregates_columns_of_the_groups(
    console: Console, spark: Any, having: str
) -> None:
    values = "(1, 1), (1, 3), (2, 2), (3, 3)"
    console.run(f"{SETUP} CREATE STREAM s (k INT, v INT) USING values; INSERT INTO s VALUES {values};")
    query = f"SELECT k, min(v) AS low FROM {{}} AS a GROUP BY k HAVING {having}"
    expected = sorted(map(tuple, spark.sql(query.format(f"(VALUES {values} AS w (k, v))")).collect()))
    assert expected
    console.run(f"CREATE LIVE TABLE t AS {query.format('s')}; AWAIT QUERY t IDLE;")
    assert sorted(console.rows("SELECT * FROM t;")) == expected


def test_names_given_by_identifier(console: Console, spark: Any) -> None:
    (created, written, *_) = console.run(
        "CREATE TABLE IDENTIFIER('t' || 'b') (a INT) USING parquet; INSERT INTO IDENTIFIER('t' || 'b') VALUES (1);"
        "SELECT * FROM tb;"
    )
    assert isinstance(created, Done) and created.message == "table tb created"
    assert console.rows("SELECT * FROM IDENTIFIER('tb');") == [(1,)]
    (dropped,) = console.run("DROP TABLE IDENTIFIER('t' || 'b');")
    assert isinstance(dropped, Done) and dropped.message == "table tb dropped"
    console.run("DECLARE VARIABLE name STRING DEFAULT 'tc';")
    (created,) = console.run("CREATE TABLE IDENTIFIER(name) (a INT) USING parquet;")
    assert isinstance(created, Done)
    assert spark.catalog.tableExists("tc")


def test_variables_of_spark_are_those_of_the_console(console: Console) -> None:
    console.run("SET hivevar:first = 'c'; SET hivevar:one = 1;")  # the quotes belong to the value
    assert console.rows("SELECT IDENTIFIER(${first} || '_1') FROM VALUES (1) AS t(c_1);") == [(1,)]
    assert console.rows("SELECT ${hivevar:one} + 1, '${one}';") == [(2, "1")]


def test_table_reads_streams_too(console: Console) -> None:
    console.run("CREATE STREAM s (a INT) USING values; INSERT INTO s VALUES (3); " + SETUP)
    assert console.rows("TABLE s;") == [(3,)]
    assert len(console.rows("TABLE nums;")) == 3


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("kind", ["", "FORMATTED", "LOGICAL", "EXTENDED"])
def test_explain_of_what_spark_cannot_plan_fails(console: Console, kind: str) -> None:
    console.run("CREATE TABLE t_int (a INT) USING parquet;")
    for statement, code in (
        ("INSERT INTO nosuch SELECT 1", "TABLE_OR_VIEW_NOT_FOUND"),
        ("CREATE TABLE x AS SELECT nosuch FROM t_int", "UNRESOLVED_COLUMN"),
        ("INSERT INTO t_int SELECT 'a' AS a FROM t_int", "INCOMPATIBLE_DATA_FOR_TABLE"),
    ):
        with pytest.raises(StreamsqlError) as caught:
            console.run(f"EXPLAIN {kind} {statement};")
        assert caught.value.code.startswith(code)
        assert caught.value.span


def test_a_table_whose_name_needs_backticks_is_created(console: Console) -> None:
    (created,) = console.run("CREATE TABLE IF NOT EXISTS `2024` (a INT) USING parquet;")
    assert isinstance(created, Done) and created.message == "table 2024 created"
    console.run("DROP TABLE IF EXISTS `2024`;")


def test_explain_runs_nothing(console: Console) -> None:
    console.run(SETUP)
    for kind in ("", "FORMATTED", "EXTENDED", "COST", "CODEGEN", "LOGICAL"):
        for statement in ("DROP TABLE nums", "INSERT INTO nums VALUES (4, 'four')", "SELECT * FROM nums"):
            (shown,) = console.run(f"EXPLAIN {kind} {statement};")
            assert isinstance(shown, Text) and shown.text, (kind, statement)
    assert console.rows("SELECT count(*) FROM nums;") == [(3,)]


@pytest.mark.parametrize("kind", ["", "FORMATTED", "EXTENDED", "COST"])
def test_explain_shows_what_spark_shows(console: Console, spark: Any, kind: str) -> None:
    (shown,) = console.run(f"EXPLAIN {kind} DROP TABLE IF EXISTS nobody;")
    ((expected,),) = spark.sql(f"EXPLAIN {kind} DROP TABLE IF EXISTS nobody").collect()
    assert isinstance(shown, Text)
    assert re.sub("@[0-9a-f]+", "@", shown.text) == re.sub("@[0-9a-f]+", "@", expected).rstrip("\n")


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("SELCT 1", "there is no statement SELCT", "did you mean SELECT?"),
        ("CREATE STRAEM s USING rate", "expected STREAM, found STRAEM", "did you mean STREAM?"),
        ("RESTORE TABLE nums TO VERSION AS OF 1", "there is no statement RESTORE", ""),
    ],
)
def test_an_unknown_statement_is_sparks_to_refuse(
    console: Console, statement: str, message: str, hint: str
) -> None:
    (read,) = parse_script(Source("a.sql", f"{statement};"))
    assert isinstance(read, Spark)
    with pytest.raises(StreamsqlError) as raised:
        console.run(f"{statement};")
    assert raised.value.message == message
    assert hint in raised.value.hint


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "insert",
    [
        "WITH q AS (SELECT id, word FROM words_in) INSERT INTO out SELECT id + 1 AS id, word FROM q",
        "FROM words_in INSERT INTO out SELECT id + 1 AS id, word WHERE id > 0",
        "WITH q AS (SELECT * FROM words_in) FROM q INSERT INTO out SELECT id + 1 AS id, word",
        "FROM words_in INSERT INTO out SELECT * EXCEPT (id), id + 1 AS id",
        "INSERT INTO out SELECT id + 1 AS id, word FROM words_in",
    ],
)
def test_an_insert_may_begin_with_its_query(console: Console, insert: str) -> None:
    console.run(
        "CREATE STREAM words_in (id INT, word STRING) USING values; INSERT INTO words_in VALUES (1, 'a'), (2, 'b');"
        f"CREATE LIVE TABLE seen AS SELECT count(*) AS n FROM words_in; CREATE SINK out USING memory; {insert};"
        "AWAIT QUERY out IDLE;"
    )
    assert sorted(console.rows("SELECT id, word FROM out;")) == [(2, "a"), (3, "b")]


def test_several_inserts_behind_one_from_run_as_one_query(console: Console) -> None:
    console.run(
        "CREATE STREAM words_in (id INT, word STRING) USING values; INSERT INTO words_in VALUES (1, 'a'), (2, 'b');"
        "CREATE SINK low USING memory; CREATE SINK high USING memory;"
        "FROM words_in INSERT INTO low AS QUERY both SELECT id WHERE id < 2 INSERT INTO high SELECT word WHERE id >= 2;"
        "AWAIT QUERY both IDLE;"
    )
    assert console.rows("SELECT * FROM low;") == [(1,)]
    assert console.rows("SELECT * FROM high;") == [("b",)]


def test_several_inserts_into_tables_of_spark(console: Console) -> None:
    console.run(
        SETUP + "CREATE TABLE a (id INT) USING parquet; CREATE TABLE b (word STRING) USING parquet;"
        "FROM nums INSERT INTO a SELECT id WHERE id = 1 INSERT INTO b SELECT word WHERE id = 2;"
    )
    assert console.rows("SELECT id, word FROM a, b;") == [(1, "two")]


def test_a_view_and_a_table_as_select_are_created_as_written(console: Console, tmp_path: Path) -> None:
    console.run(
        SETUP + "CREATE TEMPORARY VIEW v AS SELECT count(*) AS n FROM nums HAVING 1;"
        "CREATE TABLE copied USING parquet AS SELECT * FROM nums WHERE id < 3;"
    )
    assert console.rows("SELECT n FROM v;") == [(3,)]
    assert console.rows("SELECT count(*) FROM copied;") == [(2,)]
