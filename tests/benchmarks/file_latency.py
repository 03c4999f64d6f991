"""From a file that lands in a folder to its row: in a live table of the console, and in Python by foreachBatch of
PySpark tuned by hand (the console's settings) and of plain PySpark, each in a process of its own. Then, without a
file, from the end of the micro-batch before: how long the console takes for a stateless micro-batch.

    python tests/benchmarks/file_latency.py [console hand plain] [--files 60] [--kind map|count] [--conf KEY=VALUE]
        [--phases] [--short]

Prints milliseconds from the rename of a file to the row, and of processor for a file.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import processor
from many_queries import percentile, written

WAYS = ("console", "hand", "plain")
SELECTS = {
    "map": "SELECT n, n % 10 AS k FROM s WHERE n >= 0",
    "count": "SELECT n % 10 AS k, count(*) AS c, max(n) AS n FROM s GROUP BY n % 10",
}


class Arrivals:
    """When the row of each file was seen."""

    def __init__(self) -> None:
        self.newest, self.at = -1, 0.0
        self.changed = threading.Condition()

    def saw(self, rows: Any) -> None:
        at = time.perf_counter()
        newest = max((n for n in rows["n"].to_pylist()), default=-1)
        with self.changed:
            if newest > self.newest:
                self.newest, self.at = newest, at
                self.changed.notify_all()

    def wait(self, number: int) -> float:
        with self.changed:
            if not self.changed.wait_for(lambda: self.newest >= number, 120):
                raise TimeoutError(f"the row {number} did not arrive")
            return self.at


def console(asked: argparse.Namespace, folder: Path, arrivals: Arrivals) -> Any:
    from streamsql.config.folders import cache_folder
    from streamsql.errors import Source
    from streamsql.language.parser import parse, split_script
    from streamsql.runtime.engine.settings import Settings
    from streamsql.runtime.session import Session
    from streamsql.runtime.session_config import Config

    settings = Settings.make("local[*]", dict(pair.split("=", 1) for pair in asked.conf))
    session = Session(Config(settings, folder / "w", folder / "log", cache_folder()))
    script = f"CREATE STREAM s (n BIGINT) USING json OPTIONS (path '{folder}/in');"
    script += f"CREATE LIVE TABLE q AS {SELECTS[asked.kind]};"
    for statement in split_script(Source("benchmark", script)):
        session.execute(parse(statement))
    rows = session.parts.live["q"]
    rows.watch(lambda before, after, new: arrivals.saw(new))
    reports = lambda: session.parts.queries.all["q"].reports.newest()  # noqa: E731
    return session, reports


def pyspark(asked: argparse.Namespace, folder: Path, arrivals: Arrivals, *, tuned: bool) -> Any:
    if tuned:
        from streamsql.config.folders import cache_folder
        from streamsql.runtime.engine import jvm
        from streamsql.runtime.engine.java import find_java
        from streamsql.runtime.engine.settings import Settings

        conf = Settings.make("local[*]", dict(pair.split("=", 1) for pair in asked.conf)).start_conf()
        spark = jvm.start_session(conf, folder / "log", cache_folder(), find_java())
    else:
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.master("local[*]").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
    spark.readStream.schema("n BIGINT").json(str(folder / "in")).createOrReplaceTempView("s")
    writer = spark.sql(SELECTS[asked.kind]).writeStream.outputMode(
        "update" if asked.kind == "count" else "append"
    )
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.foreachBatch(lambda batch, number: arrivals.saw(batch.toArrow())).start()
    return spark, lambda: [json.loads(p.json()) for p in query._jsq.recentProgress()]


def measure(way: str, asked: argparse.Namespace) -> dict[str, float]:
    arrivals, rng = Arrivals(), random.Random(5)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "in").mkdir()
        if way == "console":
            world, reports = console(asked, folder, arrivals)
        else:
            world, reports = pyspark(asked, folder, arrivals, tuned=way == "hand")
        took, used = [], []
        for number in range(asked.first + asked.files):
            (folder / "part").write_text(f'{{"n": {number}}}\n')
            before, began = processor.seconds(), time.perf_counter()
            (folder / "part").rename(folder / "in" / f"{number:06}.json")
            took.append(1_000 * (arrivals.wait(number) - began))
            time.sleep(0.1 + 0.2 * rng.random())
            used.append(1_000 * (processor.seconds() - before))
        if asked.phases:
            phases: dict[str, list[float]] = {}
            for report in [r for r in reports() if r["numInputRows"]][-asked.files :]:
                for phase, ms in report["durationMs"].items():
                    phases.setdefault(phase, []).append(ms)
            print(way, {k: round(statistics.median(v), 1) for k, v in phases.items()}, file=sys.stderr)
        getattr(world, "close", getattr(world, "stop", None))()
    took, used = took[asked.first :], used[asked.first :]
    figures = {
        "p50 ms": percentile(took, 0.5),
        "p90 ms": percentile(took, 0.9),
        "p99 ms": percentile(took, 0.99),
    }
    return figures | {"least ms": min(took), "cpu ms": statistics.median(used)}


def arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser()
    reader.add_argument("ways", nargs="*", default=WAYS)
    reader.add_argument("--files", type=int, default=100)
    reader.add_argument("--first", type=int, default=30, help="files before, not counted")
    reader.add_argument("--kind", choices=SELECTS, default="map")
    reader.add_argument("--conf", action="append", default=[])
    reader.add_argument("--phases", action="store_true", help="where the time of a micro-batch goes")
    reader.add_argument("--short", action="store_true")
    reader.add_argument("--one", action="store_true", help="measure one way and print JSON")
    asked = reader.parse_args()
    if asked.short:
        asked.files, asked.first = 3, 1
    return asked


def main() -> None:
    asked = arguments()
    if asked.one:
        print(json.dumps(measure(asked.ways[0], asked)))
        return
    table: dict[str, dict[str, float]] = {}
    for way in asked.ways:
        rest = [a for a in sys.argv[1:] if a not in WAYS]
        done = subprocess.run(
            [sys.executable, __file__, way, "--one", *rest], stdout=subprocess.PIPE, text=True
        )
        if done.returncode:
            sys.exit(done.returncode)
        table[way] = json.loads(done.stdout.splitlines()[-1])
    print(f"a file, a row ({asked.kind})" + "".join(f"{way:>12}" for way in table))
    for name in next(iter(table.values())):
        print(f"{name:21}" + "".join(f"{written(figures[name]):>12}" for figures in table.values()))


if __name__ == "__main__":
    main()
