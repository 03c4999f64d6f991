"""What it would cost to measure event times in the same pass, by Spark's observe: a windowed aggregation over
files without metrics, with counts and the oldest and newest event time, and with percentiles as well.

Usage: observe.py [rounds]. Prints the throughput of each against that without metrics. SHOW LATENESS reads the
micro-batches again instead, on demand.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROWS = 300_000
COUNTS = ("count(1) AS rows", "count(ts) AS times", "min(ts) AS oldest", "max(ts) AS newest")
METRICS = {
    "none": (),
    "counts": COUNTS,
    "percentiles": (
        *COUNTS,
        "percentile_approx(unix_millis(ts), array(0.001, 0.01, 0.1, 0.5), 1000) AS late",
    ),
}


def make_input(spark: Any, folder: Path) -> None:
    for number in range(2):
        second = f"1704067200 + {number} * 600 + CAST(id * 600 / {ROWS} AS INT) - CAST(rand(7) * 60 AS INT)"
        rows = spark.range(ROWS).selectExpr(
            "concat('u', id % 100) AS user", "id AS n", f"timestamp_seconds({second}) AS ts"
        )
        for form in ("json", "parquet"):
            rows.coalesce(1).write.format(form).mode("append").save(str(folder / form))


def run(spark: Any, folder: Path, form: str, metrics: tuple[str, ...], number: int) -> float:
    """The seconds that the aggregation takes."""
    from pyspark.sql import functions as F

    reader = spark.readStream.format(form).schema("user STRING, n BIGINT, ts TIMESTAMP")
    rows = reader.option("maxFilesPerTrigger", "1").load(str(folder / form)).withWatermark("ts", "10 minutes")
    if metrics:
        rows = rows.observe("event time", *map(F.expr, metrics))
    counts = rows.groupBy(F.window("ts", "10 minutes"), "user").agg(F.count("*").alias("c"), F.sum("n"))
    began = time.perf_counter()
    writer = counts.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / f"checkpoint_{number}")).start().awaitTermination()
    return time.perf_counter() - began


def main() -> None:
    from pyspark.sql import SparkSession

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    builder = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as name:
        folder, number = Path(name), 0
        make_input(spark, folder)
        for form in ("json", "parquet"):
            times: dict[str, list[float]] = {what: [] for what in METRICS}
            for round in range(rounds + 1):
                for what, metrics in METRICS.items():
                    number += 1
                    seconds = run(spark, folder, form, metrics, number)
                    if round:
                        times[what].append(seconds)
            plain = statistics.median(times["none"])
            for what, taken in times.items():
                print(f"{form:8} {what:12} {statistics.median(taken):6.2f} s  best {min(taken):.2f} s  "
                      f"{statistics.median(taken) / plain - 1:+.1%}")  # fmt: skip
    spark.stop()


if __name__ == "__main__":
    main()
