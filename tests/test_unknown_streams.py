"""A query that reads no stream: a misspelt stream is pointed at; what may be a table of Spark is not missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Console

from streamsql.catalog import Catalog
from streamsql.config.preferences import Preferences
from streamsql.errors import NameFault, RuleFault, Source, SyntaxFault
from streamsql.language.parser import parse_script
from streamsql.language.short_forms import expand
from streamsql.plan.context import Context
from streamsql.plan.planner import plan


def plan_script(text: str) -> None:
    """Plan each statement of a script with what those before define."""
    context = Context(Catalog())
    for statement in parse_script(Source("t.sql", text)):
        context = Context(plan(statement, context).applied(context.catalog))


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE LIVE TABLE c AS SELECT word, count(*) FROM {} GROUP BY word", "UNKNOWN_STREAM"),
        ("CREATE STREAM c AS SELECT word FROM {}", "UNKNOWN_STREAM"),
        ("CREATE LIVE TABLE c AS SELECT w.word FROM dimension d JOIN {} w ON d.k = w.k", "UNKNOWN_STREAM"),
        ("INSERT INTO k AS QUERY q SELECT word FROM {}", "UNKNOWN_STREAM"),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO k SELECT word FROM {}; END", "UNKNOWN_STREAM"),
        ("EXPLAIN CREATE LIVE TABLE c AS SELECT word FROM {}", "UNKNOWN_STREAM"),
    ],
)
def test_a_misspelt_stream_is_pointed_at(statement: str, code: str) -> None:
    given = (
        "CREATE STREAM words (word STRING, k INT) USING json OPTIONS (path 'in'); CREATE SINK k USING noop;"
    )
    text = given + statement.format("wrods")
    with pytest.raises(NameFault) as raised:
        plan_script(text)
    fault = raised.value
    assert (fault.message, fault.code) == ("there is no stream wrods", code)
    assert fault.hint == "did you mean words?"
    assert fault.span and text[fault.span.start : fault.span.end] == "wrods"


def test_a_table_of_spark_is_not_called_missing() -> None:
    """Planning does not ask Spark, so the message is about streams only."""
    with pytest.raises(NameFault, match="there is no stream sales") as raised:
        plan_script("CREATE LIVE TABLE c AS SELECT count(*) FROM sales")
    assert raised.value.detail == "the query reads no stream: sales does not exist, or is a table of Spark"
    plan_script("CREATE LIVE TABLE c AS SELECT count(*) FROM STREAM sales")
    for known in ("json.`in`", "main.sales", "range(10)", "(VALUES (1)) AS t", "(SELECT 1) AS t"):
        with pytest.raises(RuleFault, match="the query of live table c reads no stream") as refused:
            plan_script(f"CREATE LIVE TABLE c AS SELECT count(*) FROM {known}")
        assert refused.value.code == "NO_STREAM"


def test_a_query_creates_no_table_for_a_misspelt_sink(console: Console) -> None:
    console.run("CREATE STREAM r USING rate;")
    statement = "INSERT INTO nowhere SELECT value FROM r;"
    with pytest.raises(NameFault, match="there is no sink or table nowhere") as caught:
        console.run(statement)
    span = caught.value.span
    assert span and statement[span.start : span.end] == "nowhere"
    assert not console.session.spark.catalog.tableExists("nowhere")
    console.run("CREATE TABLE nowhere (value BIGINT) USING parquet;")
    console.run("INSERT INTO nowhere TRIGGER ONCE SELECT value FROM r;")
    console.run("AWAIT QUERY nowhere;")


def test_from_with_the_name_of_a_sink_proposes_to_preview_what_it_wrote(
    console: Console, tmp_path: Path
) -> None:
    console.run(
        f"""CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1);
        CREATE SINK out USING csv OPTIONS (path '{tmp_path}/out', header true);
        INSERT INTO out TRIGGER AVAILABLE NOW SELECT * FROM s; AWAIT QUERY out;
        CREATE SINK nowhere USING noop;"""
    )
    for statement in ("SELECT * FROM out", "CREATE LIVE TABLE t AS SELECT k FROM out"):
        with pytest.raises(RuleFault, match="out is a sink: queries write to it, and FROM cannot") as refused:
            console.run(f"{statement};")
        assert refused.value.span and statement[refused.value.span.start :] == "out"
    preview = console.run(refused.value.proposal)[0]
    assert preview.columns[:2] == ("k", "n") and [row[:2] for row in preview.rows] == [("a", 1)]
    with pytest.raises(RuleFault, match="nowhere is a sink") as refused:
        console.run("SELECT * FROM nowhere;")
    assert not refused.value.proposal


def test_a_live_table_of_tables_only_proposes_a_view(console: Console) -> None:
    console.run("CREATE TEMPORARY VIEW dim AS SELECT 1 AS k;")
    for statement in ("CREATE LIVE TABLE t", "CREATE STREAM t"):
        with pytest.raises(RuleFault, match="reads no stream") as refused:
            console.run(f"{statement} AS SELECT k + 1 AS k FROM dim;")
        console.run(refused.value.proposal)
        assert console.rows("SELECT * FROM t;") == [(2,)]
        console.run("DROP VIEW t;")


def test_show_of_what_is_not_shown(console: Console) -> None:
    for typed, message, hint in (
        ("SHOW LATE ROWS", "there is no statement SHOW LATE", "HELP SHOW"),
        ("SHOW SETTINGS LIKE 's%'", "there is no statement SHOW SETTINGS", "SET; shows the settings"),
        ("SHOW QUERY", "there is no statement SHOW QUERY", "did you mean QUERIES?"),
        ("SHOW FUNCTION", "there is no statement SHOW FUNCTION", "did you mean FUNCTIONS?"),
    ):
        with pytest.raises(SyntaxFault, match=message) as refused:
            console.run(f"{typed};")
        assert hint in refused.value.hint


def test_lists_of_names_like_a_pattern(console: Console) -> None:
    console.run(
        """CREATE STREAM aa (n INT) USING values; CREATE STREAM ab (n INT) USING values; CREATE SINK sb USING noop;
        CREATE LIVE TABLE la AS SELECT n FROM aa; CREATE LIVE TABLE lb AS SELECT n FROM ab;"""
    )
    for statement, names in (
        ("SHOW STREAMS LIKE '%b'", ["ab"]),
        ("SHOW SINKS LIKE 's*'", ["sb"]),
        ("SHOW SINKS LIKE 'x*'", []),
        ("SHOW LIVE TABLES LIKE '*a'", ["la"]),
        ("SHOW QUERIES LIKE 'L%'", ["la", "lb"]),
        ("SHOW QUERIES EXTENDED LIKE 'lb'", ["lb"]),
        ("SHOW TABLES LIKE 'lb|la*'", ["la", "lb"]),
        (expand(r"\dq *b", Preferences()) or "", ["lb"]),
        (expand(r"\d a*", Preferences()) or "", ["aa", "ab"]),
    ):
        assert [row[0] for row in console.rows(f"{statement.rstrip(';')};")] == names, statement
