"""Windows, joins and deduplication in steps: what a stream gives out in the end is what a table gives.

A query reads streams USING values, a step in each micro-batch, and its result is compared with that of the
same SELECT over tables of the same rows; those with state end before the second step and resume from their
checkpoint. `STREAMSQL_MATRIX=full python -m pytest
tests/test_stream_results.py` also plays the queries with state without a stop.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import Console, cases_of, fresh_console, notes_of

ROOMS = ("streamsql/plan/", "streamsql/runtime/")

FULL = os.environ.get("STREAMSQL_MATRIX") == "full"
COLUMNS = "(id INT, k STRING, v INT, ts TIMESTAMP)"
STREAMS = ("c", "w")
# (rows of c, rows of w) of each step; none is late.
STEPS = (
    ("(1, 'a', 1, '10:00'), (2, 'b', 2, '10:01'), (3, 'a', 3, '10:04')", "(1, 'a', 10, '10:00'), (4, 'd', 40, '10:02')"),
    (
        "(1, 'a', 1, '10:00'), (5, 'a', 5, '10:06'), (6, 'c', 6, '10:12')",
        "(2, 'b', 20, '10:05'), (3, 'a', 30, '10:08'), (6, 'c', 60, '10:12')",
    ),
    ("(5, 'a', 5, '10:06'), (7, 'b', 7, '10:14'), (8, 'a', 8, '10:31')", "(7, 'b', 70, '10:14'), (9, 'a', 90, '10:30')"),
)  # fmt: skip
# A row of each stream far ahead, which closes all that is open.
LAST = "(0, 'zz', 0, '2030-01-01 00:00:00')"
TAGS = "SELECT * FROM VALUES ('a', 'x'), ('a', 'y'), ('b', 'z'), ('q', 'none') AS t(k, tag)"


def dated(rows: str) -> str:
    return rows.replace("'10:", "'2024-05-01 10:")


def table(stream: str) -> str:
    """The rows of all steps as a table of Spark."""
    rows = ", ".join(dated(step[STREAMS.index(stream)]) for step in STEPS)
    return f"SELECT id, k, v, CAST(ts AS TIMESTAMP) AS ts FROM VALUES {rows} AS t(id, k, v, ts)"


def kept(rows: Any) -> list[str]:
    return sorted(repr(tuple(row)) for row in rows if "zz" not in tuple(row))


@dataclass(frozen=True)
class Case:
    """query: the SELECT; batch: the same in Spark's own words where the console reads it otherwise."""

    query: str
    mode: str = "append"
    batch: str = ""


STREAM = f"CREATE STREAM {{}} {COLUMNS} USING values WITH WATERMARK ts DELAY '10 minutes';"


def insert(console: Console, *steps: tuple[str, str]) -> None:
    for step in steps:
        for name, inserted in zip(STREAMS, step, strict=True):
            console.run(f"INSERT INTO {name} VALUES {dated(inserted)}")


@pytest.fixture(scope="module")
def as_tables(spark: Any) -> Any:
    """A session of Spark in which the streams are tables."""
    session = spark.newSession()
    for name in STREAMS:
        session.sql(table(name)).createOrReplaceTempView(name)
    session.sql(TAGS).createOrReplaceTempView("tags")
    return session


