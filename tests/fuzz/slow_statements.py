"""Long and deep statements, each of a size: work must grow with the size, not with its square."""

from __future__ import annotations

from collections.abc import Callable


def times(size: int, part: str, between: str = ", ") -> str:
    """part for 0, 1, … in place of #."""
    return between.join(part.replace("#", str(n)) for n in range(size))


RATE = "CREATE STREAM s USING rate;\n"
JSON = "USING json OPTIONS (path 'in')"


def _streams_on_streams(size: int) -> str:
    made = [f"CREATE STREAM s{n + 1} AS SELECT * FROM s{n};" for n in range(size)]
    return "\n".join(["CREATE STREAM s0 USING rate;", *made])


# name → (full size, the script of a size)
CASES: dict[str, tuple[int, Callable[[int], str]]] = {
    "columns": (10_000, lambda n: f"CREATE STREAM w ({times(n, 'c# INT')}) {JSON};"),
    "columns of a sink": (10_000, lambda n: f"CREATE SINK w ({times(n, 'c# INT')}) USING console;"),
    "fields": (5_000, lambda n: f"CREATE STREAM w (a STRUCT<{times(n, 'c#: INT')}>) {JSON};"),
    "blanks in a variable": (100_000, lambda n: "SELECT '${" + " " * n + "';"),
    "variables": (10_000, lambda n: "DEFINE x = 'a';\nSELECT '" + "${x}" * n + "';"),
    "EXPLAIN": (2_000, lambda n: "EXPLAIN " * n + "SELECT 1;"),
    "options": (5_000, lambda n: f"CREATE STREAM w USING kafka OPTIONS ({times(n, 'kafka.o# 1')}, topic 't', servers 'h:1');"),
    "joins": (2_000, lambda n: f"SELECT 1 FROM a0 {times(n, 'JOIN a# ON a0.x = a#.x', ' ')};"),
    "joins with a stream": (2_000, lambda n: f"{RATE}SELECT 1 FROM s {times(n, 'JOIN a# USING (x)', ' ')};"),
    "relations": (2_000, lambda n: f"{RATE}SELECT 1 FROM s, {times(n, 't#')};"),
    "grouping keys": (10_000, lambda n: f"{RATE}SELECT count(*) FROM s GROUP BY {times(n, 'k#')};"),
    "grouping keys in the list": (10_000, lambda n: f"{RATE}SELECT {times(n, 'k#')}, count(*) FROM s GROUP BY {times(n, 'k#')};"),
    "SELECT list": (10_000, lambda n: f"{RATE}SELECT {times(n, 'k# AS x#')} FROM s;"),
    "UNION ALL": (2_000, lambda n: RATE + times(n, "SELECT value FROM s", " UNION ALL ") + ";"),
    "WITH": (2_000, lambda n: f"WITH {times(n, 'c# AS (SELECT 1 AS x)')} SELECT * FROM c0;"),
    "conjuncts": (10_000, lambda n: f"{RATE}SELECT * FROM s WHERE {times(n, 'value = #', ' AND ')};"),
    "rows": (10_000, lambda n: f"INSERT INTO v VALUES {times(n, '(#)')};"),
    "digits of a duration": (50_000, lambda n: f"AWAIT QUERY ALL TIMEOUT '{'1' * n}';"),
    "parts of a duration": (10_000, lambda n: f"AWAIT QUERY ALL TIMEOUT INTERVAL {times(n, '1 SECOND', ' ')};"),
    "comments": (20_000, lambda n: "/*" * n + "*/" * n + " SELECT 1;"),
    "parentheses": (2_000, lambda n: "SELECT " + "(" * n + "1" + ")" * n + ";"),
    "types": (2_000, lambda n: "CREATE STREAM w (a " + "ARRAY<" * n + "INT" + ">" * n + f") {JSON};"),
    "pipes": (1_000, lambda n: "SELECT 1 " + "|> SELECT 1 " * n + ";"),
    "streams on streams": (200, _streams_on_streams),
    "statements": (3_000, lambda n: times(n, "CREATE STREAM s# USING rate;", "\n")),
}  # fmt: skip
