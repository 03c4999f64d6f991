"""A small micro-batch: a windowed count over files of one row, with the console's local files and with Hadoop's.

    python tests/benchmarks/micro_batch.py [queries]

Prints seconds of clock and of processor (of the JVM and the processes that it starts) for each micro-batch.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from streamsql.config.folders import cache_folder
from streamsql.runtime.engine import jvm
from streamsql.runtime.engine.java import find_java
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.engine.spark_classes import LOCAL_FILES

FILES = 4
HADOOP = "org.apache.hadoop.fs.LocalFileSystem"
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    """Of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / TICKS


def run(spark: Any, folder: Path, number: int) -> None:
    """One query over all files, a micro-batch for each."""
    frame = spark.readStream.schema("k string, ts timestamp").option("maxFilesPerTrigger", 1)
    frame = frame.json(str(folder / "in")).withWatermark("ts", "1 minute")
    frame.createOrReplaceTempView("s")
    counts = spark.sql("SELECT window(ts, '5 minutes') AS w, k, count(*) AS n FROM s GROUP BY 1, 2")
    writer = counts.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / f"checkpoint-{number}")).start().awaitTermination()


def measured(files: str, queries: int) -> tuple[float, float]:
    """(seconds, processor seconds) of a micro-batch, medians over queries; a first query is not counted."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "in").mkdir()
        for n in range(FILES):
            (folder / "in" / f"{n}.json").write_text(f'{{"k": "a", "ts": "2024-01-01 00:{n * 5:02}:00"}}\n')
        conf = Settings.make("local[2]", {}).start_conf() | {"spark.hadoop.fs.file.impl": files}
        spark = jvm.start_session(conf, folder / "log", cache_folder(), find_java())
        pid = spark.sparkContext._gateway.proc.pid
        taken = []
        for number in range(queries + 3):
            began, used = time.perf_counter(), processor_seconds(pid)
            run(spark, folder, number)
            taken.append((time.perf_counter() - began, processor_seconds(pid) - used))
        spark.stop()
        jvm.forget_session()
    seconds, processor = zip(*taken[3:], strict=True)
    return statistics.median(seconds) / FILES, statistics.median(processor) / FILES


def main() -> None:
    queries = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for name, files in (("Hadoop's", HADOOP), ("the console's", LOCAL_FILES)):
        seconds, processor = measured(files, queries)
        print(
            f"{name:14} {seconds * 1000:5.0f} ms, {processor * 1000:5.0f} ms of processor for a micro-batch"
        )


if __name__ == "__main__":
    main()
