"""SELECTs over a live table of 1,000 and of 1,000,000 rows, of which 100 change before each SELECT, and one frame of
WATCH: milliseconds, and milliseconds of processor, medians; then the memory of Python and of the JVM, and of the rows alone.

`--before` hands Spark the whole table for each SELECT. `--short` takes 10,000 rows instead of 1,000,000.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import processor
import pyarrow as pa
from pyspark.sql.types import StructType

from streamsql.config.folders import cache_folder
from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.runtime.embedded.live_rows import LiveRows
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.live import part_of_rows
from streamsql.runtime.live.result_views import TableView
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

SETUP = """
CREATE STREAM v (k BIGINT, n BIGINT, name STRING) USING values;
CREATE LIVE TABLE small AS SELECT k, max(n) AS n, max(name) AS name FROM v GROUP BY k;
CREATE LIVE TABLE large AS SELECT k, max(n) AS n, max(name) AS name FROM v GROUP BY k;
AWAIT QUERY ALL IDLE; STOP QUERY ALL;
"""
SELECTS = {
    "count(*)": "SELECT count(*) FROM {table};",
    "one key": "SELECT * FROM {table} WHERE k = 77;",
    "100 keys": "SELECT k, n FROM {table} WHERE k BETWEEN 100 AND 199;",
    "a sum": "SELECT sum(n) FROM {table};",
    "LIMIT 20": "SELECT * FROM {table} LIMIT 20;",
}
ROUNDS = 8


def rows_of(first: int, count: int) -> pa.Table:
    keys = pa.array(range(first, first + count), pa.int64())
    text = [f'{{"k":{k}}}' for k in range(first, first + count)]
    return pa.table({"k": keys, "n": keys, "name": keys.cast(pa.string()), "__live_key": text})


def main() -> None:
    if "--before" in sys.argv:
        part_of_rows.FEW = sys.maxsize
    sizes = {"small": 1_000, "large": 10_000 if "--short" in sys.argv else 1_000_000}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        session = Session(Config(Settings.make("local[*]", {}), place / "w", place / "log", cache_folder()))
        run(session, SETUP)
        for name, count in sizes.items():
            live = session.parts.live[name]
            live.take(rows_of(0, count), live.last_batch + 1)
        measure(session, list(sizes))
        print("Python {} MB, JVM {} MB".format(*processor.megabytes()))
        memory(sizes["large"])
        session.close()


def measure(session: Session, tables: list[str]) -> None:
    for what, select in {"micro-batch": "", **SELECTS, "a frame": ""}.items():
        for table in tables:
            wall, used = [], []
            for number in range(ROUNDS):
                live = session.parts.live[table]
                view = TableView(live, "UTC")
                change = rows_of(number * 100, 100)
                if what != "micro-batch":
                    live.take(change, live.last_batch + 1)
                began, before = time.perf_counter(), processor.seconds()
                if what == "micro-batch":
                    live.take(change, live.last_batch + 1)
                elif select:
                    run(session, select.format(table=table))
                else:
                    view.take(40, None, None)
                wall.append(time.perf_counter() - began)
                used.append(processor.seconds() - before)
            took = 1000 * statistics.median(wall[2:]), 1000 * statistics.median(used[2:])
            print(
                f"{what:12} {live.table.num_rows:>9,} rows: {took[0]:6.0f} ms, {took[1]:6.0f} ms of processor",
                flush=True,
            )


def memory(count: int) -> None:
    """Print the memory that rows take in Python, and within 30 micro-batches of 100 keys each."""
    base = processor.megabytes()[0]
    live = LiveRows(StructType(), "update", ["k"], 100)
    live.take(pa.concat_tables(rows_of(n, 10_000) for n in range(0, count, 10_000)), 0)
    processor.begin_peak()
    for number in range(1, 31):
        places = random.Random(number).sample(range(count), 100)
        live.take(pa.concat_tables(rows_of(place, 1) for place in places), number)
    arrow = live.table.nbytes / 2**20
    after, most = processor.megabytes()[0] - base, processor.peak() - base
    print(
        f"{arrow:.0f} MB of Arrow: {after / arrow:.2f} times that in Python, at most {most / arrow:.2f} times"
    )


def run(session: Session, script: str) -> None:
    for written in split_script(Source("benchmark", script)):
        result = session.execute(parse(written))
        getattr(result, "whole", lambda: None)()


if __name__ == "__main__":
    main()
