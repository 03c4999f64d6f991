"""How queries are split into stages, without Spark: one stage for the rows of a stream, window tables, the limit;
and that a query is planned in the same way, however it is spelled."""

from __future__ import annotations

import re

import pytest

from streamsql.calls import render
from streamsql.catalog import Catalog
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.language.query import read_expression, try_expression
from streamsql.language.reference import functions
from streamsql.plan.planner import Context, plan
from streamsql.plan.plans import Plan, Refresh, Run

STREAMS = """CREATE STREAM s (k STRING, n INT, at STRUCT<n: INT>, ts TIMESTAMP) USING values;
CREATE STREAM r (k STRING, n INT, ts TIMESTAMP) USING values;
CREATE STREAM marked (k STRING, n INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
CREATE STREAM visits (region STRING, n INT) USING values;
CREATE SINK totals USING jdbc KEY (region) OPTIONS (url 'jdbc:sqlite:t.db', table 't');
CREATE SINK levels USING jdbc KEY (region, level) OPTIONS (url 'jdbc:sqlite:t.db', table 'l');
CREATE LIVE TABLE counts AS SELECT k, count(*) AS n FROM r GROUP BY k;
"""
TUMBLE = "TUMBLE(TABLE {s}, DESCRIPTOR(ts), INTERVAL 10 MINUTES)"
GROUPED = f"SELECT window_start, k, count(*) AS c FROM {TUMBLE} GROUP BY window_start, window_end, k"


def planned(text: str) -> Plan:
    """The plan of the last statement of a script over STREAMS."""
    catalog, last = Catalog(), None
    for statement in split_script(Source("test", STREAMS + text)):
        last = plan(parse(statement, {}), Context(catalog))
        catalog = last.applied(catalog)
    assert last is not None
    return last


def live(select: str) -> Run:
    run = planned(f"CREATE LIVE TABLE t AS {select};")
    assert isinstance(run, Run)
    return run


def stages(select: str) -> list[str]:
    """The SELECTs of the stages of a live table."""
    run = live(select)
    assert isinstance(run, Refresh)
    return [stage.query.text for stage in run.stages]


def test_retain_of_an_insert_limits_the_stages_that_run_if_spark_refuses_it() -> None:
    run = planned(
        "INSERT INTO levels RETAIN 5 ROWS SELECT region, grouping_id() AS level, count(*) AS c FROM visits "
        "GROUP BY GROUPING SETS ((region), ());"
    )
    assert isinstance(run, Run) and isinstance(run.otherwise, Refresh)
    assert run.otherwise.query.retain == 5
    assert [stage.sink.retain for stage in run.otherwise.stages] == [5]


def branches(select: str, count: int) -> str:
    return " UNION ALL ".join(select.format(i=i) for i in range(count))


@pytest.mark.parametrize(
    ("select", "kept"),
    [
        (branches("SELECT {i} AS i, count(DISTINCT k) AS d FROM s", 32), ["SELECT k FROM s"]),
        (
            branches("SELECT {i} AS i, count(DISTINCT k) AS d FROM s WHERE n = {i}", 3),
            ["SELECT k, n FROM s WHERE (n = 0) OR (n = 1) OR (n = 2)"],
        ),
        (
            "SELECT count(DISTINCT k) AS d FROM s AS x WHERE x.n = 1 "
            "UNION ALL SELECT count(DISTINCT n) AS d FROM s WHERE s.k = 'a'",
            ["SELECT k, n FROM s WHERE (n = 1) OR (k = 'a')"],
        ),
        (
            "SELECT count(DISTINCT k) AS d FROM s AS x WHERE x.at.n = 1 "
            "UNION ALL SELECT count(DISTINCT k) AS d FROM s AS y WHERE y.n = 1",
            ["SELECT k, n, at FROM s"],
        ),
        ("SELECT count(DISTINCT k) AS d FROM s AS x WHERE x.n = 1", ["SELECT k, n FROM s AS x WHERE x.n = 1"]),
        (
            "SELECT a.k, b.n FROM s a FULL JOIN s b ON a.n < b.n WHERE a.k NOT IN (SELECT k FROM r WHERE n > 3)",
            ["SELECT k, n FROM s", "SELECT k FROM r WHERE n > 3"],
        ),
    ],
)  # fmt: skip
def test_the_rows_of_a_stream_are_kept_in_one_stage(select: str, kept: list[str]) -> None:
    assert stages(select) == kept