@pytest.fixture(scope="module")
def all_steps(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A console with the rows of all steps in its streams."""
    with fresh_console(spark, tmp_path_factory.mktemp("all")) as console:
        spark.sql(TAGS).createOrReplaceTempView("tags")
        console.run("".join(STREAM.format(name) for name in STREAMS))
        insert(console, *STEPS, (LAST, LAST))
        yield console


@pytest.fixture(scope="module")
def after_one_step(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A console whose queries have ended after the first step; the other steps are there."""
    with fresh_console(spark, tmp_path_factory.mktemp("restarts")) as console:
        console.run("".join(STREAM.format(name) for name in STREAMS))
        insert(console, STEPS[0])
        for number, case in enumerate(STATEFUL.values()):
            console.run(live_table(f"q{number}", case))
        console.run("AWAIT QUERY ALL TIMEOUT INTERVAL 2 MINUTES")
        insert(console, *STEPS[1:], (LAST, LAST))
        yield console


def live_table(name: str, case: Case) -> str:
    return f"CREATE LIVE TABLE {name} OUTPUT MODE {case.mode} TRIGGER AVAILABLE NOW AS {case.query};"


def check(console: Console, as_tables: Any, name: str, case: Case) -> None:
    """Await the query of a live table, and compare its rows with those of the same SELECT over tables."""
    console.run(f"AWAIT QUERY {name} TIMEOUT INTERVAL 2 MINUTES")
    expected = as_tables.sql(case.batch or case.query)
    result = console.run(f"SELECT * FROM {name}")[-1]
    assert list(result.columns) == expected.columns  # type: ignore[attr-defined]
    rows = kept(result.rows)  # type: ignore[attr-defined]
    assert rows == kept(expected.collect())
    assert rows


RANGE = "c.id = w.id AND w.ts BETWEEN c.ts AND c.ts + INTERVAL 4 MINUTES"
PER_WINDOW = "SELECT window, k, count(*) AS n, sum(v) AS s FROM {} GROUP BY window(ts, '5 minutes'), k"
IN_SPARK = (
    "SELECT window.start AS window_start, window.end AS window_end, k, sum(v) AS s FROM c GROUP BY {}, k"
)

WINDOWS = {
    "tumbling": Case("SELECT window.start AS s, k, count(*) AS n FROM c GROUP BY window(ts, '5 minutes'), k"),
    "sliding": Case("SELECT window.end AS e, sum(v) AS n, max(k) AS k FROM c GROUP BY window(ts, '10 minutes', '5 minutes') HAVING max(k) <> 'zz'"),
    "window_time": Case("SELECT window_time(window) AS at, k, n FROM (" + PER_WINDOW.format("c") + ")"),
    "window, update": Case("SELECT window.start AS s, k, count(*) AS n FROM c GROUP BY window(ts, '5 minutes'), k", "update"),
    "window, complete": Case("SELECT window.start AS s, k, count(*) AS n FROM c GROUP BY window(ts, '5 minutes'), k", "complete"),
    "aggregation of aggregation": Case(
        "SELECT window.start AS s, k, max(n) AS most FROM (SELECT window AS w, k, n FROM (" + PER_WINDOW.format("c") + ")) GROUP BY window(w, '10 minutes'), k"
    ),
    "aggregation of aggregation, window_time": Case(
        "SELECT window(window_time(window), '10 minutes').start AS s, k, sum(n) AS n FROM (" + PER_WINDOW.format("c")
        + ") GROUP BY window(window_time(window), '10 minutes'), k"
    ),
    "join, then aggregation": Case(
        f"SELECT window.start AS s, k, count(*) AS n FROM (SELECT c.k, c.ts FROM c JOIN w ON {RANGE}) GROUP BY window(ts, '5 minutes'), k"
    ),
    "aggregation, then table": Case("SELECT c.k, c.n, t.tag, c.window.start AS s FROM (" + PER_WINDOW.format("c") + ") c JOIN tags t ON c.k = t.k"),
    "aggregations joined": Case(
        "SELECT x.k, x.n, y.n AS m, x.window.start AS s FROM (" + PER_WINDOW.format("c") + ") x JOIN ("
        + PER_WINDOW.format("w") + ") y ON x.window = y.window AND x.k = y.k"
    ),
    "TUMBLE": Case(
        "SELECT window_start, window_end, k, sum(v) AS s FROM TUMBLE(TABLE c, DESCRIPTOR(ts), INTERVAL 5 MINUTES) GROUP BY window_start, window_end, k",
        batch=IN_SPARK.format("window(ts, '5 minutes')"),
    ),
    "HOP": Case(
        "SELECT window_start, window_end, k, sum(v) AS s FROM TABLE(HOP(TABLE c, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES)) GROUP BY k, window_start, window_end",
        batch=IN_SPARK.format("window(ts, '10 minutes', '5 minutes')"),
    ),
    "TUMBLE of TUMBLE": Case(
        "SELECT window_start, k, sum(s) AS s FROM TUMBLE(TABLE (SELECT window_time AS at, k, sum(v) AS s FROM TUMBLE(TABLE c, DESCRIPTOR(ts), INTERVAL 5 MINUTES) "
        "GROUP BY window_start, window_end, window_time, k), DESCRIPTOR(at), INTERVAL 10 MINUTES) GROUP BY window_start, window_end, k",
        batch="SELECT window.start AS window_start, k, sum(v) AS s FROM c GROUP BY window(ts, '10 minutes'), k",
    ),
    "rows with their windows": Case(
        "SELECT id, k, window_start, window_time FROM TUMBLE(TABLE c, DESCRIPTOR(ts), INTERVAL 5 MINUTES) x WHERE x.window_end > '2024-05-01 10:10:00'",
        batch="SELECT id, k, window.start AS window_start, window_time(window) AS window_time FROM (SELECT *, window(ts, '5 minutes') AS window FROM c) WHERE window.end > '2024-05-01 10:10:00'",
    ),
}  # fmt: skip
# Each of these is also stopped in the middle and goes on.
STATEFUL = {
    "aggregation": Case("SELECT k, count(*) AS n, sum(v) AS s FROM c GROUP BY k", "update"),
    "session window": Case("SELECT session_window.start AS s, session_window.end AS e, k, count(*) AS n FROM c GROUP BY session_window(ts, '5 minutes'), k"),
    "session window, gap of data": Case(
        "SELECT session_window.start AS s, session_window.end AS e, k, count(*) AS n FROM c "
        "GROUP BY session_window(ts, CASE WHEN k = 'a' THEN '3 minutes' ELSE '20 minutes' END), k"
    ),
    "SESSION": Case(
        "SELECT window_start, window_end, k, sum(v) AS s FROM SESSION(TABLE c PARTITION BY k, DESCRIPTOR(ts), INTERVAL 5 MINUTES) GROUP BY window_start, window_end, k",
        batch="SELECT session_window.start AS window_start, session_window.end AS window_end, k, sum(v) AS s FROM c GROUP BY session_window(ts, '5 minutes'), k",
    ),
    "inner": Case(f"SELECT c.id, c.k, w.v FROM c JOIN w ON {RANGE}"),
    "left": Case(f"SELECT c.id, c.k, w.v FROM c LEFT JOIN w ON {RANGE}"),
    "right": Case(f"SELECT w.id, w.k, c.v FROM c RIGHT JOIN w ON {RANGE}"),
    "full": Case(f"SELECT c.id, c.k, w.id AS other, w.k AS l FROM c FULL JOIN w ON {RANGE}"),
    "semi": Case(f"SELECT c.id, c.k FROM c LEFT SEMI JOIN w ON {RANGE}"),
    "dedup": Case("SELECT DISTINCT ON (id, ts) id, k, ts FROM c", batch="SELECT DISTINCT id, k, ts FROM c"),
    "within watermark": Case("SELECT DISTINCT ON (id) WITHIN WATERMARK id, k FROM c", batch="SELECT DISTINCT id, k FROM c"),
    "SELECT DISTINCT": Case("SELECT DISTINCT k, id FROM c", "update"),
    "QUALIFY": Case("SELECT id, k FROM c QUALIFY row_number() OVER (PARTITION BY id ORDER BY ts) = 1"),
    "row_number in a sub-query": Case("SELECT id, k, rn FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY ts) AS rn FROM c) WHERE rn = 1 AND v > 1"),
}  # fmt: skip
JOINS = {
    "table inner": Case("SELECT c.id, c.k, t.tag FROM c JOIN tags t ON c.k = t.k"),
    "table left": Case("SELECT c.id, c.k, t.tag FROM c LEFT JOIN tags t ON c.k = t.k"),
    "table right": Case("SELECT c.id, c.k, t.tag FROM tags t RIGHT JOIN c ON c.k = t.k"),
    "table semi": Case("SELECT c.id, c.k FROM c LEFT SEMI JOIN tags t ON c.k = t.k"),
    "table anti": Case("SELECT c.id, c.k FROM c LEFT ANTI JOIN tags t ON c.k = t.k AND t.tag = 'x'"),
    "equal windows, inner": Case(
        "SELECT c.id, c.k, w.v FROM (SELECT *, window(ts, '5 minutes') AS win FROM c) c JOIN (SELECT *, window(ts, '5 minutes') AS win FROM w) w ON c.k = w.k AND c.win = w.win"
    ),
    "equal windows, left": Case(
        "SELECT c.id, c.k, w.v FROM (SELECT *, window(ts, '5 minutes') AS win FROM c) c LEFT JOIN (SELECT *, window(ts, '5 minutes') AS win FROM w) w ON c.k = w.k AND c.win = w.win"
    ),
    "two joins": Case(
        f"SELECT c.id, c.k, w.v, x.v AS u FROM c JOIN w ON {RANGE} JOIN w x ON x.id = c.id AND x.ts BETWEEN c.ts AND c.ts + INTERVAL 10 MINUTES"
    ),
    "stream, stream and table": Case(f"SELECT c.id, c.k, w.v, t.tag FROM c JOIN w ON {RANGE} LEFT JOIN tags t ON t.k = c.k"),
    "comma": Case("SELECT c.id, c.k, w.v FROM c, w WHERE c.id = w.id AND w.ts >= c.ts"),
}  # fmt: skip


WITHOUT_STOP = WINDOWS | JOINS | (STATEFUL if FULL else {})


@pytest.mark.slow
@pytest.mark.parametrize("case", cases_of(WITHOUT_STOP, 5))
def test_a_stream_ends_as_a_table(all_steps: Console, as_tables: Any, case: Case) -> None:
    all_steps.run(live_table("q", case))
    check(all_steps, as_tables, "q", case)
    all_steps.run("DROP LIVE TABLE q")


@pytest.mark.slow
@pytest.mark.parametrize("name", cases_of({name: name for name in STATEFUL}, 5))
def test_a_restart_in_the_middle_changes_nothing(after_one_step: Console, as_tables: Any, name: str) -> None:
    query = f"q{list(STATEFUL).index(name)}"
    after_one_step.run(f"START QUERY {query}")
    check(after_one_step, as_tables, query, STATEFUL[name])


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("policy", "closed"), [("min", []), ("max", [("c", 1), ("w", 1)])])
def test_the_policy_for_several_watermarks(console: Console, policy: str, closed: list[Any]) -> None:
    """min waits for the slower stream, max goes by the faster one (Spark guide, "Policy for handling
    multiple watermarks").
    """
    console.run(
        f"""SET spark.sql.streaming.multipleWatermarkPolicy = {policy};
        CREATE STREAM c {COLUMNS} USING values WITH WATERMARK ts DELAY '10 minutes';
        CREATE STREAM w {COLUMNS} USING values WITH WATERMARK ts DELAY '10 minutes';
        CREATE LIVE TABLE q OUTPUT MODE APPEND AS SELECT k, count(*) AS n
        FROM (SELECT k, ts FROM c UNION ALL SELECT k, ts FROM w) GROUP BY window(ts, '5 minutes'), k;
        INSERT INTO w VALUES (1, 'w', 1, '2024-05-01 10:00:00'); AWAIT QUERY q IDLE;
        INSERT INTO c VALUES (1, 'c', 1, '2024-05-01 10:00:00'), (2, 'ahead', 1, '2024-05-01 12:00:00');
        AWAIT QUERY q IDLE;"""
    )
    assert sorted(console.rows("SELECT * FROM q")) == closed
    watermark = {"min": "2024-05-01 09:50:00", "max": "2024-05-01 11:50:00"}[policy]
    assert console.rows("SHOW PROGRESS q LAST 1")[-1][5] == watermark


