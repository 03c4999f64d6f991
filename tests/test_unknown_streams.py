"""A query that reads no stream: a misspelt stream is pointed at; what may be a table of Spark is not missing."""

from __future__ import annotations

import pytest
from conftest import Console

from streamsql.catalog import Catalog
from streamsql.errors import NameFault, RuleFault, Source
from streamsql.language.parser import parse_script
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
