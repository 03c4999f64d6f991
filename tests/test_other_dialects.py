"""What Spark takes runs as it is written; words of other dialects are proposed in Spark's after a failure, and each
proposal and hint works when it is typed.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from conftest import Console
from dialect_cases import TRANSLATIONS
from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException

from streamsql.errors import Span, StreamsqlError
from streamsql.language.dialects.functions import other_functions, reason
from streamsql.language.dialects.statements import habits
from streamsql.language.dialects.translation import in_spark
from streamsql.output.document import Style
from streamsql.output.info_tables import info_document
from streamsql.results import Started

ROOMS = ("streamsql/language/", "streamsql/runtime/")

STREAMS = """
CREATE STREAM s (user STRING, v INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
CREATE STREAM words (word STRING, n INT) USING values;
INSERT INTO s VALUES ('a b', 5, '2024-05-01 12:01:00'), ('a b', 5, '2024-05-01 12:02:00'),
  ('c', 3, '2024-05-01 12:04:00'), ('c', 4, '2024-05-01 12:06:00'), ('c', NULL, '2024-05-01 12:06:30');
INSERT INTO s VALUES ('z', 9, '2024-05-01 15:00:00');
INSERT INTO words VALUES ('a', 1), ('b', 2);
"""
COUNTS = "SELECT user, window_start, window_end, count(*) AS n FROM TUMBLE(s, ts, INTERVAL '5' MINUTE) GROUP BY 1, 2, 3"

# (query; condition on its rows; rows; a part of a note)
FORMS: list[tuple[str, list[tuple[Any, ...]], str]] = [
    (
        "SELECT date_format(window_start, 'HH:mm') AS w, count(*) AS n FROM TUMBLE(s, ts, INTERVAL '5' MINUTE) "
        "GROUP BY window_start, window_end",
        [("12:00", 3), ("12:05", 2), ("15:00", 1)],
        "TUMBLE is read as window(ts, '5 minute')",
    ),
    (
        "SELECT date_format(window_start, 'HH:mm') AS w, count(*) AS n FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), "
        "INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)) GROUP BY window_start, window_end",
        [("11:55", 3), ("12:00", 5), ("12:05", 2), ("14:55", 1), ("15:00", 1)],
        "HOP is read as window(ts, '10 minute', '5 minute')",
    ),
    (
        "SELECT count(*) AS n FROM HOP(s, ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE) GROUP BY window_start",
        [(1,), (1,), (2,), (3,), (5,)],
        "HOP is read as window(ts, '10 minute', '5 minute')",
    ),
    (
        f"SELECT date_format(window_start, 'HH:mm') AS w, max(n) AS n FROM ({COUNTS}) GROUP BY window_start, window_end",
        [("12:00", 2), ("12:05", 2)],  # append: the watermark has not passed 15:05
        "TUMBLE is read as",
    ),
    (
        "SELECT count(*) AS n FROM s GROUP BY tumble(interval '10 minutes')",
        [(1,), (5,)],
        "tumble(interval '10 minutes') is read as window(ts, '10 minutes')",
    ),
    (
        "SELECT date_format(w.start, 'HH:mm') AS w, count(*) AS n FROM "
        "(SELECT hop(interval '5 minutes', interval '10 minutes') AS w, user FROM s) GROUP BY w",
        [("11:55", 3), ("12:00", 5), ("12:05", 2), ("14:55", 1), ("15:00", 1)],
        "is read as window(ts, '10 minutes', '5 minutes')",
    ),
    (
        "SELECT user, count(DISTINCT v) AS n, count(DISTINCT v, user) FILTER (WHERE v > 3) AS m FROM s "
        "GROUP BY user, window(ts, '10 minutes')",
        [("a b", 1, 1), ("c", 2, 1), ("z", 1, 1)],
        "count(DISTINCT v) is read as CAST(size(collect_set(v)) AS BIGINT)",
    ),
    (
        "SELECT date_format(TUMBLE_START(ts, INTERVAL '5' MINUTE), 'HH:mm') AS s, "
        "date_format(TUMBLE_END(ts, INTERVAL '5' MINUTE), 'HH:mm') AS e, count(*) AS n FROM s "
        "GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE)",
        [("12:00", "12:05", 3), ("12:05", "12:10", 2), ("15:00", "15:05", 1)],
        "TUMBLE_START(ts, INTERVAL '5' MINUTE) is read as window(ts, '5 minute').start",
    ),
    (
        "SELECT user, window(ts, '5 minutes').start AS w, count(*) AS n FROM s WHERE v = 5 "
        "GROUP BY window(ts, '5 minutes'), user",
        [("a b", datetime(2024, 5, 1, 12, 0), 2)],
        "",
    ),
    (
        "SELECT user, date_format(SESSION_START(ts, INTERVAL '1' MINUTE), 'HH:mm') AS s, count(*) AS n FROM s "
        "WHERE user = 'c' GROUP BY SESSION(ts, INTERVAL '1' MINUTE), user",
        [("c", "12:04", 1), ("c", "12:06", 2)],
        "is read as session_window(ts, '1 minute').start",
    ),
    ("SELECT v div 2 AS h, v / 2 AS f FROM s WHERE v = 9", [(4, 4.5)], "v div 2 has none"),
    ('SELECT "user" AS u, `user` AS w FROM s WHERE v = 9', [("user", "z")], "the column is `user`"),
]


def run_now(console: Console, query: str) -> tuple[list[tuple[Any, ...]], str]:
    """The rows of a query as a live table over all input, and its notes."""
    started = console.run(f"CREATE OR REPLACE LIVE TABLE t TRIGGER AVAILABLE NOW AS {query}; AWAIT QUERY t;")[
        0
    ]
    assert isinstance(started, Started)
    return sorted(console.rows("SELECT * FROM t;"), key=repr), "\n".join(n.text for n in started.notes)


@pytest.mark.slow
def test_each_form_gives_its_rows_and_says_how_it_is_read(console: Console) -> None:
    console.run(STREAMS)
    for query, rows, note in FORMS:
        found, notes = run_now(console, query)
        assert found == sorted(rows, key=repr), query
        assert note in notes, query


ARGUMENTS = {
    "list": "array(3, 1)", "other": "array(2)", "value": "1", "f": "x -> x > 1", "number": "2", "text": "'a,b'",
    "delimiter": "','", "pattern": "'a'", "start": "'2024-01-01'", "end": "'2024-01-02'", "json": "'{}'",
    "path": "'$.a'", "key": "'k'", "time": "now()", "part": "0.5", "'unit'": "'day'", "unit": "DAY", "new": "'b'",
    "'%format'": "'%Y-%m'", "interval": "INTERVAL '5' MINUTE", "origin": "'2024-01-01'", "type": "INT", "row": "t",
    "begin": "1", "last": "2", "condition": "1 > 0",
    "struct": "struct(1 AS a)", "field": "'a'", "zone": "'UTC'",
    "length": "1 DAY", "'length'": "'5 minutes'", "'pattern'": "'a'", "'number'": "17145657",
}  # fmt: skip
FURTHER = {"generate_series": "1, 3", "list_value": "1, 2"}


def test_each_function_of_another_console_is_one_of_spark(spark: Any) -> None:
    for row in [row for rows in other_functions().values() for row in rows]:
        takes = ", ".join(" ".join(ARGUMENTS.get(item, item) for item in items) for items in row.takes)
        further = FURTHER.get(row.name, "'a', 1")
        call = f"{row.name}({takes.replace('…', further)})"
        own = in_spark(f"SELECT {call}", "flink", same=True)
        if row.refusal:
            assert reason(row.name) == row.refusal
            continue
        assert own and own != f"SELECT {call}", call
        assert spark.sql(f"{own} FROM (SELECT 1 AS a) t").schema, (call, own)


def test_a_text_among_the_arguments_tells_rows_apart() -> None:
    for call, own in (
        ("encode(a, 'hex')", "lower(hex(a))"),
        ("encode(a, 'base64')", "base64(a)"),
        ("epoch_ms(1714565706000)", "timestamp_millis(1714565706000)"),
        ("epoch_ms(ts)", "unix_millis(ts)"),
    ):
        assert in_spark(f"SELECT {call}", "duckdb") == f"SELECT {own}"


def test_an_unknown_function_is_answered(console: Console) -> None:
    for call, hint in (
        ("pg_sleep(1)", "AWAIT QUERY waits for a query"),
        ("list_aggregate(array(1), 'avg')", "aggregate(list, CAST(0 AS DOUBLE), (s, e) -> s + e)"),
        ("date_fromat(now(), 'yyyy')", "did you mean date_format?"),
    ):
        fault = refusal(console, f"SELECT {call}")
        assert fault.message == f"there is no function {call.partition('(')[0]}"
        assert fault.hint == hint


def test_a_table_that_cannot_be_replaced_is_dropped_first(console: Console) -> None:
    console.run("CREATE TABLE made_again AS SELECT 1 AS a;")
    fault = refusal(console, "CREATE OR REPLACE TABLE made_again AS SELECT 1 AS a")
    assert fault.hint == "DROP TABLE IF EXISTS made_again; CREATE TABLE made_again AS SELECT 1 AS a;"
    console.run(fault.hint + "DROP TABLE made_again;")


def refusal(console: Console, statement: str) -> StreamsqlError:
    with pytest.raises(StreamsqlError) as caught:
        console.run(statement + ";")
    return caught.value


TOP = "SELECT user, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user ORDER BY {}) AS rn FROM s) WHERE rn = 1"


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("order", "hint", "rows"),
    [
        ("v DESC", "max_by(struct(*), v)", [("a b", 5), ("c", 4), ("z", 9)]),
        ("v", "min_by(struct(*), v)", [("a b", 5), ("c", 3), ("z", 9)]),
        ("v DESC, ts", "max_by(struct(*), struct(v, -unix_micros(ts)))", [("a b", 5), ("c", 4), ("z", 9)]),
    ],
)
def test_the_hint_for_the_best_row_of_each_key_is_typed(
    console: Console, order: str, hint: str, rows: list[tuple[Any, ...]]
) -> None:
    console.run(STREAMS + "SET streamsql.stages = off;")
    fault = refusal(console, f"CREATE LIVE TABLE t AS {TOP.format(order)}")
    assert hint in fault.hint
    found, _ = run_now(console, fault.hint.splitlines()[0])
    assert [(user, v) for user, v, _ in found] == rows
    assert console.session.parts.queries.all["t"].mode == "update"
    console.run("SET streamsql.stages = on;")
    staged, notes = run_now(console, TOP.format(order))
    assert (staged[0], staged[2]) == (rows[0], rows[2])
    assert f"one query keeps less state, and leaves out NULL: {fault.hint.splitlines()[0]}" in notes


@pytest.mark.slow
def test_hints_name_what_is_wrong_and_work(console: Console) -> None:
    console.run(STREAMS + "CREATE SINK j USING memory;")
    missing = refusal(console, "INSERT INTO j SELECT price FROM nosuch")
    assert missing.message == "there is no stream nosuch"
    quoted = refusal(console, 'SELECT "s"."user" AS "who" FROM "s" WHERE v = 9')
    assert quoted.proposal == "SELECT `s`.`user` AS `who` FROM `s` WHERE v = 9;"
    assert run_now(console, quoted.proposal[:-1])[0] == [("z",)]
    view = refusal(console, "CREATE VIEW nines AS SELECT * FROM s WHERE v = 9")
    console.run(view.hint)
    assert run_now(console, "SELECT user FROM nines")[0] == [("z",)]
    console.run("CREATE LIVE TABLE kept AS SELECT user, v FROM nines; AWAIT QUERY kept IDLE;")
    kept = refusal(console, "CREATE VIEW of_kept AS SELECT max(v) AS most FROM kept")
    assert kept.message == "a view that is kept cannot read the live table kept"
    console.run(f"{kept.hint} AWAIT QUERY of_kept IDLE;")
    assert console.rows("SELECT * FROM of_kept;") == [(9,)]


def test_in_over_a_stream_is_refused_at_the_in(console: Console) -> None:
    console.run(STREAMS)
    statement = (
        "CREATE LIVE TABLE t OUTPUT MODE APPEND AS SELECT v FROM s WHERE v IN (SELECT n * 4 + 1 FROM words)"
    )
    fault = refusal(console, statement)
    assert fault.span
    assert statement[fault.span.start : fault.span.end] == "IN (SELECT n * 4 + 1 FROM words)"
    create, _, condition = fault.hint.splitlines()[0].partition("; and ")
    console.run(f"{create}; AWAIT QUERY wanted IDLE;")
    assert sorted(console.rows(f"SELECT v FROM s WHERE v {condition}")) == [(5,), (5,), (9,)]


def test_drop_query_all(console: Console) -> None:
    console.run(STREAMS + "CREATE SINK m USING memory; INSERT INTO m SELECT n FROM words;")
    run_now(console, "SELECT word FROM words")
    [dropped] = console.run("DROP QUERY ALL;")
    assert dropped.message == "queries m, t dropped, with the live table t"  # type: ignore[attr-defined]
    assert console.rows("SHOW QUERIES;") == []
    assert [row[0] for row in console.rows("SHOW LIVE TABLES;")] == ["m"]


# (an expression; what a note says of it, "" for no note)
MEANINGS = [
    ("5 ^ 2", ""),
    ("log(10)", ""),
    ("l[1]", ""),
    ("count(CASE WHEN \"n\" = '1' THEN 1 END)", '"n" is a string; the column is `n`'),
    ('upper("n")', '"n" is a string; the column is `n`'),
    ("d > \"2024-01-01\"", ""),
]  # fmt: skip


def test_a_name_in_double_quotes_that_is_compared_tells_the_column(console: Console) -> None:
    console.run(
        "CREATE STREAM s (n INT, l ARRAY<INT>, d DATE) USING values; CREATE LIVE TABLE t AS SELECT * FROM s;"
        "INSERT INTO s VALUES (1, array(7, 8), date'2024-05-05'); AWAIT QUERY t IDLE;"
    )
    source = "FROM t"
    for expression, said in MEANINGS:
        [rows] = console.run(f"SELECT {expression} {source};")
        notes = [n.text for n in rows.notes]
        assert [n[: len(said)] for n in notes] == [said] * bool(said), expression


def test_patterns_of_similar_to(console: Console) -> None:
    for text, pattern, like in (
        ("abc", "a_c", True),
        ("ac", "a_c", False),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        ("abc", "(a|x)%", True),
        ("a_c", "a[_]c", True),
        ("abbc", "ab+c", True),
        ("a_bc", "a_b.*", True),  # a regular expression of DuckDB
        ("axbc", "a_b.*", False),
    ):
        fault = refusal(console, f"SELECT '{text}' SIMILAR TO '{pattern}'")
        assert console.rows(fault.proposal) == [(like,)], (text, pattern)


def test_tables_without_data(console: Console) -> None:
    console.run("CREATE TABLE no_rows AS SELECT 1 AS a, 'x' AS b WITH NO DATA;")
    assert console.rows("SELECT count(*) FROM no_rows;") == [(0,)]
    console.run("DROP TABLE no_rows;")


def test_trunc_of_numbers_is_proposed_and_that_of_dates_is_sparks(console: Console) -> None:
    for call, value in (
        ("trunc(2.7)", 2),
        ("trunc(-2.7)", -2),
        ("trunc(-1.77, 1)", Decimal("-1.7")),
        ("trunc(1234, -2)", Decimal(1200)),
        ("trunc(CAST('0.29' AS DECIMAL(9, 4)), 2)", Decimal("0.29")),
    ):
        assert console.rows(refusal(console, f"SELECT {call}").proposal) == [(value,)], call
    assert console.rows("SELECT trunc(date'2026-05-06', 'MM');") == [(date(2026, 5, 1),)]


def test_any_of_a_column_with_a_list_is_answered(console: Console) -> None:
    source = "FROM (SELECT array('x') AS l, 'x' AS v)"
    fault = refusal(console, f"SELECT 1 AS a, v = ANY (l) AS b {source}")
    assert fault.message == "Spark compares with ANY (…) no list"
    assert fault.proposal == f"SELECT 1 AS a, array_contains(l, v) AS b {source};"
    assert fault.span == Span(15, 26)
    assert console.rows(fault.proposal) == [(1, True)]


@pytest.mark.slow
def test_distinct_on_with_an_order_is_answered_with_the_query_that_chooses(console: Console) -> None:
    console.run(STREAMS + "CREATE TEMPORARY VIEW chosen AS SELECT 'c' AS user, explode(array(3, 4)) AS v;")
    for relation, columns in (
        ("s", "user, v"),
        ("chosen", "*"),
    ):
        fault = refusal(
            console,
            f"SELECT DISTINCT ON (user) {columns} FROM {relation} WHERE user = 'c' ORDER BY user, v DESC LIMIT 3",
        )
        assert fault.hint == (
            f"SELECT {columns} FROM {relation} WHERE user = 'c' "
            "QUALIFY row_number() OVER (PARTITION BY user ORDER BY v DESC) = 1 ORDER BY user LIMIT 3;"
        )
        assert console.rows(fault.proposal) == [("c", 4)]
    assert console.rows("SELECT DISTINCT ON (v) v FROM chosen ORDER BY v;") == [(3,), (4,)]


def test_an_alias_before_its_value_that_spark_reads_as_a_path_is_answered(console: Console) -> None:
    source = "FROM (SELECT 7 AS v, parse_json('[3]') AS j)"
    fault = refusal(console, f"SELECT n: v + 1, j:[0]::INT {source}")
    assert fault.proposal == f"SELECT v + 1 AS n, j:[0]::INT {source};"
    assert console.rows(fault.proposal) == [(8, 3)]


def test_the_tables_are_listed_after_a_select_in_stages(console: Console) -> None:
    console.run("CREATE STREAM st (k STRING, v INT) USING values; INSERT INTO st VALUES ('a', 1), ('b', 2);")
    assert console.rows("SELECT k, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM st;")
    assert [name for name, *_ in console.rows("SHOW TABLES LIKE 's%';")] == ["st"]


def test_tables_and_views_are_told_described_and_listed(console: Console) -> None:
    for statement, told in (
        ("CREATE TABLE told (a INT, t TIMESTAMP)", "table told created"),
        ("CREATE TABLE IF NOT EXISTS told (a INT)", "table told already exists"),
        ("CREATE VIEW of_told AS SELECT a FROM told", "view of_told created"),
        ("CREATE OR REPLACE TEMP VIEW of_now AS SELECT 1 AS b", "view of_now created"),
    ):
        assert console.run(f"{statement};")[0].message == told
    described = "\n".join(info_document(console.run("SHOW told;")[0], 80, Style()).lines)
    assert re.findall(r"\| (\w+) +\| (\w+) +\|\n", described) == [
        ("col_name", "data_type"),
        ("a", "INT"),
        ("t", "TIMESTAMP"),
    ]
    assert sorted(row[:2] for row in console.rows("SHOW VIEWS LIKE 'of*';")) == [
        ("of_now", "temporary view"),
        ("of_told", "view"),
    ]
    created = console.run("SHOW CREATE TABLES;")[0].text
    assert "CREATE VIEW of_told AS SELECT a FROM told;" in created
    assert created.index("CREATE TABLE told") < created.index("CREATE VIEW of_told")
    for statement, told in (
        ("DROP VIEW of_told", "view of_told dropped"),
        ("DROP VIEW IF EXISTS of_now", "view of_now dropped"),
        ("DROP TABLE told", "table told dropped"),
        ("DROP TABLE IF EXISTS told", "there is no table told"),
    ):
        assert console.run(f"{statement};")[0].message == told


def test_a_summary_breaks_no_time_and_keeps_the_count(console: Console) -> None:
    [summary] = console.run("SUMMARIZE SELECT 1 AS a, timestamp'2024-01-01 10:00:00.123456' AS t;")
    for width in range(60, 130, 10):
        lines = "\n".join(info_document(summary, width, Style()).lines)
        assert lines.count("2024-01-01 10:00:00.123456") == 2
        assert " count " in lines


def followed(console: Console, statement: str, most: int = 4) -> tuple[str, list[Any]]:
    """The statement that runs behind the proposals for one that fails, and its results."""
    for _ in range(most):
        try:
            return statement, console.run(statement if statement.endswith(";") else f"{statement};")
        except StreamsqlError as fault:
            assert fault.proposal, (statement, fault.message, fault.hint)
            statement = fault.proposal
    raise AssertionError(f"still a proposal: {statement}")


DEFINED = """CREATE STREAM clicks (id INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY '1 minute';
CREATE TABLE counts (id INT, n BIGINT); INSERT INTO counts VALUES (1, 10), (2, 20), (3, 30);
"""


@pytest.mark.slow
def test_what_spark_refuses_is_proposed_and_the_proposal_runs(console: Console) -> None:
    console.run(DEFINED)
    for _, typed, own in TRANSLATIONS:
        if "json`" in own or "csv`" in own or "parquet`" in own:
            fault = refusal(console, typed)
            assert refusal(console, fault.proposal[:-1]).code == "PATH_NOT_FOUND", typed
            continue
        if typed.startswith(("CREATE", "DROP")) or "NOCASE" in typed or "log(10)" in typed:
            continue
        found, results = followed(console, typed)
        ordered = "TABLESAMPLE" not in own and "clicks" not in own
        if ordered and typed.startswith(("SELECT", "WITH", "FROM")):
            assert sorted(map(repr, console.rows(found))) == sorted(map(repr, console.rows(f"{own};"))), typed


# Valid Spark, of which each was changed or refused once: (statement; its rows)
OF_SPARK = [
    ("SELECT 'x' IS DISTINCT FROM \"x\" AS a", [(False,)]),
    ("SELECT trim(BOTH 'a' FROM \"aba\") AS a", [("b",)]),
    ('SELECT extract(YEAR FROM "2020-01-01") AS a', [(2020,)]),
    ("SELECT '{a,b}' LIKE ANY ('{a,b}') AS a", [(True,)]),
    ("SELECT l [0] AS a FROM (SELECT array(7) AS l)", [(7,)]),
    ("SELECT transform (l, x -> x + 1) AS a FROM (SELECT array(7) AS l)", [([8],)]),
    ("SELECT `transform`(l, x -> x + 1) AS a FROM (SELECT array(7) AS l)", [([8],)]),
    ("SELECT current_schema FROM (SELECT 1 AS current_schema)", [(1,)]),
    ("SELECT count(*) OVER w AS n FROM counts WINDOW w AS ()", [(3,), (3,), (3,)]),
    ("SELECT count(*) OVER w2 AS n FROM counts WINDOW w1 AS (PARTITION BY id), w2 AS w1", [(1,), (1,), (1,)]),
    ("SELECT id FROM counts c WHERE id = 1 AND map(1, 2)[1] = 2", [(1,)]),
    ("SELECT conflict FROM (SELECT 1 AS conflict) a JOIN (SELECT 1 AS b) ON conflict = b", [(1,)]),
    ("SELECT 5 ^ 2 AS a, log(1) AS b", [(7, 0.0)]),
    ("SELECT id FROM counts POSITIONAL JOIN (SELECT 1 AS one) WHERE id = 1", [(1,)]),
    ("SELECT date_diff(DAY, date'2024-01-01', date'2024-01-03') AS a", [(2,)]),
    ("SELECT 'a' AS EMIT, 'b' CHANGES", [("a", "b")]),
    ("SELECT emit CHANGES FROM (SELECT 1 AS emit)", [(1,)]),
]


def test_what_spark_takes_runs_as_it_is_written(console: Console) -> None:
    console.run(DEFINED)
    for statement, rows in OF_SPARK:
        [result] = console.run(f"{statement};")
        assert not [n for n in result.notes if n.code == "READ_AS"], statement
        assert console.rows(f"{statement};") == rows, statement
    console.run("SET spark.sql.defaultPath = system.session, current_schema;")
    assert console.rows("SET spark.sql.defaultPath;")[0][1] == "system.session, current_schema"
    console.run("RESET spark.sql.defaultPath;")


def test_the_users_own_functions_win(console: Console) -> None:
    console.run(DEFINED)
    for call in ("today()", "prefix('a', 'b')", "regexp_matches('a', 'b')", "list_sort('a')"):
        name, _, arguments = call.partition("(")
        parameters = ", ".join(f"x{n} STRING" for n in range(arguments.count("'") // 2))
        console.run(f"CREATE TEMPORARY FUNCTION {name}({parameters}) RETURNS STRING RETURN 'mine';")
        for dialect in ("spark", "duckdb"):
            console.run(f"SET streamsql.dialect = {dialect};")
            assert console.rows(f"SELECT {call} AS a;") == [("mine",)], (call, dialect)
        console.run(f"SET streamsql.dialect = spark; DROP TEMPORARY FUNCTION {name};")


def test_a_proposal_changes_only_what_fails(console: Console) -> None:
    console.run(DEFINED)
    for typed, own in (
        ("SELECT id /* kept */, list_sum(array(n)) AS s, array(n)[0] AS f FROM counts  WHERE id=1",
         "SELECT id /* kept */, aggregate(ARRAY(n), CAST(0 AS DOUBLE), (s, e) -> s + e) AS s, array(n)[0] AS f FROM counts  WHERE id=1;"),
        ("SELECT n, id::text FROM counts WHERE n IN (SELECT n FROM counts WHERE id = ANY(ARRAY[1]))",
         "SELECT n, CAST(id AS STRING) FROM counts WHERE n IN (SELECT n FROM counts WHERE id IN (1));"),
    ):  # fmt: skip
        assert followed(console, typed)[0] == own


def test_no_proposal_is_made_for_what_no_dialect_mends(console: Console) -> None:
    console.run(DEFINED)
    for typed in (
        "SELECT foo, array(1)[0] FROM counts",
        "SELECT id FROM",
        "SELECT id + 'a' FROM counts",
        "SELECT * FORM counts",
    ):
        assert not refusal(console, typed).proposal, typed


@pytest.mark.slow
def test_statements_of_spark_that_fail_are_answered_with_those_of_the_console(console: Console) -> None:
    console.run(DEFINED)
    for typed, own in (
        ("SELECT table_name FROM information_schema.tables", "SHOW TABLES;"),
        ("SELECT * FROM pg_class", "SHOW TABLES;"),
        ("SELECT * FROM rw_streaming_jobs", "SHOW QUERIES;"),
        ("USE default_database", "USE default;"),
        ("CREATE MATERIALIZED VIEW mv AS SELECT id FROM clicks", "CREATE LIVE TABLE mv AS SELECT id FROM clicks;"),
        ("DESCRIBE JOB mv", "DESCRIBE QUERY mv;"),
    ):  # fmt: skip
        fault = refusal(console, typed)
        assert fault.proposal == own, typed
        console.run(fault.proposal)
    console.run("CREATE TABLE pg_class (id INT);")
    assert console.rows("SELECT * FROM pg_class;") == []


TABLE_DEFINITIONS = [
    (
        "CREATE TABLE a (id INT, name VARCHAR(20), d double precision)",
        "CREATE TABLE a (id INT, name VARCHAR(20), d DOUBLE);",
    ),
    (
        "CREATE TABLE b (id INT, tags TEXT[], name VARCHAR)",
        "CREATE TABLE b (id INT, tags ARRAY<STRING>, name STRING);",
    ),
    ("ALTER TABLE a ADD COLUMN email TEXT", "ALTER TABLE a ADD COLUMN email STRING;"),
]


def test_types_of_other_systems_are_proposed_as_sparks(console: Console) -> None:
    for typed, own in TABLE_DEFINITIONS:
        fault = refusal(console, typed)
        assert fault.proposal == own
        console.run(own)


def test_hints_tell_what_there_is_instead(console: Console) -> None:
    console.run(DEFINED)
    for typed, hint in (
        ("SELECT id FROM counts LIMIT 50%", "TABLESAMPLE (50 PERCENT)"),
        ("SELECT 'a' GLOB 'b'", "LIKE compares with"),
        ("SELECT 'a' @@ 'b'", "Spark has no text search"),
        ("SELECT COLUMNS('i.*') FROM counts", "a query names its columns"),
        ("SELECT min(COLUMNS(*)) FROM counts", "a query names its columns"),
        ("SELECT #1 FROM counts", "a query names its columns; ORDER BY 2"),
        ("SELECT count(*) FROM counts GROUP BY #1", "a query names its columns; ORDER BY 2"),
        ("SELECT n FROM counts ORDER BY #1", "a query names its columns; ORDER BY 2"),
        ("SELECT n FROM counts WHERE #1 > 3", "a query names its columns; ORDER BY 2"),
        ("SELECT * FROM read_csv('f.csv', skip = 1)", "skip is an option of DuckDB; csv.`f.csv` WITH (…)"),
        ("SELECT * FROM read_csv('f.csv', columns = {'a': 'INT'})", "columns is an option of DuckDB"),
        ("SELECT unnest(array(1)) AS a, id, unnest(array(2)) AS b FROM counts", "inline(arrays_zip(a, b))"),
        ("SELECT sum(n) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING EXCLUDE TIES) FROM counts", "a window has all rows"),
    ):  # fmt: skip
        fault = refusal(console, typed)
        assert not fault.proposal and hint in fault.hint, (typed, fault.hint, fault.proposal)


SAMPLES = {"name": "a", "name2": "b", "name3": "c", "text": "'t'", "file": "'f.csv'", "number": "3", "columns…": "a, b",
           "options…": ", x", "names…": "a", "value…": "sum(a)", "keys…": "b", "column…": "a", "path…": "'p'",
           "time…": "INTERVAL '1' HOUR"}  # fmt: skip
SETTINGS = ("SET", "RESET")
"""Statements about settings: Spark's parser takes any key, and the console those of Spark and its own."""


@pytest.mark.slow
def test_each_row_says_rightly_whether_spark_takes_it(spark: Any) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()

    def taken(text: str) -> bool:
        try:
            parser.parsePlan(text)
        except (ParseException, Py4JJavaError):
            return False
        return True

    for row in habits():
        if row.is_command or row.typed.startswith(SETTINGS):
            continue
        typed = [
            re.sub(r"<(\w+…?)>", lambda m: SAMPLES.get(m[1], rest), re.sub(r"\[.*?\]", "", row.typed))  # noqa: B023
            for rest in ("SELECT 1", "a", "x = 1")
        ]
        assert any(map(taken, typed)) == row.of_spark, row.typed


def test_what_spark_is_said_not_to_have_is_refused_by_its_parser(spark: Any) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    for text in (
        "SELECT sum(a) OVER (ORDER BY a ROWS UNBOUNDED PRECEDING EXCLUDE TIES) FROM t",
        "SELECT sum(a) OVER (ORDER BY a ROWS UNBOUNDED PRECEDING EXCLUDE GROUP) FROM t",
        "SELECT sum(a) OVER (ORDER BY a ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) FROM t",
        "SELECT a FROM t ORDER BY a USING <",
        "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (a))",
        "SELECT a FROM t FOR JSON PATH",
        "SELECT a FROM t LIMIT 50 PERCENT",
        "SELECT a FROM t LIMIT 50%",
        "SELECT sum(a) OVER (ORDER BY a GROUPS UNBOUNDED PRECEDING) FROM t",
        "SELECT * FROM t /*+ OPTIONS('a' = 'b') */",
        "SELECT * FROM t /*+ STATE_TTL('a' = '1d') */",
        "SELECT * FROM t WHERE a = :'x'",
        "SELECT a FROM t EMIT CHANGES",
        "SELECT a FROM t WHERE a > 1 EMIT FINAL",
        "SELECT a FROM t WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY a",
        "SELECT a FROM t JOIN u WITHIN 7 DAYS ON t.a = u.a",
        "CREATE STREAM k AS SELECT a FROM t",
        "SELECT 'a' GLOB 'b'",
        "SELECT 'a' @@ 'b'",
        "SELECT a <-> b FROM t",
        "SELECT a OVERLAPS b FROM t",
        "CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE SQL AS $$ SELECT x $$",
        "CREATE TABLE t (id INT) WITH ('connector' = 'kafka')",
    ):
        with pytest.raises(ParseException):
            parser.parsePlan(text)
