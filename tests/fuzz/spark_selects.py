"""SELECTs for the differential of `--check` against Spark's own parser: collected and generated."""

from __future__ import annotations

import random
import re
from typing import Any

import corpus
from queries import Queries

# From issues and from trying: each was refused once by --check, and Spark's parser takes it.
NAMED = (
    "SELECT extract(HOUR FROM vi) AS h FROM a",
    "SELECT * FROM f(TABLE(SELECT 1) WITH SINGLE PARTITION)",
    "SELECT * FROM t WITH (x = 1)",
    "SELECT parse_json('{}'):a.b::string",
    "FROM t |> SET x = 1 |> DROP y",
    "WITH RECURSIVE c(x) MAX RECURSION LEVEL 5 AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT * FROM c",
    "SELECT IDENTIFIER('f')(1)",
    "SELECT cross FROM t",
    "SELECT qualify FROM t",
    "SELECT 1 AS x FROM a UNION SELECT 2 FROM b |> INTERSECT SELECT 2 FROM c",
    "SELECT " + "(" * 50 + "1" + ")" * 50,
    "SELECT from_unixtime(1), `from` FROM `select`",
    "SELECT * FROM a, LATERAL (SELECT a.x) b",
    "SELECT date '2024-01-01' + interval '1' day",
    "SELECT transform(xs, (x, i) -> x + i), m['a'].b[0] FROM t",
    "SELECT 1 -- the end",
    "SELECT 1 /* the end */",
    "SELECT 'a' \"b\" r'c'",
    "SELECT sum(x) FILTER (WHERE y) OVER (PARTITION BY z) FROM t",
    "SELECT * FROM t TABLESAMPLE (10 PERCENT) REPEATABLE (3)",
    "SELECT TRANSFORM (a, b) USING 'cat' AS (c STRING, d INT) FROM t",
    "MAP a, b USING 'cat' AS c FROM t",
    "FROM a INSERT INTO b SELECT x",
    "SELECT a.*, b.* EXCEPT (k) FROM a JOIN b ON a.k = b.k",
    "SELECT try_cast(x AS INT), x::INT::STRING, -x::INT FROM t",
    "SELECT CASE WHEN x THEN 1 END CASE FROM t",
)


def function_examples(spark: Any) -> list[str]:
    """The examples that Spark's own functions are documented with."""
    infos = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    texts = (info.getExamples() for info in infos)
    found = [e.strip() for text in texts for e in re.findall(r"^\s*> (.*?;)\s*$", text, re.M | re.S) if e]
    return [
        e.rstrip(";") for e in found if e.split(None, 1)[0].upper() in ("SELECT", "WITH", "FROM", "VALUES")
    ]


def collected(spark: Any) -> list[str]:
    """SELECTs that somebody wrote: the corpora of the tests and Spark's documentation."""
    heads = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
    there = [
        s for s in (*corpus.statements(), *corpus.shared_queries()) if s.split(None, 1)[0].upper() in heads
    ]
    # ${name} and the window table functions are the console's own, with rules of their own.
    plain = [s for s in there if "${" not in s and "DESCRIPTOR(" not in s]
    return list(dict.fromkeys([*NAMED, *function_examples(spark), *plain]))


def generated(count: int, seed: int) -> list[str]:
    queries = Queries(random.Random(seed))
    return [queries.query() for _ in range(count)]
