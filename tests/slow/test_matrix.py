"""Query kind x output mode x watermark x trigger x sink: the console says before Spark what Spark says.

Each statement is planned without Spark, and held against Spark's own checker; where only a run can
tell (the checker accepts what fails in the first micro-batch), the query is started.
`STREAMSQL_MATRIX=full python -m pytest tests/test_matrix.py` tries every choice of watermarks.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Console

from streamsql.calls import Assign, run
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.language.statements.base import Trigger
from streamsql.plan.context import Context
from streamsql.plan.lowering.lower import lower
from streamsql.plan.lowering.stateful_calls import CHOICES
from streamsql.plan.planner import plan
from streamsql.plan.plans import Run
from streamsql.runtime.queries.output_mode import spark_verdict

ROOMS = ("streamsql/plan/streaming/",)

MODES = ("append", "update", "complete")
FULL = os.environ.get("STREAMSQL_MATRIX") == "full"

# {a} and {b} stand for a stream each, with or without a watermark; t is a table.
RANGE = "a.ts BETWEEN b.ts - INTERVAL 1 MINUTE AND b.ts + INTERVAL 1 HOUR"
QUERIES = {
    "map": "SELECT k, v + 1 AS v FROM {a} WHERE v > 1",
    "explode": "SELECT explode(array(k, k)) AS x FROM {a}",
    "lateral view": "SELECT x FROM {a} LATERAL VIEW explode(array(k)) y AS x",
    "by key": "SELECT k, count(*) AS n FROM {a} GROUP BY k",
    "global": "SELECT count(*) AS n FROM {a}",
    "window": "SELECT window, count(*) AS n FROM {a} GROUP BY window(ts, '5 minutes')",
    "sliding window": "SELECT window.start AS s, k, sum(v) AS n FROM {a} GROUP BY window(ts, '10 minutes', '5 minutes'), k",
    "event time": "SELECT ts, count(*) AS n FROM {a} GROUP BY ts",
    "having": "SELECT window.end AS e, count(*) AS n FROM {a} GROUP BY window(ts, '5 minutes') HAVING count(*) > 1",
    "rollup": "SELECT window(ts, '5 minutes') AS w, k, count(*) AS n FROM {a} GROUP BY ROLLUP (window(ts, '5 minutes'), k)",
    "cube": "SELECT k, v, count(*) AS n FROM {a} GROUP BY CUBE (k, v)",
    "count distinct": "SELECT window.start AS s, count(DISTINCT k) AS n FROM {a} GROUP BY window(ts, '5 minutes')",
    "session": "SELECT session_window.start AS s, k, count(*) AS n FROM {a} GROUP BY session_window(ts, '5 minutes'), k",
    "session, gap of data": "SELECT session_window.end AS e, k, count(*) AS n FROM {a} GROUP BY session_window(ts, CASE WHEN k = 'a' THEN '1 minute' ELSE '5 minutes' END), k",
    "session alone": "SELECT session_window.start AS s, count(*) AS n FROM {a} GROUP BY session_window(ts, '5 minutes')",
    "TUMBLE": "SELECT window_start, k, count(*) AS n FROM TUMBLE(TABLE {a}, DESCRIPTOR(ts), INTERVAL 5 MINUTES) GROUP BY window_start, window_end, k",
    "HOP": "SELECT window_end, sum(v) AS n FROM HOP(TABLE {a}, DESCRIPTOR(ts), INTERVAL 5 MINUTES, INTERVAL 10 MINUTES) GROUP BY window_start, window_end",
    "TUMBLE, rows": "SELECT * FROM TUMBLE(TABLE {a}, DESCRIPTOR(ts), INTERVAL 5 MINUTES)",
    "SESSION": "SELECT window_start, k, count(*) AS n FROM SESSION(TABLE {a} PARTITION BY k, DESCRIPTOR(ts), INTERVAL 5 MINUTES) GROUP BY window_start, window_end, k",
    "window of window": "SELECT window(window_time(w), '1 hour').start AS s, sum(n) AS n FROM (SELECT window(ts, '5 minutes') AS w, k, count(*) AS n FROM {a} GROUP BY window(ts, '5 minutes'), k) GROUP BY window(window_time(w), '1 hour')",
    "window struct of window": "SELECT window.start AS s, sum(n) AS n FROM (SELECT window AS w, k, count(*) AS n FROM {a} GROUP BY window(ts, '5 minutes'), k) GROUP BY window(w, '1 hour')",
    "window, then key": "SELECT k, max(n) AS n FROM (SELECT window, k, count(*) AS n FROM {a} GROUP BY window(ts, '5 minutes'), k) GROUP BY k",
    "key, then global": "SELECT max(n) AS n FROM (SELECT k, count(*) AS n FROM {a} GROUP BY k)",
    "distinct on key": "SELECT DISTINCT ON (k) * FROM {a}",
    "distinct on key and time": "SELECT DISTINCT ON (k, ts) * FROM {a}",
    "within watermark": "SELECT DISTINCT ON (k) WITHIN WATERMARK * FROM {a}",
    "distinct within watermark": "SELECT DISTINCT WITHIN WATERMARK * FROM {a}",
    "qualify": "SELECT * FROM {a} QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts) = 1",
    "qualify, last": "SELECT * FROM {a} QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts DESC) = 1",
    "distinct key": "SELECT DISTINCT k FROM {a}",
    "distinct key and time": "SELECT DISTINCT k, ts FROM {a}",
    "distinct star": "SELECT DISTINCT * FROM {a}",
    "dedup, then window": "SELECT window.start AS s, count(*) AS n FROM (SELECT DISTINCT ON (k, ts) * FROM {a}) GROUP BY window(ts, '5 minutes')",
    "window, then dedup": "SELECT DISTINCT ON (k) * FROM (SELECT window, k, count(*) AS n FROM {a} GROUP BY window(ts, '5 minutes'), k)",
    "window, then dedup of windows": "SELECT DISTINCT ON (k, window) * FROM (SELECT window, k, count(*) AS n FROM {a} GROUP BY window(ts, '5 minutes'), k)",
    "window, then distinct": "SELECT DISTINCT window FROM (SELECT window, k, count(*) AS n FROM {a} GROUP BY window(ts, '5 minutes'), k)",
    "stream inner table": "SELECT a.v, t.x FROM {a} a JOIN t ON a.k = t.k",
    "stream left table": "SELECT a.v, t.x FROM {a} a LEFT JOIN t ON a.k = t.k",
    "stream right table": "SELECT a.v, t.x FROM {a} a RIGHT JOIN t ON a.k = t.k",
    "stream full table": "SELECT a.v, t.x FROM {a} a FULL JOIN t ON a.k = t.k",
    "stream semi table": "SELECT a.v FROM {a} a LEFT SEMI JOIN t ON a.k = t.k",
    "stream anti table": "SELECT a.v FROM {a} a LEFT ANTI JOIN t ON a.k = t.k",
    "stream cross table": "SELECT a.v, t.x FROM {a} a CROSS JOIN t",
    "table inner stream": "SELECT a.v, t.x FROM t JOIN {a} a ON a.k = t.k",
    "table left stream": "SELECT a.v, t.x FROM t LEFT JOIN {a} a ON a.k = t.k",
    "table right stream": "SELECT a.v, t.x FROM t RIGHT JOIN {a} a ON a.k = t.k",
    "table full stream": "SELECT a.v, t.x FROM t FULL JOIN {a} a ON a.k = t.k",
    "table semi stream": "SELECT t.x FROM t LEFT SEMI JOIN {a} a ON a.k = t.k",
    "table anti stream": "SELECT t.x FROM t LEFT ANTI JOIN {a} a ON a.k = t.k",
    "table, then window": "SELECT t.x, window.start AS s, count(*) AS n FROM {a} a JOIN t ON a.k = t.k GROUP BY window(ts, '5 minutes'), t.x",
    "window, then table": "SELECT c.n, t.x FROM (SELECT window, k, count(*) AS n FROM {a} GROUP BY window(ts, '5 minutes'), k) c JOIN t ON c.k = t.k",
    "key, then left table": "SELECT c.n, t.x FROM (SELECT k, count(*) AS n FROM {a} GROUP BY k) c LEFT JOIN t ON c.k = t.k",
    **{
        f"{how}, {what}": f"SELECT {'a.v' if how in ('LEFT SEMI', 'LEFT ANTI') else 'a.v, b.v AS w'} FROM {{a}} a {how} JOIN {{b}} b ON {on}"
        for how in ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
        for what, on in {
            "equal keys": "a.k = b.k",
            "range": f"a.k = b.k AND {RANGE}",
            "lower bound only": "a.k = b.k AND a.ts >= b.ts - INTERVAL 1 HOUR",
            "upper bound only": "a.k = b.k AND a.ts < b.ts + INTERVAL 1 HOUR",
            "bound by another column": "a.k = b.k AND a.v > b.v",
            "time among keys": "a.k = b.k AND a.ts = b.ts",
        }.items()
    },
    "USING key": "SELECT * FROM {a} a LEFT JOIN {b} b USING (k)",
    "USING key and time": "SELECT * FROM {a} a LEFT JOIN {b} b USING (k, ts)",
    "range without equality": f"SELECT a.v FROM {{a}} a JOIN {{b}} b ON {RANGE}",
    "cross": "SELECT a.v FROM {a} a CROSS JOIN {b} b",
    "comma and where": "SELECT a.v FROM {a} a, {b} b WHERE a.k = b.k",
    "self join": "SELECT x.v FROM {a} x JOIN {a} y ON x.k = y.k AND x.ts >= y.ts AND x.ts <= y.ts + INTERVAL 1 HOUR",
    "three streams": "SELECT a.v FROM {a} a JOIN {b} b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR JOIN {a} c ON a.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR",
    "inner, then window": f"SELECT window.start AS s, count(*) AS n FROM {{a}} a JOIN {{b}} b ON a.k = b.k AND {RANGE} GROUP BY window(a.ts, '5 minutes')",
    "left, then window": f"SELECT window.start AS s, count(*) AS n FROM {{a}} a LEFT JOIN {{b}} b ON a.k = b.k AND {RANGE} GROUP BY window(a.ts, '5 minutes')",
    **{
        f"windows {how} windows": f"SELECT c.n, d.n AS m FROM (SELECT window, count(*) AS n FROM {{a}} GROUP BY window(ts, '5 minutes')) c {how} JOIN (SELECT window, count(*) AS n FROM {{b}} GROUP BY window(ts, '5 minutes')) d ON c.window = d.window"
        for how in ("INNER", "LEFT")
    },
    "windows of rows, left": "SELECT c.k, d.v FROM (SELECT k, v, window(ts, '5 minutes') AS w FROM {a}) c LEFT JOIN (SELECT k, v, window(ts, '5 minutes') AS w FROM {b}) d ON c.k = d.k AND c.w = d.w",
    "window, then stream": "SELECT c.n, b.v FROM (SELECT window, k, count(*) AS n FROM {a} GROUP BY window(ts, '5 minutes'), k) c JOIN {b} b ON c.k = b.k",
    "limit": "SELECT k FROM {a} LIMIT 3",
    "key, then limit": "SELECT k, count(*) AS n FROM {a} GROUP BY k LIMIT 3",
    "offset": "SELECT k FROM {a} LIMIT 3 OFFSET 1",
    "order": "SELECT k FROM {a} ORDER BY k",
    "key, then order": "SELECT k, count(*) AS n FROM {a} GROUP BY k ORDER BY n",
    "key, then order and limit": "SELECT k, count(*) AS n FROM {a} GROUP BY k ORDER BY n DESC LIMIT 2",
    "window, then order": "SELECT window, count(*) AS n FROM {a} GROUP BY window(ts, '5 minutes') ORDER BY n",
    "order, then key": "SELECT k, count(*) AS n FROM (SELECT * FROM {a} ORDER BY v) GROUP BY k",
    "sort": "SELECT k FROM {a} SORT BY k",
    "union all": "SELECT k FROM {a} UNION ALL SELECT k FROM {b}",
    "union all, then window": "SELECT window.start AS s, count(*) AS n FROM (SELECT ts FROM {a} UNION ALL SELECT ts FROM {b}) GROUP BY window(ts, '5 minutes')",
    "union all of windows": "SELECT window, count(*) AS n FROM {a} GROUP BY window(ts, '5 minutes') UNION ALL SELECT window, sum(v) AS n FROM {b} GROUP BY window(ts, '5 minutes')",
    "union": "SELECT k FROM {a} UNION SELECT k FROM {b}",
    "union all with a table": "SELECT k FROM {a} UNION ALL SELECT k FROM t",
    "intersect": "SELECT k FROM {a} INTERSECT SELECT k FROM {b}",
    "except": "SELECT k FROM {a} EXCEPT SELECT k FROM {b}",
    "except a table": "SELECT k FROM {a} EXCEPT SELECT k FROM t",
    "in a table": "SELECT k FROM {a} WHERE k IN (SELECT k FROM t)",
    "scalar of a table": "SELECT k, (SELECT max(x) FROM t) AS m FROM {a}",
    "row_number": "SELECT k, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM {a}",
    "pivot": "SELECT * FROM (SELECT k, v FROM {a}) PIVOT (sum(v) FOR k IN ('a', 'b'))",
    "sample": "SELECT k FROM {a} TABLESAMPLE (10 PERCENT)",
    "now": "SELECT k, current_timestamp() AS at FROM {a}",
    # What the lowering does not know: only Spark can tell.
    "distribute": "SELECT k FROM {a} DISTRIBUTE BY k",
    "hint": "SELECT /*+ REPARTITION(2) */ k FROM {a}",
    "in a stream": "SELECT k FROM {a} WHERE k IN (SELECT k FROM {b})",
    "grouping sets": "SELECT k, v, count(*) AS n FROM {a} GROUP BY GROUPING SETS ((k), (v))",
    "pipe": "FROM {a} |> WHERE v > 1 |> AGGREGATE count(*) AS n GROUP BY k",
}  # fmt: skip
LEFT_TO_SPARK = {"distribute", "hint", "in a stream", "grouping sets", "pipe"}


@dataclass(frozen=True)
class Cell:
    """One query over streams of which `marks` have a watermark."""

    name: str
    marks: str

    @property
    def text(self) -> str:
        """The query over streams of values."""
        return self.over("a", "b")

    def over(self, a: str, b: str) -> str:
        """The query over the streams of these names, with w behind those that have a watermark."""
        names = {"a": a + ("w" if "a" in self.marks else "1"), "b": b + ("w" if "b" in self.marks else "1")}
        return QUERIES[self.name].format(**names)


def cells() -> Iterator[Cell]:
    """Each query with one choice of watermarks; with STREAMSQL_MATRIX=full in the environment, with each."""
    for number, (name, text) in enumerate(QUERIES.items()):
        choices = ("", "a", "b", "ab") if "{b}" in text else ("", "a")
        for marks in choices if FULL else choices[number % len(choices) :][:1]:
            yield Cell(name, marks)


@pytest.fixture
def made(console: Console, tmp_path: Any) -> Console:
    columns = "(k STRING, v INT, ts TIMESTAMP) USING values"
    for name in "ab":
        console.run(f"CREATE STREAM {name}1 {columns}")
        console.run(f"CREATE STREAM {name}w {columns} WITH WATERMARK ts DELAY '10 minutes'")
        for stream in (f"{name}1", f"{name}w"):
            console.run(f"INSERT INTO {stream} VALUES ('a', 1, '2024-01-01 10:00:00')")
    console.run("CREATE TEMPORARY VIEW t AS SELECT 'a' AS k, 1 AS x")
    console.run(
        f"CREATE SINK files USING json OPTIONS (path '{tmp_path}/out'); CREATE SINK nothing USING noop;"
        "CREATE SINK screen USING console; CREATE SINK mem USING memory;"
        "CREATE STREAM ticks USING rate; CREATE STREAM steady USING `rate-micro-batch` OPTIONS (rowsPerBatch 1);"
    )
    for name, mark in (("ra1", ""), ("raw", "WITH WATERMARK ts DELAY '10 minutes'")):
        console.run(
            f"CREATE STREAM {name} {mark} AS SELECT CAST(value AS STRING) AS k, CAST(value AS INT) AS v, timestamp AS ts FROM ticks"
        )
    return console


def refusal(console: Console, text: str) -> StreamsqlError | None:
    """What planning alone says against a statement; no Spark."""
    (written,) = split_script(Source("test.sql", text))
    try:
        plan(parse(written), Context(console.session.catalog, console.session.parts.places))
    except StreamsqlError as error:
        return error
    return None


def frame_of(console: Console, text: str) -> Any:
    """The DataFrame of a query, whatever its rules; None when only a refusal can come of it."""
    from pyspark.sql import functions

    sources = Context(console.session.catalog, console.session.parts.places).sources()
    try:
        lowered = lower(text, sources)
    except StreamsqlError:
        return None
    env = {"spark": console.session.spark, "F": functions}
    return run((*sources.program, Assign("result", lowered.node)), env)


def outcome(console: Console, frame: Any, mode: str) -> str:
    """How a run ends that the checker had nothing against; empty when it ends well."""
    writer = frame.writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
    query = writer.option("checkpointLocation", console.session.parts.places.checkpoint("trial")).start()
    try:
        query.awaitTermination(60)
        return ""
    except Exception as error:
        return str(error) or "failed"
    finally:
        query.stop()
        shutil.rmtree(console.session.parts.places.checkpoint("trial"), ignore_errors=True)


def test_the_console_says_what_spark_says(made: Console) -> None:
    wrong, started = [], 0
    for cell in cells():
        try:
            frame = frame_of(made, cell.text)
        except Exception as error:
            if cell.name not in LEFT_TO_SPARK:
                wrong.append(f"{cell}: {error}"[:300])
            continue
        for mode in MODES:
            ours = refusal(made, f"INSERT INTO nothing AS QUERY q OUTPUT MODE {mode.upper()} {cell.text}")
            if frame is None:
                assert ours, cell
                continue
            theirs = spark_verdict(made.session.spark, frame, mode)
            if ours and not theirs:
                started += 1
                if not outcome(made, frame, mode):
                    wrong.append(f"{cell} {mode}: Spark runs it; the console: {ours.message}")
            if theirs and not ours and cell.name not in LEFT_TO_SPARK:
                wrong.append(f"{cell} {mode}: the console accepts it; Spark: {theirs.message[:150]}")
    print(f"{sum(3 for _ in cells())} cells, {started} of them started")
    assert not wrong, "\n".join(wrong)


def test_continuous_takes_what_spark_takes(made: Console) -> None:
    """Operations under TRIGGER CONTINUOUS, over a source and into a sink that take it."""
    wrong, taken = [], set()
    for cell in cells() if FULL else (Cell(name, "") for name in QUERIES):
        if "b" in cell.marks:
            continue
        text = cell.over("ra", "ra")
        head = "INSERT INTO nothing AS QUERY q OUTPUT MODE UPDATE TRIGGER CONTINUOUS EVERY INTERVAL 1 SECOND"
        ours = refusal(made, f"{head} {text}")
        try:
            frame = frame_of(made, text)
            theirs = frame is None or spark_verdict(made.session.spark, frame, "update", "continuous")
        except Exception as error:
            theirs = error
        if bool(ours) != bool(theirs) and cell.name not in LEFT_TO_SPARK:
            wrong.append(f"{cell}: the console: {ours}; Spark: {theirs}"[:300])
        taken |= set() if theirs else {cell.name}
    assert not wrong, "\n".join(wrong)
    assert taken == {"map", "TUMBLE, rows", "in a table", "scalar of a table"}


SOURCES = ("ticks", "steady", "a1")
SINKS = ("nothing", "screen", "mem", "files")
TRIGGERS = {
    "ONCE": Trigger("once"),
    "AVAILABLE NOW": Trigger("available_now"),
    "EVERY INTERVAL 1 SECOND": Trigger("every", "1 second"),
    "CONTINUOUS EVERY INTERVAL 1 SECOND": Trigger("continuous", "1 second"),
    "REAL TIME EVERY INTERVAL 5 SECONDS": Trigger("real_time", "5 seconds"),
}


def test_sources_and_sinks_take_what_spark_lets_them(made: Console) -> None:
    """Each source with each sink and trigger: planned, and started whatever the plan says."""
    wrong = []
    for source, sink, words in itertools.product(SOURCES, SINKS, TRIGGERS):
        kind = TRIGGERS[words].kind
        if sink != "nothing" and kind not in ("continuous", "real_time"):
            continue  # micro-batches go into every sink; the other tests start them

        mode = "UPDATE" if kind == "real_time" and sink != "files" else "APPEND"
        query = f"SELECT * FROM {source}"
        ours = refusal(made, f"INSERT INTO {sink} AS QUERY q OUTPUT MODE {mode} TRIGGER {words} {query}")
        theirs = started(made, f"INSERT INTO {sink} AS QUERY q OUTPUT MODE {mode} {query}", TRIGGERS[words])
        if bool(ours) != bool(theirs):
            wrong.append(f"{source} into {sink}, {words}: the console: {ours}; Spark: {theirs}"[:300])
    assert not wrong, "\n".join(wrong)


def test_sinks_take_the_modes_that_spark_lets_them(made: Console) -> None:
    """A query that can have every mode, into each sink."""
    wrong = []
    query = Cell("window", "a").text
    for sink, mode in itertools.product(SINKS, MODES):
        ours = refusal(made, f"INSERT INTO {sink} AS QUERY q OUTPUT MODE {mode.upper()} {query}")
        theirs = started(made, f"INSERT INTO {sink} AS QUERY q {query}", Trigger("available_now"), mode)
        if bool(ours) != bool(theirs):
            wrong.append(f"{sink}, {mode}: the console: {ours}; Spark: {theirs}"[:300])
    assert not wrong, "\n".join(wrong)


def started(console: Console, text: str, trigger: Trigger, mode: str = "") -> str:
    """How the start of a statement with that trigger (and mode) fails, whatever planning says; empty
    when it does not.
    """
    (written,) = split_script(Source("test.sql", text))
    made = plan(parse(written), Context(console.session.catalog, console.session.parts.places))
    assert isinstance(made, Run)
    # A name of its own: what a stopped query still writes must not be in the way of the next.
    name = f"{made.query.name}_{next(_NUMBERS)}"
    query = replace(made.query, name=name, trigger=trigger)
    made = replace(made, query=query, checkpoint=console.session.parts.places.checkpoint(name))
    from streamsql.runtime.embedded.live_rows import LiveRows

    # What real-time mode wants of the session is chosen, so that it is refused for nothing else.
    program = (*(CHOICES.values() if trigger.kind == "real_time" else ()), *made.program)
    env = {**console.session.parts.env(program), "LiveRows": LiveRows}
    try:
        chosen = mode or made.choices[0].mode
        with console.session.parts.own_state_provider(program):
            run((*program, *made.keeping(chosen), *made.writer(chosen)), env)
        # One micro-batch or epoch is done, or the end.
        done = Path(made.checkpoint) / "commits" / "0"
        deadline = time.monotonic() + 30
        while env["query"].isActive and not done.exists() and time.monotonic() < deadline:
            env["query"].awaitTermination(0.1)
        error = env["query"].exception()
        return str(error) if error else ""
    except Exception as error:
        return str(error) or "failed"
    finally:
        if "query" in env:
            env["query"].stop()
        shutil.rmtree(made.checkpoint, ignore_errors=True)


_NUMBERS = itertools.count()
