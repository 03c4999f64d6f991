"""What Spark's parser takes, `--check` does not refuse: over thousands of SELECTs, nothing is run."""

from __future__ import annotations

import re
from typing import Any

import pytest
from properties import Console
from pyspark.errors import PySparkException
from spark_selects import collected, generated

from streamsql.language.tokens import quote_name

ROOMS = ("streamsql/language/", "streamsql/cli/")

# A stream whose name is near to the column vi; no table of the SELECTs is near to it.
STREAM = "CREATE STREAM vip USING rate;"


def taken_by_spark(spark: Any, texts: list[str]) -> list[str]:
    parser = spark._jsparkSession.sessionState().sqlParser()
    found = []
    for text in texts:
        try:
            parser.parsePlan(text)
        except PySparkException:
            continue
        found.append(text)
    return found


# Spark's parser takes these; Spark then refuses them when it looks for names, or computes what nobody means.
LATER = (
    "there is no column ",
    "there is no window ",
    "a session window cannot be a key of OVER",
    "Spark has no * LIKE",
    "DISTINCT ON keeps the row of each key that comes first",
)


def refused(texts: list[str]) -> dict[str, str]:
    """Text → what `--check` has against it."""
    console = Console(STREAM)
    found = {}
    for text in texts:
        errors = console.refusals(text)
        if errors and not errors[0].message.startswith(LATER):
            found[text] = errors[0].message
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "least"), [("collected", 200), ("generated", 100)])
def test_nothing_is_refused_that_sparks_parser_takes(spark: Any, kind: str, least: int) -> None:
    texts = collected(spark) if kind == "collected" else generated(400, seed=1)
    taken = taken_by_spark(spark, texts)
    assert len(taken) >= least
    wrong = refused(taken)
    listed = "\n".join(f"{t[:300]!a}\n    {why}" for t, why in list(wrong.items())[:40])
    assert not wrong, f"{len(wrong)} of {len(taken)} are refused:\n{listed}"


PLACES = (
    "SELECT {} FROM t", "SELECT {}, n FROM t", "SELECT n, {} FROM t", "SELECT t.{} FROM t", "SELECT {}.n FROM {}",
    "SELECT n AS {} FROM t", "SELECT 1 FROM t AS {}", "SELECT 1 + {}, max({}) FROM t WHERE {} = 1 GROUP BY {}",
    "SELECT 1 FROM t ORDER BY {}", "CREATE TABLE x ({} INT, s STRUCT<{}: INT>) USING parquet",
)  # fmt: skip
"""Where names of columns and tables stand."""


def test_spark_reads_each_keyword_as_a_name_as_the_console_writes_it(spark: Any) -> None:
    """A column `true` that is written true would be the literal."""
    parser = spark._jsparkSession.sessionState().sqlParser()

    def tree(text: str) -> str:
        try:
            return re.sub(r"#\d+", "", parser.parsePlan(text).toString())
        except PySparkException:
            return "refused"

    keywords = [row.keyword for row in spark.sql("SELECT keyword FROM sql_keywords()").collect()]
    assert "TRUE" in keywords
    for word in keywords:
        for place in PLACES:
            quoted = tree(place.replace("{}", f"`{word}`"))
            assert quoted != "refused" and tree(place.replace("{}", quote_name(word))) == quoted, (
                word,
                place,
            )
