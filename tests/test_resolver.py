"""The one resolver of columns: `--check` refuses no query of Spark's, and finds the names that are nowhere."""

from __future__ import annotations

import pytest

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse_script
from streamsql.plan.context import Context
from streamsql.plan.resolver import Resolver

STREAMS = """CREATE STREAM c (id INT, m MAP<STRING, INT>, doc VARIANT, s STRUCT<a: INT>, l ARRAY<INT>, at TIMESTAMP)
USING values; CREATE STREAM d (id INT, k STRING, at TIMESTAMP) USING values;"""


def checked(script: str) -> tuple[Catalog, list[StreamsqlError]]:
    """The catalog after a script, and what `--check` finds in it."""
    checker = Checker(Context(Catalog()))
    statements = parse_script(Source("a.sql", STREAMS + script))
    faults = [fault for statement in statements for fault in checker.examine(statement).faults]
    return checker.catalog, faults


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM (SELECT CAST(id AS STRING) FROM c)",
        "SELECT id FROM (SELECT id::string FROM c)",
        "SELECT `(id + 1)` FROM (SELECT id + 1 FROM c)",
        "SELECT `count(1)` FROM (SELECT count(*) FROM c)",
        "SELECT `m[a]` FROM (SELECT m['a'] FROM c)",
        "SELECT doc:name FROM c",
        "SELECT /*+ BROADCAST(x) */ c.id FROM c JOIN d x ON c.id = x.id",
        "SELECT count(*) OVER w FROM c WINDOW w AS ()",
        "SELECT count(*) OVER w FROM c WINDOW w AS (PARTITION BY id), v AS w",
        "SELECT transform(l, x -> x + id) FROM c",
        "SELECT s.a, c.s.a FROM c",
        "SELECT id FROM c WHERE EXISTS (SELECT 1 FROM d WHERE d.id = c.id AND at > c.at)",
        "SELECT id FROM c WHERE id IN (SELECT id FROM d WHERE k = 'x')",
        "SELECT x FROM c LATERAL VIEW explode(l) t AS x",
        "SELECT x FROM c, LATERAL (SELECT c.id AS x)",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
        "WITH q(a) AS (SELECT id FROM c) SELECT a FROM q",
        "SELECT window.start, count(*) FROM c GROUP BY window(at, '1 minute')",
        "SELECT id AS b, b + 1 AS e FROM c",
        "SELECT id AS b FROM c ORDER BY b",
        "SELECT id FROM c GROUP BY ALL",
        "SELECT a FROM VALUES (1) AS t(a)",
        "SELECT * FROM c NATURAL JOIN d WHERE k = 'x'",
        "SELECT k FROM c JOIN d USING (id) WHERE id > 1",
        "SELECT timestampdiff(HOUR, at, at), extract(DAY FROM at), at + INTERVAL 1 DAY FROM c",
        "SELECT y FROM (SELECT id AS y FROM c UNION ALL SELECT id FROM d)",
        "SELECT col FROM (SELECT explode(l) FROM c)",
        "SELECT * EXCEPT (id) FROM c",
        "SELECT p FROM c PIVOT (count(id) FOR id IN (1 AS p))",
        "SELECT (SELECT max(k) FROM d WHERE d.id = c.id) FROM c",
        "SELECT date_add(start_date => at, num_days => 1) FROM c",
        "SELECT current_timestamp, current_date, now(), map(1, 2)[1] FROM c",
        "SELECT id FROM c QUALIFY row_number() OVER (PARTITION BY id ORDER BY at) = 1",
        "SELECT grouping__id, id FROM c GROUP BY CUBE (id)",
        "SELECT id FROM TUMBLE(TABLE c, DESCRIPTOR(at), INTERVAL 1 MINUTE) GROUP BY id, window_start",
        "SELECT id FROM (SELECT * FROM c) AS q",
        "SELECT q.id FROM (c JOIN d ON c.id = d.id) AS q",
        "SELECT c.id FROM (c JOIN d ON c.id = d.id)",
        "SELECT y FROM (SELECT id AS y FROM c WHERE id IN (SELECT id FROM d WHERE k IS NOT NULL))",
        "SELECT inline(array(struct(1 AS a, 2 AS b))) FROM c",
        "SELECT stack(1, id, id) AS (u, v) FROM c ORDER BY u",
        "INSERT INTO IDENTIFIER('t' || 'b') VALUES (1)",
        "SELECT e FROM (SELECT id e FROM d)",
    ],
)
def test_a_query_that_spark_runs_is_not_refused(query: str) -> None:
    assert checked(f"{query};")[1] == []


@pytest.mark.parametrize(
    ("query", "missing"),
    [
        ("SELECT idd FROM c", "idd"),
        ("SELECT c.idd FROM c", "c.idd"),
        ("SELECT idd FROM (SELECT id FROM c)", "idd"),
        ("SELECT id FROM (SELECT idd FROM c)", "idd"),
        ("SELECT id FROM c WHERE EXISTS (SELECT 1 FROM d WHERE d.idd = c.id)", "d.idd"),
        ("SELECT id FROM c WHERE id IN (SELECT idd FROM d)", "idd"),
        ("SELECT id FROM c ORDER BY idd", "idd"),
        ("SELECT c.id FROM c JOIN d ON c.id = d.idd", "d.idd"),
        ("WITH q AS (SELECT id FROM c) SELECT at FROM q", "at"),
        ("SELECT at FROM (SELECT * EXCEPT (at) FROM c)", "at"),
        ("SELECT id FROM c GROUP BY idd", "idd"),
        ("SELECT id FROM c UNION ALL SELECT idd FROM d", "idd"),
        ("SELECT transform(l, x -> x + idd) FROM c", "idd"),
    ],
)
def test_a_name_that_no_relation_has_is_found_once(query: str, missing: str) -> None:
    _, faults = checked(f"{query};")
    assert [(fault.code, fault.message) for fault in faults] == [
        ("UNKNOWN_COLUMN", f"there is no column {missing}")
    ]


@pytest.mark.parametrize(
    ("query", "known", "complete"),
    [
        (
            "SELECT id, k AS name, count(*) AS n FROM d",
            [("id", "INT"), ("name", "STRING"), ("n", "BIGINT")],
            True,
        ),
        ("SELECT id, id + 1 FROM d", [("id", "INT")], False),
        ("SELECT * EXCEPT (at), doc:name FROM (SELECT * FROM d)", [("id", "INT"), ("k", "STRING")], False),
        (
            "SELECT d.* FROM c JOIN d ON c.id = d.id",
            [("id", "INT"), ("k", "STRING"), ("at", "TIMESTAMP")],
            True,
        ),
        ("WITH q(a, b) AS (SELECT id, k FROM d) SELECT * FROM q", [("a", "INT"), ("b", "STRING")], True),
        ("SELECT *, 1 AS one FROM elsewhere", [("one", "")], False),
    ],
)
def test_columns_of_a_query_are_known_as_far_as_its_text_tells(
    query: str, known: list[tuple[str, str]], complete: bool
) -> None:
    columns = Resolver(checked("")[0]).of_text(query)
    assert (list(columns.named), columns.complete) == (known, complete)
