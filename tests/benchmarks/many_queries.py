"""Many small queries at once, each of which reads a rate stream of one row a second: the console, PySpark tuned by
hand (the console's settings) and plain PySpark, each in a process of its own.

    python tests/benchmarks/many_queries.py [console hand plain] [--queries 50] [--every 5] [--seconds 60]
        [--kind count|map|each|set] [--conf KEY=VALUE] [--phases] [--short]

Prints seconds to start and to stop all, the time between micro-batches (wanted: p99 <= 1.1 x the interval), what
a micro-batch takes (clock, and processor of JVM and Python), SHOW QUERIES and the toolbar meanwhile, memory. Plain
PySpark has 200 shuffle partitions, and runs three queries only.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import processor

WAYS = ("console", "hand", "plain")
SELECTS = {
    "count": "SELECT value % 10 AS k, count(*) AS n FROM {stream} GROUP BY value % 10",
    "map": "SELECT value, value % 10 AS k FROM {stream} WHERE value % 3 = 0",
}

SHARED = ("each", "set")
"""INSERTs that read one stream: each a query of its own, or a statement set. For the console only."""


class Console:
    """Live tables, each of a stream of its own."""

    def __init__(self, asked: argparse.Namespace, folder: Path) -> None:
        from streamsql.config.folders import cache_folder
        from streamsql.runtime.engine.settings import Settings
        from streamsql.runtime.session import Session
        from streamsql.runtime.session_config import Config

        settings = Settings.make("local[*]", dict(pair.split("=", 1) for pair in asked.conf))
        self.session = Session(Config(settings, folder / "w", folder / "log", cache_folder()))
        self.spark = self.session.spark
        trigger = f"TRIGGER EVERY '{asked.every} seconds'"
        self.starts = (shared if asked.kind in SHARED else live_tables)(self, asked, trigger, folder)

    def run(self, script: str) -> None:
        from streamsql.errors import Source
        from streamsql.language.parser import parse, split_script

        for written in split_script(Source("benchmark", script)):
            getattr(self.session.execute(parse(written)), "whole", lambda: None)()

    def start(self) -> None:
        self.run(self.starts)

    def again(self) -> None:
        self.run("START QUERY ALL;")

    def reports(self) -> list[list[dict[str, Any]]]:
        return [running.reports.newest() for running in self.session.parts.queries.all.values()]

    def show(self) -> dict[str, Callable[[], object]]:
        return {
            "SHOW QUERIES": lambda: self.run("SHOW QUERIES;"),
            "toolbar": self.session.summary,
        }

    def stop(self) -> None:
        self.run("STOP QUERY ALL;")

    def close(self) -> None:
        self.session.close()


def live_tables(world: Console, asked: argparse.Namespace, trigger: str, folder: Path) -> str:
    """The statements that start the queries."""
    numbers = range(asked.queries)
    world.run("".join(f"CREATE STREAM s{n} USING rate OPTIONS (rowsPerSecond 1);" for n in numbers))
    select = SELECTS[asked.kind]
    return "\n".join(f"CREATE LIVE TABLE q{n} {trigger} AS {select.format(stream=f's{n}')};" for n in numbers)


def shared(world: Console, asked: argparse.Namespace, trigger: str, folder: Path) -> str:
    """The same for INSERTs that read one stream, each a query, or all of them a statement set."""
    numbers = range(asked.queries)
    world.run("CREATE STREAM s USING rate OPTIONS (rowsPerSecond 1);")
    world.run("".join(f"CREATE SINK o{n} USING json OPTIONS (path '{folder}/o{n}');" for n in numbers))
    select = f"SELECT value, value % 10 AS k FROM s WHERE value % {asked.queries} ="
    if asked.kind == "set":
        inserts = "\n".join(f"INSERT INTO o{n} {select} {n};" for n in numbers)
        return f"EXECUTE STATEMENT SET AS QUERY q {trigger} BEGIN {inserts} END;"
    return "\n".join(f"INSERT INTO o{n} AS QUERY q{n} {trigger} {select} {n};" for n in numbers)


class PySpark:
    """The same queries into Spark's memory sink. tuned: with the console's settings."""

    def __init__(self, asked: argparse.Namespace, folder: Path, *, tuned: bool) -> None:
        if tuned:
            from streamsql.config.folders import cache_folder
            from streamsql.runtime.engine import jvm
            from streamsql.runtime.engine.java import find_java
            from streamsql.runtime.engine.settings import Settings

            conf = Settings.make("local[*]", dict(pair.split("=", 1) for pair in asked.conf)).start_conf()
            self.spark = jvm.start_session(conf, folder / "log", cache_folder(), find_java())
        else:
            from pyspark.sql import SparkSession

            self.spark = SparkSession.builder.master("local[*]").getOrCreate()
            self.spark.sparkContext.setLogLevel("ERROR")
        self.asked, self.folder = asked, folder
        self.queries: list[Any] = []

    def start(self) -> None:
        mode = "complete" if self.asked.kind == "count" else "append"
        for n in range(self.asked.queries):
            stream = self.spark.readStream.format("rate").option("rowsPerSecond", 1)
            stream.load().createOrReplaceTempView(f"s{n}")
            frame = self.spark.sql(SELECTS[self.asked.kind].format(stream=f"s{n}"))
            writer = frame.writeStream.format("memory").queryName(f"q{n}").outputMode(mode)
            writer = writer.option("checkpointLocation", str(self.folder / f"checkpoint_{n}"))
            self.queries.append(writer.trigger(processingTime=f"{self.asked.every} seconds").start())

    def reports(self) -> list[list[dict[str, Any]]]:
        return [[json.loads(p.json()) for p in query._jsq.recentProgress()] for query in self.queries]

    def show(self) -> dict[str, Callable[[], object]]:
        return {}

    def stop(self) -> None:
        for query in self.queries:
            query.stop()

    def close(self) -> None:
        self.spark.stop()


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def second(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def timed(act: Callable[[], object]) -> tuple[float, float]:
    """(seconds, processor seconds)"""
    began, before = time.perf_counter(), processor.seconds()
    act()
    return time.perf_counter() - began, processor.seconds() - before


def measure(way: str, asked: argparse.Namespace) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        world = Console(asked, folder) if way == "console" else PySpark(asked, folder, tuned=way == "hand")
        figures = dict(zip(("start s", "start cpu s"), timed(world.start), strict=True))
        await_batches(world, asked.warm, asked)
        figures |= steady(world, asked)
        figures |= dict(zip(("stop s", "stop cpu s"), timed(world.stop), strict=True))
        if isinstance(world, Console):
            figures |= dict(zip(("start again s", "start again cpu s"), timed(world.again), strict=True))
            await_batches(world, 1, asked)
            figures["stop again s"], _ = timed(world.stop)
        world.close()
    return figures


def await_batches(world: Any, count: int, asked: argparse.Namespace) -> None:
    """Wait until each query has completed that many micro-batches, the long first ones."""
    until = time.monotonic() + 20 * asked.every * count
    while any(len(reports) < count for reports in world.reports()) and time.monotonic() < until:
        time.sleep(0.5)


def steady(world: Any, asked: argparse.Namespace) -> dict[str, float]:
    """The figures of some time in which the queries only run."""
    began, (python, jvm) = time.time(), processor.each()
    shown: dict[str, list[float]] = {name: [] for name in world.show()}
    if asked.jfr:
        record(world.spark, asked)
    threads = processor.threads()
    end = time.monotonic() + asked.seconds
    while time.monotonic() < end:
        for name, act in world.show().items():
            shown[name].append(1_000 * timed(act)[0])
        time.sleep(min(2.0, asked.seconds / 2))
    ended, (python_end, jvm_end) = time.time(), processor.each()
    used = processor.threads() - threads
    gaps, took, phases = [], [], dict[str, list[float]]()
    count = 0
    for reports in world.reports():
        inside = [r for r in reports if began <= second(r["timestamp"]) <= ended and r["numInputRows"]]
        starts = [second(r["timestamp"]) for r in inside]
        count += len(inside)
        gaps += [b - a for a, b in zip(starts, starts[1:], strict=False)]
        took += [r["durationMs"]["triggerExecution"] for r in inside]
        for r in inside:
            for phase, ms in r["durationMs"].items():
                phases.setdefault(phase, []).append(ms)
    if asked.phases:
        print({k: round(statistics.median(v)) for k, v in phases.items()}, file=sys.stderr)
        each = {name: round(1_000 * spent / max(1, count), 1) for name, spent in used.most_common(12)}
        print("ms of processor for a micro-batch:", each, file=sys.stderr)
    memory = processor.megabytes()
    return {
        "micro-batches": count,
        "interval p50 s": percentile(gaps, 0.5),
        "interval p99 s": percentile(gaps, 0.99),
        "micro-batch p50 ms": percentile(took, 0.5),
        "micro-batch p99 ms": percentile(took, 0.99),
        "JVM cpu ms": 1_000 * (jvm_end - jvm) / max(1, count),
        "Python cpu ms": 1_000 * (python_end - python) / max(1, count),
        **{f"{name} ms": statistics.median(times) for name, times in shown.items()},
        "Python MB": memory[0],
        "JVM MB": memory[1],
    }


def record(spark: Any, asked: argparse.Namespace) -> None:
    """Let Java's flight recorder write samples of its threads into a file. asked.jfr: the program jcmd."""
    pid = str(spark.sparkContext._gateway.proc.pid)
    file = f"{tempfile.gettempdir()}/many-{pid}.jfr"
    start = ("JFR.start", "settings=profile", f"duration={int(asked.seconds)}s", f"filename={file}")
    subprocess.run([asked.jfr, pid, "JFR.configure", "stackdepth=1024"], stdout=subprocess.DEVNULL)
    subprocess.run([asked.jfr, pid, *start], stdout=subprocess.DEVNULL)
    print(f"recorded into {file}", file=sys.stderr)


def arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser()
    reader.add_argument("ways", nargs="*", default=WAYS)
    reader.add_argument("--queries", type=int, default=50)
    reader.add_argument("--every", type=float, default=5)
    reader.add_argument("--seconds", type=float, default=60)
    reader.add_argument("--warm", type=int, default=3, help="micro-batches of each query before")
    reader.add_argument("--kind", choices=(*SELECTS, *SHARED), default="count")
    reader.add_argument("--conf", action="append", default=[])
    reader.add_argument("--short", action="store_true")
    reader.add_argument("--phases", action="store_true", help="where the time of a micro-batch goes")
    reader.add_argument("--jfr", default="", metavar="JCMD", help="record with Java's flight recorder")
    reader.add_argument("--one", action="store_true", help="measure one way and print JSON")
    asked = reader.parse_args()
    asked.every = int(asked.every) if asked.every == int(asked.every) else asked.every
    if asked.short:
        asked.queries, asked.every, asked.seconds = 2, 1, 2
    return asked


def written(figure: float) -> str:
    return "-" if math.isnan(figure) else f"{figure:,.2f}" if figure < 100 else f"{figure:,.0f}"


def main() -> None:
    asked = arguments()
    if asked.one:
        print(json.dumps(measure(asked.ways[0], asked)))
        return
    table: dict[str, dict[str, float]] = {}
    for way in asked.ways:
        rest = [a for a in sys.argv[1:] if a not in WAYS] + (["--queries", "3"] if way == "plain" else [])
        done = subprocess.run(
            [sys.executable, __file__, way, "--one", *rest], stdout=subprocess.PIPE, text=True
        )
        if done.returncode:
            sys.exit(done.returncode)
        table[way] = json.loads(done.stdout.splitlines()[-1])
    print(f"{asked.queries} queries every {asked.every} s ({asked.kind})")
    print(" " * 22 + "".join(f"{way:>12}" for way in table))
    for name in dict.fromkeys(name for figures in table.values() for name in figures):
        print(f"{name:22}" + "".join(f"{written(f.get(name, math.nan)):>12}" for f in table.values()))


if __name__ == "__main__":
    main()
