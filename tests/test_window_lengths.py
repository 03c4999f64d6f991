"""The lengths of windows: what is refused is what Spark refuses, with its place and a way out that works."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Console, cases_of
from pyspark.errors import PySparkException

from streamsql.errors import StreamsqlError

ROOMS = ("streamsql/plan/",)

CALLS = [
    "window(at, '5 minutes')",
    "window(at, 'interval 5 Minutes', '90 seconds', '-1 second')",
    "window(at, '1 hour 30 minutes', '0.5 hours')",
    "window(at, '1.5 seconds')",
    "window(at, '5 minut')",
    "window(at, '5m')",
    "window(at, '5 min')",
    "window(at, '2 hrs')",
    "window(at, '10 ms')",
    "window(at, '1 month')",
    "window(at, '1 year')",
    "window(at, '1 week')",
    "window(at, '0 seconds')",
    "window(at, '-1 minute')",
    "window(at, '1 minute', '0 seconds')",
    "window(at, '1 minute', '1 minute')",
    "window(at, '1 minute', '5 minutes')",
    "session_window(at, '5 minutes')",
    "session_window(at, '5 mins')",
    "session_window(at, '1 fortnight')",
    "session_window(at, '1 month')",
]


@pytest.mark.parametrize("call", cases_of({call: call for call in CALLS}, 3))
def test_what_is_refused_is_what_spark_refuses(console: Console, spark: Any, call: str) -> None:
    refused, spark_refused = "", False
    query = f"SELECT {call}.start, count(*) FROM {{}} GROUP BY {call}"
    console.run("CREATE STREAM s (at TIMESTAMP) USING values WITH WATERMARK at DELAY OF 1 MINUTE;")
    try:
        console.run(f"EXPLAIN PYSPARK {query.format('s')};")
    except StreamsqlError as error:
        refused = str(error.hint or error.message)
        assert error.code == "BAD_DURATION"
        assert error.span is not None
    try:
        values = "VALUES (TIMESTAMP '2024-01-01 00:00:00') AS s (at)"
        # Of a session whose gap it cannot read, Spark only leaves out the rows.
        spark_refused = not spark.sql(query.format(values)).collect()
    except PySparkException:
        spark_refused = True
    assert bool(refused) == spark_refused, refused
    if refused.startswith("'"):  # the text in full words
        literal = call[call.index("'") : call.rindex("'") + 1]
        console.run(f"EXPLAIN PYSPARK {query.format('s').replace(literal, refused)};")


@pytest.mark.parametrize(
    ("window", "unit"),
    [
        ("s GROUP BY window(at, '1 month')", "MONTH"),
        ("s GROUP BY window(at, '1 year 2 months')", "YEAR"),
        ("TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL 1 MONTH) GROUP BY window_start, window_end", "MONTH"),
    ],
)
def test_a_window_of_months_is_a_group_by_date_trunc(console: Console, window: str, unit: str) -> None:
    console.run("CREATE STREAM s (at TIMESTAMP) USING values; INSERT INTO s VALUES ('2024-05-17');")
    with pytest.raises(StreamsqlError, match="no fixed length") as refused:
        console.run(f"SELECT count(*) FROM {window};")
    assert refused.value.detail == "Spark requires a fixed length for windows"
    assert refused.value.hint == f"GROUP BY date_trunc('{unit}', at)"
    assert console.rows(f"SELECT count(*) AS n FROM s {refused.value.hint};") == [(1,)]


@pytest.mark.parametrize(
    ("relation", "hint"),
    [
        ("s GROUP BY window(at, '1 minute', '5 minutes')", "window(at, '5 minutes', '1 minute')"),
        (
            "s GROUP BY HOP(at, INTERVAL '5' MINUTE, INTERVAL '1' MINUTE)",
            "HOP(at, INTERVAL 1 minute, INTERVAL 5 minute)",
        ),
        (
            "HOP(TABLE s, DESCRIPTOR(at), INTERVAL 5 MINUTES, INTERVAL 1 MINUTE) GROUP BY window_start, window_end",
            "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL 1 minute, INTERVAL 5 minutes)",
        ),
    ],
)
def test_lengths_in_the_wrong_order(console: Console, relation: str, hint: str) -> None:
    console.run("CREATE STREAM s (at TIMESTAMP) USING values WITH WATERMARK at DELAY OF 1 MINUTE;")
    with pytest.raises(StreamsqlError, match="cannot slide by") as refused:
        console.run(f"CREATE LIVE TABLE n AS SELECT count(*) AS n FROM {relation};")
    assert refused.value.hint == hint
    end = relation.index(" GROUP BY") if relation.startswith("HOP") else 0
    right = (
        hint.replace("TABLE t", "TABLE s").replace("(ts)", "(at)") + relation[end:]
        if end
        else f"s GROUP BY {hint}"
    )
    console.run(f"CREATE LIVE TABLE n AS SELECT count(*) AS n FROM {right};")
