"""Typical work of a session, which loads the classes that a session needs and compiles the hot ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def typical_work(spark: Any, scratch: Path) -> None:
    """Run what a session usually runs: files read and written, streams. spark: a session of its own, in which
    temporary views are defined; scratch: an empty folder, for input, output and checkpoints.
    """
    folder = scratch / "in"
    folder.mkdir()
    for number in range(2):
        rows = [
            f'{{"ts": "2026-01-01T00:{i % 60:02d}:{number:02d}Z", "k": "k{i % 7}", "v": {i}}}\n'
            for i in range(300)
        ]
        (folder / f"{number}.json").write_text("".join(rows), "utf-8")
    schema = "ts timestamp, k string, v bigint"
    frame = spark.read.schema(schema).json(str(folder))
    for kind in ("parquet", "csv"):
        frame.write.format(kind).save(str(scratch / kind))
        spark.read.schema(schema).format(kind).load(str(scratch / kind)).toArrow()
    spark.sql("SHOW TABLES").collect()
    spark.sql("SELECT 1 AS one, 'a' AS a, current_timestamp() AS now").toArrow()
    try:
        spark.sql("SELECT nothing FROM nowhere")
    except Exception:
        pass
    spark.readStream.schema(schema).json(str(folder)).createOrReplaceTempView("events")
    frame.createOrReplaceTempView("known")
    queries = {
        "windows": (
            "update",
            "SELECT window(ts, '1 minute') AS w, k, count(*) AS n, sum(v) AS s, avg(v) AS a"
            " FROM events GROUP BY window(ts, '1 minute'), k",
        ),
        "groups": ("complete", "SELECT k, count(*) AS n FROM events GROUP BY k ORDER BY n DESC"),
        "rows": ("append", "SELECT e.*, b.v AS u FROM events e JOIN known b USING (k) WHERE e.v>9"),
    }
    for name, (mode, query) in queries.items():
        stream = spark.sql(query).writeStream.outputMode(mode)
        active = (
            stream.format("memory").queryName(name).option("checkpointLocation", str(scratch / name)).start()
        )
        active.processAllAvailable()
        spark.sql(f"SELECT * FROM {name} LIMIT 20").toArrow()
        active.stop()
    _typical_sinks(spark, scratch)


def _typical_sinks(spark: Any, scratch: Path) -> None:
    late = spark.sql("SELECT * FROM events").withWatermark("ts", "1 minute")
    late.createOrReplaceTempView("late")
    closed = spark.sql(
        "SELECT window.start AS t, k, count(*) AS n FROM late GROUP BY window(ts, '5 minutes'), k"
    )
    for kind in ("parquet", "json"):
        target = scratch / f"out-{kind}"
        writer = closed.writeStream.format(kind).outputMode("append")
        active = writer.option("checkpointLocation", f"{target}-checkpoint").start(str(target))
        active.processAllAvailable()
        active.stop()
    writer = closed.writeStream.outputMode("update")
    active = writer.foreachBatch(lambda batch, _: batch.limit(20).toArrow()).start()
    active.processAllAvailable()
    active.stop()