@pytest.mark.parametrize(
    ("select", "kept", "text"),
    [
        (
            "FROM s |> WHERE n IN (SELECT n FROM (SELECT n FROM r WHERE n > 3))",
            ["SELECT n FROM (SELECT n FROM r WHERE n > 3)", "SELECT * FROM s"],
            "WITH s AS (SELECT * FROM `t$2`) FROM s |> WHERE n IN (SELECT * FROM `t$1`)",
        ),
        (
            "WITH x AS (SELECT 1 AS n) FROM s |> WHERE n IN (SELECT r.n FROM r JOIN x USING (n))",
            ["SELECT * FROM s", "SELECT * FROM r"],
            "WITH s AS (SELECT * FROM `t$1`), r AS (SELECT * FROM `t$2`), x AS (SELECT 1 AS n) "
            "FROM s |> WHERE n IN (SELECT r.n FROM r JOIN x USING (n))",
        ),
        (
            "SELECT * FROM (VALUES (1)) AS v(n) |> WHERE n IN (SELECT n FROM r)",
            ["SELECT n FROM r"],
            "SELECT * FROM (VALUES (1)) AS v(n) |> WHERE n IN (SELECT * FROM `t$1`)",
        ),
    ],
)  # fmt: skip
def test_a_query_that_is_left_to_spark_reads_its_stages(select: str, kept: list[str], text: str) -> None:
    assert stages(select) == kept
    assert f'spark.sql("{text}")' in render(live(select).program)


HOPPED = (
    "SELECT a.k FROM HOP(TABLE ({}), DESCRIPTOR(ts), INTERVAL 5 MINUTES, INTERVAL 10 MINUTES) a "
    "FULL JOIN r b ON a.k = b.k"
)


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ("SELECT k, ts FROM s WHERE n > 1", ["SELECT k, ts FROM s WHERE n > 1", "SELECT * FROM r"]),
        (
            "SELECT k, ts FROM s WHERE k NOT IN (SELECT k FROM r)",
            ["SELECT k, ts FROM s", "SELECT k FROM r", "SELECT * FROM r"],
        ),
    ],
)
def test_the_query_of_a_window_table_is_a_stage_or_has_stages(data: str, kept: list[str]) -> None:
    assert stages(HOPPED.format(data)) == kept
    program = render(live(HOPPED.format(data)).program)
    assert "window(ts, '10 minutes', '5 minutes')" in program
    assert ("k NOT IN (SELECT * FROM `t$2`)" in program) == ("NOT IN" in data)


def test_a_query_that_needs_too_many_stages_is_refused() -> None:
    part = "SELECT max(c) AS m FROM (SELECT k, count(*) AS c FROM s WHERE n = {i} GROUP BY k)"
    assert len(stages(branches(part, 16))) == 16
    with pytest.raises(StreamsqlError) as caught:
        live(branches(part, 17))
    assert (caught.value.code, caught.value.message) == (
        "TOO_MANY_STAGES",
        "the query would run in 18 stages, and 17 are the most",
    )
    assert "CREATE LIVE TABLE" in caught.value.hint


WINDOWS = {
    "top": "SELECT window_start, k, c FROM (SELECT *, row_number() OVER (PARTITION BY window_start ORDER BY c DESC, k) "
    f"AS rn FROM ({GROUPED})) WHERE rn <= 1",
    "full": f"SELECT a.k, b.c FROM ({GROUPED}) a FULL JOIN ({GROUPED}) b ON a.window_start = b.window_start",
    "not_in": f"SELECT k, n FROM {{s}} WHERE k NOT IN (SELECT k FROM {TUMBLE} GROUP BY window_start, window_end, k)",
    "exists": f"SELECT k FROM {{s}} WHERE EXISTS (SELECT 1 FROM {TUMBLE} WHERE n > 3)",
    "over": f"SELECT k, n, row_number() OVER (PARTITION BY window_start ORDER BY n DESC) AS rn FROM {TUMBLE}",
    "session": "SELECT max(c) AS m FROM (SELECT k, window_start, count(*) AS c FROM SESSION(TABLE {s} PARTITION BY k, "
    "DESCRIPTOR(ts), INTERVAL 5 MINUTES) GROUP BY window_start, window_end, k)",
}


