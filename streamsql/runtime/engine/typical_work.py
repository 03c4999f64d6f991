"""Typical work of a session, which loads the classes that a session needs and compiles the hot ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SCHEMA = "ts timestamp, k string, v bigint"
QUERIES = {
    "windows": (
        "update",
        "SELECT window(ts, '1 minute') AS w, k, count(*) AS n, sum(v) AS s, avg(v) AS a"
        " FROM events GROUP BY window(ts, '1 minute'), k",
    ),
    "groups": ("complete", "SELECT k, count(*) AS n FROM events GROUP BY k ORDER BY n DESC"),
    "rows": ("append", "SELECT e.*, b.v AS u FROM events e JOIN known b USING (k) WHERE e.v>9"),
}
LATE = "SELECT window.start AS t, k, count(*) AS n FROM late GROUP BY window(ts, '5 minutes'), k"


def typical_work(spark: Any, scratch: Path) -> None:
    """Run what a session usually runs: files read and written, streams. spark: a session of its own, in which
    temporary views are defined; scratch: an empty folder, for input, output and checkpoints.
    """
    frame = _input(spark, scratch)
    for kind in ("parquet", "csv"):
        frame.write.format(kind).save(str(scratch / kind))
        spark.read.schema(SCHEMA).format(kind).load(str(scratch / kind)).toArrow()
    spark.sql("SHOW TABLES").collect()
    try:
        spark.sql("SELECT nothing FROM nowhere")
    except Exception:
        pass
    for name in QUERIES:
        _run(spark, scratch, name)
    for kind in ("parquet", "json"):
        writer = spark.sql(LATE).writeStream.format(kind).outputMode("append")
        writer = writer.option("checkpointLocation", str(scratch / f"out-{kind}-checkpoint"))
        _to_the_end(writer.start(str(scratch / f"out-{kind}")))
    _batches(spark)


def _input(spark: Any, scratch: Path) -> Any:
    """JSON files, as streams events and late, and as the table known."""
    folder = scratch / "in"
    folder.mkdir()
    for number in range(2):
        rows = [
            f'{{"ts": "2026-01-01T00:{i % 60:02d}:{number:02d}Z", "k": "k{i % 7}", "v": {i}}}\n'
            for i in range(300)
        ]
        (folder / f"{number}.json").write_text("".join(rows), "utf-8")
    frame = spark.read.schema(SCHEMA).json(str(folder))
    frame.createOrReplaceTempView("known")
    events = spark.readStream.schema(SCHEMA).json(str(folder))
    events.createOrReplaceTempView("events")
    events.withWatermark("ts", "1 minute").createOrReplaceTempView("late")
    spark.sql("SELECT 1 AS one, 'a' AS a, current_timestamp() AS now").toArrow()
    return frame


def _run(spark: Any, scratch: Path, name: str) -> None:
    mode, query = QUERIES[name]
    writer = spark.sql(query).writeStream.outputMode(mode).format("memory").queryName(name)
    _to_the_end(writer.option("checkpointLocation", str(scratch / name)).start())
    spark.sql(f"SELECT * FROM {name} LIMIT 20").toArrow()


def _batches(spark: Any) -> None:
    """Micro-batches handed to Python."""
    writer = spark.sql(LATE).writeStream.outputMode("update")
    _to_the_end(writer.foreachBatch(lambda batch, _: batch.limit(20).toArrow()).start())


def _to_the_end(query: Any) -> None:
    query.processAllAvailable()
    query.stop()
