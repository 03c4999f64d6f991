"""Words of other dialects are read as Spark's, and a note says as what; each hint works when it is typed."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from conftest import Console

from streamsql.errors import Span, StreamsqlError
from streamsql.language.dialect_words import Reading
from streamsql.language.other_functions import other_functions, reason
from streamsql.output.formats import Style
from streamsql.output.glance import at_a_glance
from streamsql.results import Started

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
        "SELECT user, w FROM s CROSS JOIN UNNEST(split(user, ' ')) AS x(w) WHERE v = 5",
        [("a b", "a"), ("a b", "a"), ("a b", "b"), ("a b", "b")],
        "FROM s LATERAL VIEW explode(split(user, ' ')) x AS w WHERE v = 5",
    ),
    (
        "SELECT w, o FROM s CROSS JOIN UNNEST(split(user, ' ')) WITH ORDINALITY AS x(w, o) WHERE v > 4",
        [("a", 1), ("a", 1), ("b", 2), ("b", 2), ("z", 1)],
        "UNNEST WITH ORDINALITY is read as inline(",
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
    (
        "SELECT unnest(split(user, ' ')) AS w FROM s WHERE v = 3",
        [("c",)],
        "unnest(split(user, ' ')) is read as explode(split(user, ' '))",
    ),
    (
        "SELECT user, approx_distinct(v) AS n FROM s GROUP BY user",
        [("a b", 1), ("c", 2), ("z", 1)],
        "approx_distinct(v) is read as approx_count_distinct(v)",
    ),
    (
        "SELECT extract(epoch FROM ts) AS e, v / 2 AS h FROM s WHERE v = 3",
        [(1714565040.0, 1.5)],
        "extract(epoch FROM ts) is read as",
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
        if row.refusal:
            assert Reading().of(call) == call
            assert reason(row.name) == row.refusal
            continue
        reading = Reading()
        own = reading.of(call)
        assert [written for written, _ in reading.words] == [call]
        assert spark.sql(f"SELECT {own} FROM (SELECT 1 AS a) t").schema, call


def test_a_text_among_the_arguments_tells_rows_apart() -> None:
    for call, own in (
        ("encode(a, 'hex')", "lower(hex(a))"),
        ("encode(a, 'base64')", "base64(a)"),
        ("encode(a, 'UTF-8')", "encode(a, 'UTF-8')"),
        ("epoch_ms(1714565706000)", "timestamp_millis(1714565706000)"),
        ("epoch_ms(ts)", "unix_millis(ts)"),
    ):
        assert Reading().of(call) == own


def test_an_unknown_function_is_answered(console: Console) -> None:
    for call, hint in (
        ("pg_sleep(1)", "AWAIT QUERY waits for a query"),
        ("list_aggregate(array(1), 'avg')", "aggregate(list, CAST(0 AS DOUBLE), (s, e) -> s + e)"),
        ("date_fromat(now(), 'yyyy')", "did you mean date_format?"),
    ):
        fault = refusal(console, f"SELECT {call}")
        assert fault.message == f"there is no function {call.partition('(')[0]}"
        assert fault.hint == hint


def test_functions_in_a_table_that_is_created(console: Console) -> None:
    console.run("CREATE TEMPORARY VIEW made AS SELECT list_sort([2, 1]) AS l, today() = current_date() AS t;")
    assert console.rows("SELECT * FROM made;") == [([1, 2], True)]
    fault = refusal(console, "CREATE OR REPLACE TABLE made_again AS SELECT 1 AS a")
    assert fault.hint == "DROP TABLE IF EXISTS made_again; CREATE TABLE made_again AS SELECT 1 AS a;"
    console.run(fault.hint + "DROP TABLE made_again;")


def refusal(console: Console, statement: str) -> StreamsqlError:
    with pytest.raises(StreamsqlError) as caught:
        console.run(statement + ";")
    return caught.value


TOP = "SELECT user, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user ORDER BY {}) AS rn FROM s) WHERE rn = 1"


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
    assert console.session.queries.all["t"].mode == "update"
    console.run("SET streamsql.stages = on;")
    staged, notes = run_now(console, TOP.format(order))
    assert (staged[0], staged[2]) == (rows[0], rows[2])
    assert f"one query keeps less state, and leaves out NULL: {fault.hint.splitlines()[0]}" in notes


def test_hints_name_what_is_wrong_and_work(console: Console) -> None:
    console.run(STREAMS + "CREATE SINK j USING memory;")
    missing = refusal(console, "INSERT INTO j SELECT price FROM nosuch")
    assert missing.message == "there is no stream nosuch"
    pattern = refusal(console, "CREATE LIVE TABLE u AS SELECT date_format(ts, 'YYYY-MM-DD') AS d FROM s")
    assert "letter Y" in pattern.message
    assert run_now(console, f"SELECT date_format(ts, {pattern.hint}) AS d FROM s WHERE v = 9")[0] == [
        ("2024-05-01",)
    ]
    key = refusal(console, 'CREATE LIVE TABLE u AS SELECT count(*) FROM s GROUP BY "user"')
    name = re.search("`.*`", key.hint)
    assert name
    assert run_now(console, f"SELECT s.{name[0]} FROM s WHERE v = 9")[0] == [("z",)]
    assert run_now(console, 'SELECT "s"."user" AS "who" FROM "s" WHERE v = 9')[0] == [("z",)]
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
    ("5 ^ 2", "5 ^ 2 is the XOR of the bits in Spark, and power(5, 2) in"),
    ("(1 + 1) ^ -n", "(1 + 1) ^ -n is the XOR of the bits in Spark, and power((1 + 1), -n) in"),
    ("log(10)", "log(10) is the natural logarithm in Spark, and log10(10) in"),
    ("log(2, 8)", ""),
    ("l[1]", "l[1] is counted from 0 in Spark, and element_at(l, 1) in"),
    ("l[0]", ""),
    ("extract(DOW FROM d)", "extract(DOW FROM d) is 1 on Sundays in Spark, and (dayofweek(d) - 1) in"),
    ("dayname(d) = 'Sunday'", "dayname(d) is cut to three letters in Spark, and date_format(d, 'EEEE') in"),
    ("split('a.b', '.')", r"split('a.b', '.') is a split by a regular expression in Spark, and split('a.b', '\\.') in"),
    ("split('a.b', ',')", ""),
    ("count(CASE WHEN \"n\" = '1' THEN 1 END)", '"n" is a string; the column is `n`'),
    ('upper("n")', '"n" is a string; the column is `n`'),
    ("d > \"2024-01-01\"", ""),
]  # fmt: skip


def test_an_expression_with_another_meaning_elsewhere_tells_both(console: Console) -> None:
    source = "FROM (SELECT 1 AS n, array(7, 8) AS l, date'2024-05-05' AS d)"
    for expression, said in MEANINGS:
        [rows] = console.run(f"SELECT {expression} {source};")
        notes = [n.text for n in rows.notes if n.code == "OTHER_MEANING"]
        assert [n[: len(said)] for n in notes] == [said] * bool(said), expression
        if said:
            own = re.search(r", and (.*?) in (PostgreSQL|DuckDB)|column is (.*)", notes[0])
            assert own and console.rows(f"SELECT {own[1] or own[3]} {source};"), expression


def test_the_key_of_a_map_is_not_counted(console: Console) -> None:
    console.run("CREATE STREAM s (a MAP<INT, STRING>, l ARRAY<INT>) USING values;")
    [started] = console.run("CREATE LIVE TABLE t AS SELECT a[1] AS b, l[1] AS c FROM s;")
    notes = [n.text for n in started.notes if n.code == "OTHER_MEANING"]
    assert [n.split(" is ")[0] for n in notes] == ["l[1]"]


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
        assert console.rows(f"SELECT '{text}' SIMILAR TO '{pattern}';") == [(like,)], (text, pattern)


def test_tables_without_data_and_whole_numbers(console: Console) -> None:
    console.run("CREATE TABLE no_rows AS SELECT 1 AS a, 'x' AS b WITH NO DATA;")
    assert console.rows("SELECT count(*) FROM no_rows;") == [(0,)]
    console.run("DROP TABLE no_rows;")
    assert console.rows("SELECT trunc(2.7), trunc(-2.7);") == [(2, -2)]
    rows = console.rows(
        "SELECT trunc(-1.77, 1), trunc(1234, -2), trunc(0.29D, 2), trunc(date'2026-05-06', 'MM');"
    )
    assert rows == [(Decimal("-1.7"), Decimal(1200), Decimal("0.29"), date(2026, 5, 1))]


def test_any_of_a_column_with_a_list_is_answered(console: Console) -> None:
    source = "FROM (SELECT array('x') AS l, 'x' AS v)"
    fault = refusal(console, f"SELECT 1 AS a, v = ANY (l) AS b {source}")
    assert (fault.message, fault.hint) == ("Spark compares with ANY (…) no list", "array_contains(l, v)")
    assert fault.span == Span(15, 26)
    assert console.rows(f"SELECT {fault.hint} {source};") == [(True,)]


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
    assert fault.hint == "v + 1 AS n"
    assert console.rows(f"SELECT {fault.hint}, j:[0]::INT {source};") == [(8, 3)]


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
    described = "\n".join(at_a_glance(console.run("SHOW told;")[0], 80, Style()).lines)
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
        lines = "\n".join(at_a_glance(summary, width, Style()).lines)
        assert lines.count("2024-01-01 10:00:00.123456") == 2
        assert " count " in lines
