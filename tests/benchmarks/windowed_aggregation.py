"""(b), (c) A windowed aggregation over files: the console, the same query written by hand in PySpark
with the same settings, and PySpark with its default settings. All in one JVM each, in turn.

Usage: windowed_aggregation.py [rounds]. Prints the ratios of the medians.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

FILES, ROWS = 8, 5_000
SQL = """
CREATE OR REPLACE STREAM clicks (user STRING, n INT, ts TIMESTAMP)
  USING json OPTIONS (path '{folder}/in', maxFilesPerTrigger 1) WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES;
CREATE OR REPLACE SINK out USING parquet OPTIONS (path '{folder}/out_{run}');
INSERT INTO out AS QUERY q_{run} TRIGGER AVAILABLE NOW CHECKPOINT '{folder}/ck_{run}'
  SELECT window.start AS since, user, count(*) AS c, sum(n) AS s FROM clicks
  GROUP BY window(ts, '10 minutes'), user;
AWAIT QUERY q_{run};
DROP QUERY q_{run};
"""
BY_HAND = """
def by_hand(spark, F, folder, run):
    clicks = (
        spark.readStream.format("json").schema("user STRING, n INT, ts TIMESTAMP")
        .option("maxFilesPerTrigger", "1").load(f"{folder}/in").withWatermark("ts", "10 minutes")
    )
    counts = clicks.groupBy(F.window("ts", "10 minutes"), "user").agg(
        F.count("*").alias("c"), F.sum("n").alias("s")
    ).select(F.col("window.start").alias("since"), "user", "c", "s")
    query = (
        counts.writeStream.format("parquet").outputMode("append").trigger(availableNow=True)
        .option("checkpointLocation", f"{folder}/ck_{run}").option("path", f"{folder}/out_{run}").start()
    )
    query.awaitTermination()
"""
SAME_JVM = (
    BY_HAND
    + """
import json, sys, time
from pathlib import Path
from pyspark.sql import functions as F
from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.runtime.session_config import Config
from streamsql.runtime.session import Session
from streamsql.runtime.engine.settings import Settings

folder, rounds, sql = sys.argv[1], int(sys.argv[2]), sys.argv[3]
session = Session(Config(Settings.make("local[*]", {}), Path(folder) / "w", Path(folder) / "log", Path(folder)))
spark = session.spark
times = {"console": [], "by hand": []}

def console(run):
    for written in split_script(Source("b", sql.format(folder=folder, run=run))):
        session.execute(parse(written))

for round in range(rounds + 1):
    ways = [("console", console), ("by hand", lambda run: by_hand(spark, F, folder, run))]
    for name, way in ways if round % 2 else ways[::-1]:
        began = time.perf_counter()
        way(f"{name.replace(' ', '')}{round}")
        if round:
            times[name].append(time.perf_counter() - began)
print(json.dumps(times))
session.close()
"""
)
DEFAULTS = (
    BY_HAND
    + """
import json, sys, time
from pyspark.sql import SparkSession, functions as F
folder, rounds = sys.argv[1], int(sys.argv[2])
spark = SparkSession.builder.master("local[*]").getOrCreate()
times = []
for round in range(rounds + 1):
    began = time.perf_counter()
    by_hand(spark, F, folder, f"default{round}")
    if round:
        times.append(time.perf_counter() - began)
print(json.dumps({"defaults": times}))
"""
)


def make_input(folder: Path) -> None:
    """Files of clicks in order of event time, the same in every run."""
    rng = random.Random(7)
    (folder / "in").mkdir()
    for number in range(FILES):
        lines = []
        for i in range(ROWS):
            second = number * 600 + i * 600 // ROWS - rng.randrange(60)
            stamp = f"2024-01-01T{max(second, 0) // 3600:02d}:{max(second, 0) // 60 % 60:02d}:{max(second, 0) % 60:02d}"
            lines.append(json.dumps({"user": f"u{rng.randrange(100)}", "n": i, "ts": stamp}))
        (folder / "in" / f"{number:03d}.json").write_text("\n".join(lines) + "\n")


def measure(program: str, *arguments: str) -> dict[str, list[float]]:
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    rounds = sys.argv[1] if len(sys.argv) > 1 else "5"
    with tempfile.TemporaryDirectory() as name:
        make_input(Path(name))
        times = measure(SAME_JVM, name, rounds, SQL) | measure(DEFAULTS, name, "1")
    medians = {k: statistics.median(v) for k, v in times.items()}
    for way, seconds in medians.items():
        print(f"{way:10} {seconds:7.2f} s   {', '.join(f'{t:.2f}' for t in times[way])}")
    print(f"(b) console / by hand, same settings: {medians['console'] / medians['by hand']:.3f}")
    print(f"(c) console / PySpark's defaults:     {medians['console'] / medians['defaults']:.3f}")


if __name__ == "__main__":
    main()
