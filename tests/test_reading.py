"""Queries are read by sqlglot: what was once told from keywords in the text is now asked of the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker
from streamsql.errors import Source, StreamsqlError
from streamsql.language.expression import Expression
from streamsql.language.parser import parse_script
from streamsql.language.query import read_expression, read_query
from streamsql.plan.context import Context
from streamsql.plan.planner import plan
from streamsql.plan.plans import Refresh, Run
from streamsql.plan.streaming.stages import split

HERE = Path(__file__).parent
CLICKS = "CREATE STREAM clicks (id INT, user STRING, ts TIMESTAMP) USING json OPTIONS (path 'in');"


def checked(script: str) -> list[str]:
    """The notes of --check. Raises the first error, placed in the script."""
    checker = Checker(Context(Catalog()))
    return [n for s in parse_script(Source("a.sql", script)) for n in map(str, checker.check(s))]


def test_a_stream_may_have_the_name_of_a_column() -> None:
    checked(CLICKS + "CREATE STREAM user AS SELECT id, user FROM clicks;")
    with pytest.raises(StreamsqlError, match="the stream clicks reads itself"):
        checked(CLICKS + "CREATE OR REPLACE STREAM clicks AS SELECT id, user FROM clicks;")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM over",
        "SELECT id FROM t WHERE id IN (SELECT id FROM over)",
        "SELECT id FROM seen",  # a view
    ],
)
def test_a_stream_that_reads_itself_through_another_is_refused(query: str) -> None:
    over = "CREATE STREAM t USING rate; CREATE STREAM over AS SELECT id FROM clicks WHERE id > 0;"
    over += "CREATE TEMPORARY VIEW seen AS SELECT id FROM over;"
    with pytest.raises(StreamsqlError, match="the stream clicks reads itself"):
        checked(f"{CLICKS} {over} CREATE OR REPLACE STREAM clicks AS {query};")


def test_from_inside_a_function_reads_nothing() -> None:
    notes = checked(
        "CREATE STREAM vip (a INT) USING rate; CREATE STREAM a (vi TIMESTAMP) USING json OPTIONS (path 'p');"
        "SELECT extract(HOUR FROM vi) AS h FROM a;".replace("(a INT) USING rate", "USING rate")
    )
    assert not any("vi" in n.split() for n in notes)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM f(TABLE(SELECT 1) WITH SINGLE PARTITION)",
        "SELECT * FROM t WITH (x = 1)",
        "SELECT parse_json('{}'):a.b::string",
        "FROM t |> SET x = 1 |> DROP y",
        "WITH RECURSIVE r(n) MAX RECURSION LEVEL 5 AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
        "SELECT IDENTIFIER('f')(1)",
        "SELECT cross, qualify FROM t",
    ],
)
def test_what_only_spark_can_read_is_left_to_it(query: str) -> None:
    checked(f"{query};")


@pytest.mark.parametrize("text", ["SELECT date_trunc(", "SELECT 1 AS x FROM t)"])
def test_a_parenthesis_without_its_other_half_is_placed(text: str) -> None:
    script = f"SELECT 1 AS a;\n{text};"
    with pytest.raises(StreamsqlError) as caught:
        checked(script)
    assert caught.value.span is not None
    assert caught.value.span.start > script.index("\n") and script[caught.value.span.start] in "()"


@pytest.mark.parametrize(
    "text",
    ["SELECT 1 AS x FROM a UNION SELECT 2 FROM b|>INTERSECT SELECT 2 FROM c"]
    + ["SELECT " + "(" * 50 + "1" + ")" * 50],
)
def test_what_sqlglot_gives_up_on_is_no_error(text: str) -> None:
    checked(f"{text};")


def expression(text: str) -> Expression:
    return read_expression(text)


@pytest.mark.parametrize(
    "text", ["kll_merge_agg_bigint(x)", "schema_of_variant_agg(v)", "sum(sum(x)) OVER ()", "count(*) + 1"]
)
def test_aggregates_are_those_of_sparks_reference(text: str) -> None:
    assert expression(text).aggregates


@pytest.mark.parametrize(
    "text",
    ["sum(x) OVER (ORDER BY y)", "(SELECT max(x) FROM t)", "row_number() OVER (ORDER BY x)", "maximum"],
)
def test_what_is_no_aggregation_of_its_block(text: str) -> None:
    assert not expression(text).aggregates


def test_a_live_table_over_a_new_aggregate_is_grouped() -> None:
    run = planned(f"{CLICKS} CREATE LIVE TABLE l AS SELECT kll_merge_agg_bigint(id) AS k FROM clicks;")
    assert run.shape.aggregates
    assert [c.mode for c in run.choices][0] != "append"


def test_a_key_with_an_automatic_name_is_kept_in_a_hidden_column() -> None:
    """Spark chooses the name of `upper(r.name)`, which holds a dot: the console names the key itself."""
    run = planned(
        "CREATE STREAM s (r STRUCT<name: STRING>, n INT) USING values;"
        "CREATE LIVE TABLE x AS SELECT upper(r.name), count(*) FROM s GROUP BY 1;"
    )
    assert run.shape.keys == run.shape.hidden != ()
    assert [c.mode for c in run.choices][0] == "update"


def planned(script: str) -> Run:
    checker = Checker(Context(Catalog()))
    made = None
    for statement in parse_script(Source("a.sql", script)):
        made = plan(statement, checker.context)
        checker.check(statement)
    assert isinstance(made, Run)
    return made


def test_the_parts_of_a_query_stand_in_the_text_as_written() -> None:
    text = "SELECT /* a */ a.b,  count( * ) n FROM t  a WHERE ( x ) > 1 GROUP BY 1 ORDER BY n DESC NULLS LAST"
    query = read_query(text)
    assert query.body is not None
    block = query.body.block
    assert block is not None and block.where is not None and query.body.order_by is not None
    assert [i.expression.text for i in block.items] == ["a.b", "count( * )"]
    assert block.where.expression.text == "( x ) > 1"
    [key] = query.body.order_by.keys
    assert (key.expression.text, key.method) == ("n", "desc_nulls_last")
    assert [(r.name, text[r.span.start : r.span.end]) for r in query.relations] == [("t", "t")]


@pytest.mark.parametrize("sign", ["(", ")", "((", "`"])
def test_a_parenthesis_in_a_text_closes_nothing(sign: str) -> None:
    condition = f"concat('{sign}', a) = 'x'"
    block = read_query(f"SELECT n FROM t WHERE {condition} AND b = 1 ORDER BY n").body.block  # type: ignore[union-attr]
    assert block is not None and block.where is not None
    assert [c.text for c in block.where.expression.conjuncts()] == [condition, "b = 1"]


@pytest.mark.parametrize(
    ("query", "stages"),
    [
        # In a WITH query, and before it, its name is that of a stream; behind it, also in expressions, its own.
        (
            "WITH clicks AS (SELECT user, id FROM clicks WHERE id > 1 ORDER BY id LIMIT 9) "
            "SELECT user, id FROM clicks WHERE id > (SELECT min(id) FROM clicks)",
            ["SELECT user, id FROM clicks WHERE id > 1"],
        ),
        (
            "WITH clicks AS (SELECT user, count(*) AS id FROM clicks GROUP BY user) "
            "SELECT a.user FROM clicks a JOIN clicks b ON a.id = b.id",
            ["SELECT user, count(*) AS id FROM clicks GROUP BY user"],
        ),
        (
            "WITH clicks AS (SELECT id FROM views WHERE id > 2) "
            "SELECT id FROM views WHERE id IN (SELECT id FROM clicks) ORDER BY id",
            ["SELECT id FROM views WHERE id > 2", "SELECT id FROM views",
             "WITH clicks AS (SELECT id FROM views WHERE id > 2) SELECT id FROM clicks"],
        ),
        # The columns of LATERAL VIEW are its own.
        (
            "SELECT avg(n) AS a FROM (SELECT x, user, count(*) AS n FROM clicks "
            "LATERAL VIEW explode(array(1, id)) e AS x GROUP BY user, x)",
            ["SELECT x, user, count(*) AS n FROM clicks LATERAL VIEW explode(array(1, id)) e AS x GROUP BY user, x"],
        ),
    ],
)  # fmt: skip
def test_the_stages_of_a_query_are_its_own(query: str, stages: list[str]) -> None:
    checker = Checker(Context(Catalog()))
    script = f"{CLICKS}{CLICKS.replace('clicks', 'views')} CREATE LIVE TABLE t AS {query};"
    *streams, table = parse_script(Source("a.sql", script))
    for stream in streams:
        checker.check(stream)
    planned = plan(table, checker.context)
    assert planned.fault is None
    runs = planned.stages if isinstance(planned, Refresh) else getattr(planned.otherwise, "stages", ())
    assert [run.query.text for run in runs] == stages


def test_a_checked_script_may_switch_stages_off() -> None:
    average = "CREATE LIVE TABLE {} AS SELECT avg(n) FROM (SELECT id, count(*) AS n FROM clicks GROUP BY id);"
    checked(
        f"{CLICKS} {average.format('a')} SET streamsql.stages = off; RESET streamsql.stages; {average.format('b')}"
    )
    with pytest.raises(StreamsqlError) as caught:
        checked(f"{CLICKS} SET streamsql.stages = off; {average.format('a')}")
    assert "SET streamsql.stages = on; or:\nCREATE LIVE TABLE a_1 AS SELECT id, count(*)" in caught.value.hint
    with pytest.raises(StreamsqlError, match="stages"):
        checked("SET streamsql.stages = maybe;")


@pytest.mark.parametrize(
    ("keys", "over_stage"),
    [
        ("c.id DESC, c.user", "SELECT * FROM `t$1` ORDER BY x DESC, user LIMIT 2"),
        ("x, 1", "SELECT * FROM `t$1` ORDER BY x, 1 LIMIT 2"),
        ("c.ts", "SELECT c.user, c.id AS x FROM `t$1` c ORDER BY c.ts LIMIT 2"),
    ],
)
def test_a_stage_is_sorted_by_its_own_columns(keys: str, over_stage: str) -> None:
    checker = Checker(Context(Catalog()))
    checker.check(next(parse_script(Source("a.sql", CLICKS))))
    query = f"SELECT c.user, c.id AS x FROM clicks c ORDER BY {keys} LIMIT 2"
    assert split(query, "t", checker.catalog, lambda part: True).text == over_stage


def test_the_rows_of_a_stream_that_only_spark_reads_have_its_name_in_stages() -> None:
    """So that an alias of the same name is left to Spark."""
    checker = Checker(Context(Catalog()))
    checker.check(next(parse_script(Source("a.sql", CLICKS))))
    for query in ("FROM clicks AS c |> WHERE c.id > 1", "FROM clicks AS clicks |> WHERE clicks.id > 1"):
        over = split(query, "t", checker.catalog, lambda part: True).text
        assert over == f"WITH clicks AS (SELECT * FROM `t$1`) {query}"


def test_a_select_in_stages_that_only_spark_reads_has_the_limit_of_others() -> None:
    checker = Checker(Context(Catalog()))
    checker.check(next(parse_script(Source("a.sql", CLICKS))))
    for query in (
        "FROM clicks |> AGGREGATE count(*) |> AGGREGATE count(*)",
        "SELECT id FROM clicks ORDER BY id",
    ):
        planned = plan(next(parse_script(Source("a.sql", f"{query};"))), checker.context)
        staged = planned if isinstance(planned, Refresh) else getattr(planned, "otherwise", None)
        assert staged and "keeps rows, at most 1,000,000" in str(staged.notes[-1])