@pytest.mark.slow
def test_window_tables_over_tables_of_spark(console: Console) -> None:
    """The same words over what does not stream."""
    for name in STREAMS:
        console.run(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {table(name)}")
    for case in (*WINDOWS.values(), STATEFUL["SESSION"]):
        if case.batch:
            expected = console.session.spark.sql(case.batch).collect()
            assert kept(console.rows(case.query)) == kept(expected), case.query


def test_a_note_says_how_other_consoles_words_are_read(console: Console) -> None:
    console.run(f"CREATE STREAM c {COLUMNS} USING values WITH WATERMARK ts DELAY '10 minutes'")
    started = console.run(f"CREATE LIVE TABLE t AS {STATEFUL['SESSION'].query}")[0]
    assert notes_of(started)[0] == (
        "SESSION is read as session_window(ts, '5 minutes'): window_start is session_window.start, "
        "window_end session_window.end, window_time a microsecond before that"
    )
    started = console.run(f"CREATE LIVE TABLE u AS {STATEFUL['QUALIFY'].query}")[0]
    assert notes_of(started)[:2] == (
        "QUALIFY row_number() … = 1 runs as SELECT DISTINCT ON (id): the first row to arrive is kept, "
        "which is not always the earliest",
        "DISTINCT ON (id) keeps every key in state: the state is unbounded. "
        "WITHIN WATERMARK would bound the state",
    )
    made = console.run(f"CREATE STREAM once AS {STATEFUL['QUALIFY'].query}")[0]
    assert len(notes_of(made)) == 2
    # They were said when the stream was made.
    assert notes_of(console.run("CREATE LIVE TABLE v AS SELECT * FROM once")[0]) == (
        "output mode append: each row is emitted once",
    )