@pytest.mark.parametrize("stream", ["s", "marked"])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_table_is_a_part_of_a_query_in_stages(name: str, stream: str) -> None:
    assert stages(WINDOWS[name].format(s=stream))


SPELLINGS = [
    "SELECT k, sum(n) AS n FROM s GROUP BY k",
    "SELECT /*+ COALESCE(1) */ k, sum(n) AS n FROM s GROUP BY k",
    "WITH q(k, v) AS (SELECT k, n FROM s) SELECT k, sum(v) AS n FROM q GROUP BY k",
    "SELECT k, sum(v) AS n FROM s AS x(k, v, a, t) GROUP BY k",
    "SELECT x.k, sum(x.v) AS n FROM (SELECT k, n FROM s) x(k, v) GROUP BY x.k",
    "SELECT s.k, sum(t.x) AS n FROM s LATERAL VIEW explode(array(n)) t AS x GROUP BY s.k",
]


@pytest.mark.parametrize("select", SPELLINGS)
def test_groups_are_updated_however_the_query_is_spelled(select: str) -> None:
    run = live(select)
    assert not isinstance(run, Refresh)
    assert (run.choices[0].mode, run.targets[0].keys("update")) == ("update", ("k",))


def test_what_only_spark_reads_is_said_with_the_output_mode() -> None:
    run = live("SELECT k, sum(n) AS n FROM s NATURAL JOIN somewhere GROUP BY k")
    assert [(c.mode, c.reason) for c in run.choices][:1] == [
        ("complete", "the whole result is emitted each time, because Spark reads this query, not the console")
    ]


def test_natural_is_using_the_columns_of_both_sides() -> None:
    natural = live("SELECT k, n FROM (SELECT k, n FROM s) NATURAL JOIN (SELECT k FROM marked)")
    using = live("SELECT k, n FROM (SELECT k, n FROM s) JOIN (SELECT k FROM marked) USING (k)")
    assert natural.program == using.program


def test_a_list_of_names_needs_all_columns_of_a_stream() -> None:
    assert stages("SELECT count(DISTINCT v) AS d FROM s AS x(a, v, c, d)") == ["SELECT * FROM s"]


def test_rollup_into_a_key_needs_what_tells_a_total_apart() -> None:
    rollup = "OUTPUT MODE UPDATE SELECT region, {}sum(n) AS n FROM visits GROUP BY ROLLUP (region);"
    with pytest.raises(StreamsqlError) as caught:
        planned(f"INSERT INTO totals {rollup.format('')}")
    assert caught.value.code == "AMBIGUOUS_KEY"
    assert caught.value.hint == "SELECT grouping_id() AS level, …; and a sink with KEY (region, level)"
    assert isinstance(planned(f"INSERT INTO levels {rollup.format('grouping_id() AS level, ')}"), Run)


def test_aggregates_and_the_clock_are_those_of_the_reference() -> None:
    """Every function of Spark's reference, called as its signature says."""
    wrong = []
    for function in functions().values():
        for signature in function.signature.split(" | "):
            call = re.sub(r"\[.*?\]+", "", signature)
            expression = try_expression(call) if call.count("(") == call.count(")") else None
            if expression is None:
                continue  # the signature is shortened, or is not a call
            if expression.aggregates != (function.kind == "agg"):
                wrong.append(signature)
            clock = "start of query evaluation" in function.meaning or signature.startswith("unix_timestamp")
            if expression.asks_the_time != clock:
                wrong.append(signature)
    assert wrong == []
    for words in ("CURRENT_DATE", "current_timestamp", "current_time", "unix_timestamp()"):
        assert read_expression(words).asks_the_time, words
    for words in ("t.current_date", "now", "unix_timestamp(a)", "a LIKE ANY ('x')"):
        assert not read_expression(words).asks_the_time and not read_expression(words).aggregates, words
    assert read_expression("NOT any(a > 1)").aggregates


def test_having_over_the_clock_is_computed_again_whatever_its_name() -> None:
    for clock in ("now()", "current_timestamp()", "localtimestamp()"):
        select = f"SELECT k, max(ts) AS m FROM s GROUP BY k HAVING max(ts) > {clock} - INTERVAL 1 HOUR"
        assert [c.mode for c in live(select).choices] == ["complete"]
