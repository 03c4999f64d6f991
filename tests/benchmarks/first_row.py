"""(d) Process start to the first row of a streaming aggregation: the console with its start-up cache and
without one, and plain PySpark with its defaults, in turn.

Usage: first_row.py [rounds]. Prints the ratios of the medians. `--short` runs the console once, without a cache.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAIN = """
import sys
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.master("local[*]").getOrCreate()
stream = spark.readStream.format("json").schema("user STRING, ts TIMESTAMP").load(sys.argv[1])
counts = stream.groupBy(F.window("ts", "10 minutes"), "user").count()
query = counts.writeStream.format("memory").queryName("c").outputMode("complete").trigger(availableNow=True).start()
query.awaitTermination()
print(spark.sql("SELECT * FROM c").collect()[0], flush=True)
"""
SQL = """
CREATE STREAM s (user STRING, ts TIMESTAMP) USING json OPTIONS (path '{folder}');
SELECT window, user, count(*) AS count FROM s GROUP BY window(ts, '10 minutes'), user;
"""


def first_line(command: list[str], **environment: str) -> float:
    """Seconds from the start of a process to the first line of data it prints."""
    # Users have compiled files.
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=own | environment
    ) as process:
        assert process.stdout
        line = process.stdout.readline()
        seconds = time.perf_counter() - began
        process.stdout.read()
    assert line and process.returncode == 0, (command, line, process.returncode)
    return seconds


def main() -> None:
    from streamsql.config.folders import cache_folder
    from streamsql.runtime.engine.aot_cache import builder, cache_file
    from streamsql.runtime.engine.java import find_java

    short = "--short" in sys.argv
    if not short:
        java, cache = find_java(), cache_folder()
        cache.mkdir(parents=True, exist_ok=True)
        cache_file(java, cache).unlink(missing_ok=True)
        command, quiet = builder(java, cache)
        print(
            "building the start-up cache:",
            "failed" if subprocess.run(command, **quiet).returncode else "done",
        )
    with tempfile.TemporaryDirectory() as folder:
        data = [f'{{"user": "u{i % 7}", "ts": "2024-01-01T10:{i % 60:02d}:00"}}\\n' for i in range(500)]
        (Path(folder) / "a.json").write_text("".join(data))
        console = [
            sys.executable,
            "-m",
            "streamsql",
            "-q",
            "--format",
            "csv",
            "-e",
            SQL.format(folder=folder),
        ]
        ways = {
            "console": console,
            "no cache": console,
            "plain": [sys.executable, "-c", PLAIN, folder],
        }
        if short:
            print(f"no cache {first_line(ways['no cache'], STREAMSQL_NO_AOT='1'):6.2f} s")
            return
        rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
        times: dict[str, list[float]] = {name: [] for name in ways}
        for round in range(rounds + 1):
            for name, command in ways.items():
                seconds = first_line(command, STREAMSQL_NO_AOT="1" if name == "no cache" else "")
                if round:
                    times[name].append(seconds)
    medians = {k: statistics.median(v) for k, v in times.items()}
    for way, seconds in medians.items():
        print(f"{way:8} {seconds:6.2f} s   {', '.join(f'{t:.2f}' for t in times[way])}")
    for way in ("console", "no cache"):
        print(f"(d) {way} / plain PySpark with its defaults: {medians[way] / medians['plain']:.3f}")


if __name__ == "__main__":
    main()
