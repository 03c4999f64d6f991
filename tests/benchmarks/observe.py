"""What it would cost to measure event times in the same pass, by Spark's observe: a windowed aggregation over
files without metrics, with the number of NULLs, with two counts, with counts and the oldest and newest event time,
with percentiles of one row in 64 as well, and with counts, oldest and newest beside the count of malformed rows,
which the console observes for csv, json and xml in any case.

Usage: observe.py [rounds] [json] [parquet]. Prints the time of each, and the processor time of its JVM, against
those without metrics. SHOW LATENESS reads micro-batches again.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROWS = {"json": 250_000, "parquet": 1_500_000}
SAMPLE = "CASE WHEN xxhash64(ts) & 63 = 0 THEN unix_millis(ts) END"
COUNTS = ("count(1) AS read", "count(ts) AS times", "min(ts) AS oldest", "max(ts) AS newest")
MALFORMED = (
    "count_if(user IS NULL) AS rows",
    "count_if(user IS NULL AND n IS NULL AND ts IS NULL) AS others",
)
METRICS = {
    "none": (),
    "nulls": ("count_if(ts IS NULL) AS nulls",),
    "two counts": COUNTS[:2],
    "counts": COUNTS,
    "malformed": MALFORMED,
    "malformed, times": (*MALFORMED, *COUNTS),
    "percentiles": (*COUNTS[:2], f"percentile_approx({SAMPLE}, array(0.001, 0.01, 0.1, 0.5), 200) AS late"),
}


def make_input(spark: Any, folder: Path) -> None:
    for form, count in ROWS.items():
        for number in range(2):
            second = (
                f"1704067200 + {number} * 600 + CAST(id * 600 / {count} AS INT) - CAST(rand(7) * 60 AS INT)"
            )
            rows = spark.range(count).selectExpr(
                "concat('u', id % 100) AS user", "id AS n", f"timestamp_seconds({second}) AS ts"
            )
            rows.coalesce(1).write.format(form).mode("append").save(str(folder / form))


def processor_time(spark: Any) -> float:
    """The seconds that its JVM has had a processor."""
    number = spark._jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(spark: Any, folder: Path, form: str, metrics: tuple[str, ...], number: int) -> tuple[float, float]:
    """The seconds that the aggregation takes, and those of the processor."""
    from pyspark.sql import functions as F

    reader = spark.readStream.format(form).schema("user STRING, n BIGINT, ts TIMESTAMP")
    rows = reader.option("maxFilesPerTrigger", "1").load(str(folder / form)).withWatermark("ts", "10 minutes")
    if metrics:
        rows = rows.observe("event time", *map(F.expr, metrics))
    counts = rows.groupBy(F.window("ts", "10 minutes"), "user").agg(F.count("*").alias("c"), F.sum("n"))
    began, had = time.perf_counter(), processor_time(spark)
    writer = counts.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / f"checkpoint_{number}")).start().awaitTermination()
    return time.perf_counter() - began, processor_time(spark) - had


def main() -> None:
    from pyspark.sql import SparkSession

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    forms = sys.argv[2:] or ["json", "parquet"]
    builder = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as name:
        folder, number = Path(name), 0
        make_input(spark, folder)
        for form in forms:
            times: dict[str, list[tuple[float, float]]] = {what: [] for what in METRICS}
            for round in range(rounds + 1):
                for what, metrics in METRICS.items():
                    number += 1
                    seconds = run(spark, folder, form, metrics, number)
                    if round:
                        times[what].append(seconds)
            for kind, at in (("time", 0), ("processor", 1)):
                plain = [each[at] for each in times["none"]]
                for what, taken in times.items():
                    values = [each[at] for each in taken]
                    print(f"{form:8} {kind:10} {what:18} {statistics.median(values):6.2f} s  "
                          f"{statistics.median(values) / statistics.median(plain) - 1:+.1%}  "
                          f"best {min(values) / min(plain) - 1:+.1%}", flush=True)  # fmt: skip
    spark.stop()


if __name__ == "__main__":
    main()
