"""Shapes of SELECTs that Spark's checks for streams let pass and its planner does not, and their neighbours: each
gives the rows of a batch, or is refused before its query starts. None fails while it runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from conftest import Console

from streamsql.errors import QueryFault, StreamsqlError

ROOMS = ("streamsql/language/", "streamsql/plan/", "streamsql/runtime/queries/")

SHAPES = """
SELECT EXISTS (SELECT t1.b + t1.c) AS x FROM tbl t1
SELECT a FROM tbl WHERE EXISTS (SELECT 1 WHERE a > 1)
SELECT a, EXISTS (SELECT 1 FROM st WHERE st.x = tbl.a) AS e FROM tbl
SELECT a, a IN (SELECT x FROM st) AS e FROM tbl
SELECT a FROM tbl WHERE a IN (SELECT x FROM st) OR b = 1
SELECT a FROM tbl WHERE a NOT IN (SELECT x FROM st WHERE x IS NOT NULL)
SELECT a FROM tbl WHERE a NOT IN (SELECT x FROM st) AND b > 0
SELECT a FROM tbl WHERE NOT EXISTS (SELECT 1 FROM st WHERE st.x < tbl.a)
SELECT a, (SELECT a + 1) AS z FROM tbl
SELECT a, (SELECT max(x) FROM st) AS z FROM tbl
SELECT a, (SELECT max(x) FROM st WHERE st.x = tbl.a) AS z FROM tbl
SELECT a, (SELECT count(*) FROM st WHERE st.x < tbl.a) AS z FROM tbl
SELECT a, m FROM tbl, LATERAL (SELECT max(x) AS m FROM st WHERE st.x < tbl.a)
SELECT a, z FROM tbl, LATERAL (SELECT a + 1 AS z)
SELECT a, z FROM tbl LEFT JOIN LATERAL (SELECT a + 1 AS z) q ON q.z < tbl.b
SELECT a, z FROM tbl LEFT JOIN LATERAL (SELECT x AS z FROM st) q ON q.z < tbl.b
SELECT a, z FROM tbl LEFT JOIN LATERAL (SELECT x AS z FROM st) q ON q.z = tbl.b
SELECT x, q.b FROM st, tbl LEFT JOIN LATERAL (SELECT b FROM tbl) AS q ON q.b < tbl.a
SELECT listagg(DISTINCT s, ',') WITHIN GROUP (ORDER BY s) AS l FROM tbl
SELECT a, listagg(s, ',') WITHIN GROUP (ORDER BY s) AS l FROM tbl GROUP BY a
SELECT listagg(s, ',') WITHIN GROUP (ORDER BY b DESC, s) AS l FROM tbl
SELECT string_agg(s) WITHIN GROUP (ORDER BY s DESC) AS l FROM tbl
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY b) AS p FROM tbl
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY b) AS p FROM tbl
SELECT mode() WITHIN GROUP (ORDER BY b) AS p FROM tbl
SELECT median(b) AS p FROM tbl
SELECT map('a', b) AS m, count(*) AS n FROM tbl GROUP BY map('a', b)
SELECT to_json(map_entries(map('a', b))) AS m, count(*) AS n FROM tbl GROUP BY map_entries(map('a', b))
SELECT map('a', s) AS m, count(*) AS n FROM tbl GROUP BY map('a', s)
SELECT a, b, count(*) AS n FROM tbl GROUP BY ROLLUP (a, b)
SELECT a, b, count(*) AS n FROM tbl GROUP BY CUBE (a, b)
SELECT a, grouping_id(a) AS g, count(*) AS n FROM tbl GROUP BY GROUPING SETS ((a), ())
SELECT DISTINCT a FROM tbl ORDER BY a
SELECT l.a, r.b FROM tbl l, tbl r WHERE l.a < r.b
SELECT l.a, r.b FROM tbl l JOIN tbl r ON l.a < r.b
SELECT l.a, r.b FROM tbl l CROSS JOIN tbl r
SELECT l.a, r.b FROM tbl l JOIN tbl r
SELECT l.a, r.b FROM tbl l INNER JOIN tbl r WHERE l.a = r.b
SELECT l.a, r.b FROM tbl l LEFT JOIN tbl r
SELECT * FROM (SELECT a FROM tbl) NATURAL JOIN (SELECT b FROM tbl)
SELECT l.a, r.b FROM tbl l JOIN tbl r USING (a)
SELECT l.c, r.b FROM tbl l JOIN tbl r APPROX NEAREST 1 BY DISTANCE abs(l.a - r.b) WHERE r.s = 'q'
SELECT l.a, x FROM tbl l JOIN st
SELECT p, w FROM (tbl l CROSS JOIN tbl r) AS t(p, q, r, u, v, w, x, y)
SELECT p, q FROM (st JOIN tbl ON st.x = tbl.a) AS t(p, q, r, u, v)
SELECT a FROM tbl EXCEPT SELECT x FROM st
SELECT a FROM tbl EXCEPT ALL SELECT x FROM st
SELECT a FROM tbl INTERSECT SELECT x FROM st
SELECT a FROM tbl UNION ALL SELECT x FROM st
SELECT x FROM st EXCEPT SELECT a FROM tbl
SELECT x FROM st LEFT JOIN tbl ON st.x = tbl.a
SELECT x FROM st LEFT SEMI JOIN tbl ON st.x = tbl.a
SELECT x, b FROM st FULL JOIN tbl ON st.x = tbl.a
SELECT x FROM st WHERE x IN (SELECT a FROM tbl)
SELECT x, (SELECT count(*) FROM tbl WHERE a = x) AS n FROM st
SELECT x, n FROM st, LATERAL (SELECT count(*) AS n FROM tbl WHERE a = x)
SELECT count(*) FILTER (WHERE a IN (SELECT x FROM st)) AS n FROM tbl
SELECT a, count(*) AS n FROM tbl GROUP BY a HAVING count(*) IN (SELECT x FROM st)
SELECT a, count(*) AS n FROM tbl GROUP BY a HAVING max(b) > (SELECT min(x) FROM st)
SELECT a, sum(b) + 1 AS t FROM tbl GROUP BY a HAVING sum(b) - 1
SELECT sum(b) + 1 AS t FROM tbl HAVING sum(b) - 1
SELECT a, any(b > 4) AS y FROM tbl GROUP BY a HAVING any(b > 4)
SELECT CASE WHEN a IN (SELECT x FROM st) THEN 1 ELSE 0 END AS c FROM tbl
SELECT count(DISTINCT a) AS d, sum(b) AS t FROM tbl
SELECT sum(DISTINCT a) FILTER (WHERE b > 1) AS d FROM tbl
SELECT any(a > 1) AS y, every(b > 0) AS z, some(b = 2) AS w FROM tbl
SELECT any_value(1) AS v, max_by(s, b) AS m, min_by(s, b) AS n FROM tbl
SELECT * FROM (SELECT a, b FROM tbl) PIVOT (sum(b) FOR a IN (1, 2))
SELECT * FROM tbl UNPIVOT (v FOR k IN (a, b))
SELECT a, sum(b) OVER (PARTITION BY a) AS w FROM tbl
SELECT a, b FROM tbl QUALIFY row_number() OVER (PARTITION BY a ORDER BY b, s) = 1
SELECT a, v FROM tbl LATERAL VIEW explode(array(a, b)) e AS v
SELECT a, sum(v) AS v FROM tbl LATERAL VIEW explode(array(a, b)) e AS v GROUP BY a
SELECT tbl.a, sum(e.v) AS v FROM tbl LATERAL VIEW explode(array(a, b)) e AS v WHERE e.v > 1 GROUP BY tbl.a
SELECT t.a, t.b FROM tbl AS t ORDER BY t.a, t.b LIMIT 2
SELECT sum(a) AS t FROM tbl UNION ALL SELECT sum(b) FROM tbl
SELECT count(*) AS t FROM tbl UNION ALL SELECT count(*) FROM tbl WHERE b > 1 UNION ALL SELECT a FROM tbl
WITH q AS (SELECT max(b) AS m FROM tbl) SELECT m FROM q UNION ALL SELECT m + 1 FROM q
SELECT * FROM (SELECT sum(a) AS t FROM tbl) JOIN (SELECT sum(b) AS u FROM tbl)
SELECT max(a) AS m FROM tbl GROUP BY GROUPING SETS (()) UNION ALL SELECT max(b) FROM tbl GROUP BY GROUPING SETS (())
SELECT max(a) AS m FROM tbl UNION ALL SELECT max(b) FROM tbl GROUP BY s
SELECT max(n) AS m FROM (SELECT a, count(*) AS n FROM tbl GROUP BY a)
SELECT a FROM (SELECT a, count(*) AS n FROM tbl GROUP BY a) UNION SELECT b FROM tbl
SELECT x AS k FROM (SELECT * FROM tbl AS u(x, y, z, w))
WITH q(k, v) AS (SELECT a, b FROM tbl) SELECT k, sum(v) AS v FROM q GROUP BY k
WITH q AS (SELECT * FROM tbl), r AS (SELECT a FROM q GROUP BY a) SELECT r.a, (SELECT sum(q.b) FROM q WHERE q.a = r.a) AS t FROM r
WITH q AS (SELECT * FROM tbl), r AS (SELECT a FROM q GROUP BY a) SELECT q.a, (SELECT count(*) FROM r WHERE r.a = q.a) AS n FROM q
WITH q AS (SELECT * FROM tbl) SELECT a FROM q WHERE b > (SELECT count(*) FROM tbl t WHERE t.b < (SELECT max(u.b) FROM q u WHERE u.a = t.a))
WITH RECURSIVE q(k) AS (SELECT a FROM tbl UNION ALL SELECT k + 1 FROM q WHERE k < 4) SELECT k FROM q
WITH RECURSIVE q(k) AS (SELECT 1 UNION ALL SELECT k + a FROM q JOIN tbl ON k < b AND k < 5) SELECT k FROM q
WITH RECURSIVE q(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM q WHERE k < 3) SELECT k, b FROM q JOIN tbl ON k = a
SELECT k, count(*) AS n FROM (WITH RECURSIVE q(k) AS (SELECT a FROM tbl UNION ALL SELECT k + 1 FROM q WHERE k < 4) SELECT k FROM q) GROUP BY k
SELECT x.k FROM (SELECT a FROM tbl) AS x(k)
SELECT a, sum(b) AS t FROM (SELECT a, b FROM tbl) NATURAL JOIN (SELECT x AS a FROM st) GROUP BY a
SELECT /*+ COALESCE(1) */ a, count(*) AS n FROM tbl GROUP BY a
""".strip().splitlines()
TABLE = "(SELECT * FROM VALUES (1, 2, 3, 'q'), (1, 5, 1, 'p'), (2, 2, 2, 'p'), (3, 1, CAST(NULL AS INT), 'r') t(a, b, c, s))"
"""The rows of the stream."""
REFUSED = {"SELECT map('a', b) AS m, count(*) AS n FROM tbl GROUP BY map('a', b)": "WRONG_TYPE"}
"""The codes of those that are refused."""


def outcome(console: Console, shape: str) -> str:
    """What became of a shape: "" for the rows of a batch."""
    try:
        console.run(f"CREATE LIVE TABLE shape AS {shape};")
    except QueryFault as fault:
        return f"failed at its start: {fault.message}"
    except StreamsqlError as fault:
        return fault.code
    try:
        console.run("AWAIT QUERY ALL IDLE;")
        rows = Counter(map(repr, console.rows("SELECT * FROM shape;")))
    except StreamsqlError as fault:
        return f"failed while running: {fault.message} {fault.detail}"
    finally:
        console.run("DROP LIVE TABLE shape;")
    spark = console.session.spark
    head = next((words for words in ("WITH RECURSIVE ", "WITH ") if shape.startswith(words)), "")
    given = f"{head or 'WITH '}tbl AS {TABLE}{',' if head else ''} {shape.removeprefix(head)}"
    expected = Counter(repr(tuple(row)) for row in spark.sql(given).collect())
    return "" if rows == expected else f"gives {rows}, a batch {expected}"


@pytest.mark.timeout(1800)
def test_each_shape_gives_the_rows_of_a_batch_or_is_refused_before_the_start(
    console: Console, tmp_path: Path
) -> None:
    """The rows of the stream come in two micro-batches: what keeps no state has the wrong ones in the second."""
    for half in ("a = 1", "a > 1"):
        rows = console.session.spark.sql(f"SELECT * FROM {TABLE} WHERE {half}")
        rows.coalesce(1).write.mode("append").parquet(str(tmp_path / "tbl"))
    console.run(
        f"""CREATE STREAM tbl (a INT, b INT, c INT, s STRING)
        USING parquet OPTIONS (path '{tmp_path / "tbl"}', maxFilesPerTrigger 1);
        CREATE TABLE st (x INT) USING parquet; INSERT INTO st VALUES (1), (3), (NULL);"""
    )
    outcomes = {}
    for shape in SHAPES:
        outcomes[shape] = outcome(console, shape)
        print(f"{shape}\n    {outcomes[shape][:300]}", flush=True)
    assert {shape: what for shape, what in outcomes.items() if what} == REFUSED
