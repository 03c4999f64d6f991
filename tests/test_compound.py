"""Where a statement ends: BEGIN … END, statement sets and tests are one, whatever names stand inside."""

from __future__ import annotations

from typing import Any

import pytest

from streamsql.language.tokens import split, tokenize

OF_SPARK = [
    "BEGIN SELECT 1 AS end; DELETE FROM t; END",
    "BEGIN SELECT end FROM t; SELECT a end; END",
    "BEGIN SELECT t.end, `end`, begin FROM t AS begin; VALUES (1) AS case; END",
    "BEGIN SELECT CASE WHEN end > 1 THEN 2 END AS begin, case FROM t; BEGIN SELECT 1; END; END",
    "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 1; END; IF x THEN SELECT 1; ELSE BEGIN SELECT 3; END; END IF; END",
    "BEGIN IF CASE WHEN true THEN 2 ELSE 3 END = 2 THEN BEGIN SELECT 1; END; END IF; END",
    "BEGIN WHILE x DO SELECT 1; END WHILE; label: BEGIN END label; END",
    "BEGIN CASE x WHEN 1 THEN SELECT CASE WHEN a THEN b END; ELSE SELECT 2; END CASE; END",
    "BEGIN REPEAT SELECT 1; UNTIL x END REPEAT; l: LOOP LEAVE l; END LOOP l; END",
    "BEGIN FOR r AS SELECT 1 AS n DO SELECT r.n AS end; END FOR; END",
    "BEGIN END",
    "EXECUTE IMMEDIATE 'SELECT 1' INTO begin",
]
"""Statements of Spark, each of which is one."""
OF_THE_CONSOLE = [
    "EXECUTE STATEMENT SET AS QUERY begin BEGIN INSERT INTO a SELECT 1 AS end FROM s; INSERT INTO b SELECT case FROM s; END",
    "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM s; END",
    "TEST 'a' BEGIN GIVEN s VALUES (1); BEGIN SELECT 1 AS end; END; EXPECT t VALUES (1); END TEST",
    "EXPLAIN COST SELECT 1 AS end",
]


def pieces(text: str) -> list[str]:
    return [text[p.tokens[0].start : p.tokens[-1].end] for p in split(tokenize(text))]


@pytest.mark.parametrize("statement", [*OF_SPARK, *OF_THE_CONSOLE])
def test_a_statement_ends_where_its_structure_ends(statement: str) -> None:
    assert pieces(f"{statement}; SELECT 2; {statement}") == [statement, "SELECT 2", statement]


def test_a_compound_statement_is_open_until_its_end() -> None:
    (piece,) = split(tokenize("BEGIN SELECT 1 AS end;"))
    assert not piece.closed


def test_a_missing_semicolon_does_not_take_the_rest_of_the_script() -> None:
    assert pieces("BEGIN SELECT 1 END; SELECT 2; BEGIN SELECT 3 END;") == [
        "BEGIN SELECT 1 END",
        "SELECT 2",
        "BEGIN SELECT 3 END",
    ]


@pytest.mark.parametrize("statement", OF_SPARK)
def test_spark_takes_these_statements(spark: Any, statement: str) -> None:
    assert spark._jsparkSession.sessionState().sqlParser().parsePlan(statement) is not None
