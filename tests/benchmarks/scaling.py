"""How the cost of the console grows with queries, streams, columns, statements and micro-batches: milliseconds of
processor at 1, 10, 100 and 1,000 (micro-batches up to 100,000) of them, without Spark.

The last column is the growth of the last step: 10 is linear. `scaling.py WORD …` takes the lines with these words,
`--short` takes the first two steps only.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from streamsql.__main__ import collect_seldom
from streamsql.errors import Source
from streamsql.language.parser import parse, parse_script, split_script
from streamsql.plan import planner
from streamsql.results import Rows
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.live.journal import Journal
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace.reopen import reopen
from streamsql.runtime.workspace.store import Store

Measure = Callable[[int, Path], Callable[[], object]]
"""Prepares a number of things in an empty folder; returns what is measured."""


def session(place: Path, script: str = "", *, store: bool = False) -> Session:
    if store:
        (place / "ws").mkdir()
        (place / "ws" / "catalog.sql").write_text(script)
        folder = Store(place / "ws")
        return Session(
            Config(Settings.make("local[*]", {}), place / "ws" / "run", place / "log", place, store=folder)
        )
    made = Session(Config(Settings.make("local[*]", {}), place / "w", place / "log", place))
    for written in split_script(Source("benchmark", script)):
        made.execute(parse(written))
    return made


def execute(made: Session, text: str) -> object:
    (statement,) = parse_script(Source("benchmark", text))
    return made.execute(statement)


def streams(count: int, columns: int = 5) -> str:
    listed = ", ".join(f"c{n} BIGINT" for n in range(columns))
    return "".join(f"CREATE STREAM s{n} ({listed}) USING values;\n" for n in range(count))


def tables(count: int) -> str:
    return streams(count) + "".join(
        f"CREATE LIVE TABLE t{n} AS SELECT c0, count(*) AS n FROM s{n} GROUP BY c0;\n" for n in range(count)
    )


def planning_with_streams(count: int, place: Path) -> Callable[[], object]:
    """A SELECT, planned beside many streams."""
    made = session(place, streams(count))
    (select,) = parse_script(Source("benchmark", "SELECT c0, count(*) AS n FROM s0 WHERE c1 > 1 GROUP BY c0"))
    return lambda: planner.plan(select, made.parts.context())


def planning_with_columns(count: int, place: Path) -> Callable[[], object]:
    """A SELECT of many columns, read and planned."""
    made = session(place, streams(1, count))
    text = f"SELECT {', '.join(f'c{n} + 1 AS d{n}' for n in range(count))} FROM s0"
    return lambda: planner.plan(next(parse_script(Source("benchmark", text))), made.parts.context())


def planning_of_unions(count: int, place: Path) -> Callable[[], object]:
    """A UNION ALL of many SELECTs, read and planned."""
    made = session(place, streams(1))
    text = " UNION ALL ".join("SELECT c0 FROM s0" for _ in range(count))
    return lambda: planner.plan(next(parse_script(Source("benchmark", text))), made.parts.context())


def planning_of_withs(count: int, place: Path) -> Callable[[], object]:
    """A query of many WITH queries, each of which reads the one before it, read and planned."""
    made = session(place, streams(1))
    chain = "".join(f", w{n} AS (SELECT c0 FROM w{n - 1})" for n in range(1, count))
    text = f"WITH w0 AS (SELECT c0 FROM s0){chain} SELECT * FROM w{count - 1}"
    return lambda: planner.plan(next(parse_script(Source("benchmark", text))), made.parts.context())


def planning_of_joins(count: int, place: Path) -> Callable[[], object]:
    """A SELECT that joins many tables, read and planned."""
    made = session(place, streams(1))
    text = "SELECT s0.c0 FROM s0 " + " ".join(f"JOIN d{n} ON s0.c0 = d{n}.k" for n in range(count))
    return lambda: planner.plan(next(parse_script(Source("benchmark", text))), made.parts.context())


def a_script(count: int, place: Path) -> Callable[[], object]:
    """A script of many CREATE STREAM, executed."""
    return lambda: session(place, streams(count))


def a_workspace(count: int, place: Path) -> Callable[[], object]:
    """A workspace of many streams and live tables, opened."""
    made = session(place, tables(count), store=True)
    return lambda: reopen(made.parts)


def saving(count: int, place: Path) -> Callable[[], object]:
    """One definition more in such a workspace, saved."""
    made = session(place, tables(count), store=True)
    reopen(made.parts)
    return lambda: execute(made, "CREATE OR REPLACE STREAM more (a INT) USING values")


def show_queries(count: int, place: Path) -> Callable[[], object]:
    """SHOW QUERIES of many queries that do not run."""
    made = session(place, tables(count), store=True)
    reopen(made.parts)
    return lambda: execute(made, "SHOW QUERIES")


def show_live_tables(count: int, place: Path) -> Callable[[], object]:
    made = session(place, tables(count), store=True)
    reopen(made.parts)
    return lambda: execute(made, "SHOW LIVE TABLES")


def checkpoint(count: int, place: Path) -> str:
    """A checkpoint with so many micro-batches, as Spark writes it, and a file source's log of as many files."""
    root = place / "checkpoint"
    for name in ("offsets", "commits", "sources/0"):
        (root / name).mkdir(parents=True)
    (root / "metadata").write_text('{"id":"x"}')
    for number in range(count):
        known = json.dumps({"batchWatermarkMs": number, "batchTimestampMs": number, "conf": {}})
        (root / "offsets" / str(number)).write_text(f'v1\n{known}\n{{"logOffset":{number}}}')
        (root / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":1}')
    return str(root)


def describe_checkpoint(count: int, place: Path) -> Callable[[], object]:
    made, folder = session(place), checkpoint(count, place)
    return lambda: execute(made, f"DESCRIBE CHECKPOINT '{folder}'")


def show_batches(count: int, place: Path) -> Callable[[], object]:
    """SHOW BATCHES … LAST 20."""
    made, folder = session(place), checkpoint(count, place)
    return lambda: execute(made, f"SHOW BATCHES OF CHECKPOINT '{folder}' LAST 20")


def journal(count: int, place: Path) -> Callable[[], object]:
    """The rows of a live table after so many micro-batches of one row, loaded."""
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from streamsql.runtime.embedded.live_rows import LiveRows

    rows = LiveRows(StructType().add("k", "long"), "update", ["k"], 10**6)
    kept = Journal(place / "live" / "t")
    (place / "live").mkdir()
    kept.begin(rows)
    for batch in range(count):
        rows.take(pa.table({"k": [batch % 100], "__live_key": [str(batch % 100)]}), batch)
    return kept.load


MEASURES: dict[str, tuple[Measure, tuple[int, ...]]] = {
    "plan: streams": (planning_with_streams, (1, 10, 100, 1_000)),
    "plan: columns": (planning_with_columns, (1, 10, 100, 1_000)),
    "plan: UNION ALL": (planning_of_unions, (1, 10, 100, 1_000)),
    "plan: WITH": (planning_of_withs, (1, 10, 100, 1_000)),
    "plan: joins": (planning_of_joins, (1, 10, 100, 1_000)),
    "script: streams": (a_script, (1, 10, 100, 1_000)),
    "open workspace: queries": (a_workspace, (1, 10, 100, 1_000)),
    "save workspace: queries": (saving, (1, 10, 100, 1_000)),
    "SHOW QUERIES": (show_queries, (1, 10, 100, 1_000)),
    "SHOW LIVE TABLES": (show_live_tables, (1, 10, 100, 1_000)),
    "journal: micro-batches": (journal, (1, 10, 100, 1_000)),
    "DESCRIBE CHECKPOINT": (describe_checkpoint, (10, 100, 1_000, 10_000, 100_000)),
    "SHOW BATCHES LAST 20": (show_batches, (10, 100, 1_000, 10_000, 100_000)),
}


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        yield Path(place)


def cost(measure: Measure, count: int) -> float:
    """Milliseconds of processor, the median of three."""
    taken = []
    for _ in range(3 if count <= 1_000 else 1):
        with folder() as place:
            call = measure(count, place)
            began = time.process_time()
            result = call()
            taken.append(1_000 * (time.process_time() - began))
            assert not isinstance(result, Rows) or result.rows
    return statistics.median(taken)


def main() -> None:
    collect_seldom()  # as the console does: else the collections of garbage grow faster than the number of things
    words = [word.casefold() for word in sys.argv[1:] if not word.startswith("--")]
    for name, (measure, counts) in MEASURES.items():
        if words and not any(word in name.casefold() for word in words):
            continue
        counts = counts[:2] if "--short" in sys.argv else counts
        costs = [cost(measure, count) for count in counts]
        listed = ", ".join(f"{count:,}: {ms:.1f}" for count, ms in zip(counts, costs, strict=True))
        print(f"{name:24} {listed} ms; growth {costs[-1] / max(costs[-2], 0.1):.1f}", flush=True)


if __name__ == "__main__":
    main()
