"""Spark's grammar without Spark: what its parser can read is never refused, and a syntax error is placed."""

from __future__ import annotations

import json
from typing import Any

import make_spark_grammar
import pytest
from pyspark.errors import ParseException

from streamsql.language.spark_grammar import Switches, first_wrong
from streamsql.language.tokens import tokenize


def test_the_grammar_agrees_with_spark(spark: Any) -> None:
    written = make_spark_grammar.FILE.read_text("utf-8")
    made = make_spark_grammar.write(make_spark_grammar.grammar(spark))
    assert json.loads(written) == json.loads(made)


TAKEN = [
    "SELECT a [0], m.x, .5, 1.5e3, 10L, X'1F', r'\\d' FROM `t u` AS v(a, m) WHERE a >> 2 > -1",
    "SELECT CAST(x AS ARRAY<ARRAY<INT>>), doc:name, id::string FROM t",
    "SELECT /*+ BROADCAST(d) */ count(*) OVER w FROM t d WINDOW w AS ()",
    "SELECT transform (a, x -> x + 1), map(1, 2)[1] FROM t |> WHERE x > 1 |> SELECT y",
    "SELECT a FROM t FROM",
    "FROM s INSERT INTO a SELECT * INSERT INTO b SELECT *",
    "SET spark.sql.shuffle.partitions = a b ? c",
    "BEGIN DECLARE x INT DEFAULT 1; IF x > 0 THEN SELECT x; END IF; END",
    "SELECT 1;",
    "SELECT CAST(x AS ARRAY<ARRAY<INT> >), a >>> 1, a << 1, a <> b, a>>b FROM t",
    "SELECT /*+ MERGE(a), REPARTITION(3, k) */ 1 AS IDENTIFIER('a') FROM IDENTIFIER('t') AS IDENTIFIER('u')",
    "ADD JAR s3://bucket/a#b.jar",
]
REFUSED = [
    ("SELECT a FROM t WHERE x =", None),
    ("SELECT a FROM t WHERE x = = 1", "="),
    ("SELECT a b c FROM t", "c"),
    ("SELECT (a FROM t", "t"),
    ("SELECT a FROM t GROUP a", "a"),
    ("SELECT * FROM t d LIMIT", None),
    ("CREATE TABLE (a INT)", "("),
    ("SELECT CASE WHEN a THEN b FROM t", "FROM"),
    ("INSERT INTO VALUES (1", "1"),
    ("SELECT a FROM t ORDER a", "a"),
    ("SELECT 1 AS one\nSELECT 2", "SELECT"),
    ("ALTER TABLE t ADD", None),
    ("SELECT a && b FROM t", "&&"),
    ("SELECT a > > 2", ">"),
    ("SELECT a > >> 2", ">"),
    ("SELECT a < < 2", "<"),
    ("SELECT a # b FROM t", "#"),
    ("SELECT /*+ IDENTIFIER('MERGE')(t) */ * FROM t", "/*+ IDENTIFIER('MERGE')(t) */"),
]


@pytest.mark.parametrize("text", TAKEN)
def test_what_spark_reads_is_taken(spark: Any, text: str) -> None:
    assert first_wrong(tokenize(text)) is None
    spark._jsparkSession.sessionState().sqlParser().parsePlan(text)


@pytest.mark.parametrize(("text", "wrong"), REFUSED)
def test_what_spark_cannot_read_is_placed(spark: Any, text: str, wrong: str | None) -> None:
    tokens = tokenize(text)
    at = first_wrong(tokens)
    assert at is not None
    assert (tokens[at].text if at < len(tokens) else None) == wrong
    with pytest.raises(ParseException):
        spark._jsparkSession.sessionState().sqlParser().parsePlan(text)


def test_double_quotes_make_names_under_the_setting_only() -> None:
    text = tokenize('SELECT "a" AS "b" FROM "t"')
    assert first_wrong(text) == 3
    assert first_wrong(text, switches=Switches(quoted_names=True)) is None
    assert first_wrong(tokenize('SELECT INTERVAL "1" YEAR'), switches=Switches(quoted_names=True)) is not None


def test_identifier_makes_no_alias_under_the_setting_of_before(spark: Any) -> None:
    settings = {"spark.sql.legacy.identifierClause": "true"}
    before, session = Switches.of(settings), spark.newSession()
    alias, clause = "SELECT 1 AS IDENTIFIER('a')", "SELECT IDENTIFIER('a') FROM IDENTIFIER('t')"
    assert first_wrong(tokenize(alias)) is None
    assert first_wrong(tokenize(alias), switches=before) == 4
    assert first_wrong(tokenize(clause), switches=before) is None
    for name, value in settings.items():
        session.conf.set(name, value)
    spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
    parser = session._jsparkSession.sessionState().sqlParser()
    parser.parsePlan(clause)
    with pytest.raises(ParseException):
        parser.parsePlan(alias)


def test_a_query_may_stand_alone() -> None:
    assert first_wrong(tokenize("SELECT a FROM t ORDER BY a"), query=True) is None
    assert first_wrong(tokenize("DROP TABLE t"), query=True) == 0
