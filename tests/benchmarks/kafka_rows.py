"""Rows per second from a topic of JSON messages through a windowed count into a sink: the console against
the same query written by hand in PySpark with the same settings, in one JVM, in turn.

Usage: kafka_rows.py [rounds [messages]]. Starts a Kafka of its own; prints rows per second and the ratio
of the medians.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from broker import Broker, Message

from streamsql.connectors.packages import PACKAGES
from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

PER_BATCH = 250_000
SQL = """
CREATE OR REPLACE STREAM clicks (user STRING, n INT, ts TIMESTAMP)
  USING kafka FORMAT json OPTIONS (servers '{servers}', topic '{topic}', maxOffsetsPerTrigger {most})
  WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES;
CREATE OR REPLACE SINK out USING parquet OPTIONS (path '{folder}/out_{run}');
INSERT INTO out AS QUERY q_{run} TRIGGER AVAILABLE NOW CHECKPOINT '{folder}/ck_{run}'
  SELECT window.start AS since, user, count(*) AS c, sum(n) AS s FROM clicks
  GROUP BY window(ts, '10 minutes'), user;
AWAIT QUERY q_{run};
DROP QUERY q_{run};
"""


def clicks(count: int) -> Iterator[Message]:
    """JSON messages in order of event time, the same in every run, in two partitions."""
    for i in range(count):
        second = i * 7200 // count
        stamp = f"2024-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        yield Message(json.dumps({"user": f"u{i * 7919 % 100}", "n": i, "ts": stamp}), partition=i % 2)


def by_hand(spark: Any, broker: Broker, topic: str, folder: str, run: str) -> None:
    from pyspark.sql import functions as F

    messages = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", PER_BATCH)
        .load()
    )
    columns = F.from_json(F.col("value").cast("string"), "user STRING, n INT, ts TIMESTAMP")
    rows = messages.select(columns.alias("c")).select("c.*").withWatermark("ts", "10 minutes")
    counts = (
        rows.groupBy(F.window("ts", "10 minutes"), "user")
        .agg(F.count("*").alias("c"), F.sum("n").alias("s"))
        .select(F.col("window.start").alias("since"), "user", "c", "s")
    )
    query = (
        counts.writeStream.format("parquet")
        .outputMode("append")
        .trigger(availableNow=True)
        .option("checkpointLocation", f"{folder}/ck_{run}")
        .option("path", f"{folder}/out_{run}")
        .start()
    )
    query.awaitTermination()


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    broker = Broker(heap="512m")
    broker.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            topic = broker.topic(partitions=2)
            broker.produce(topic, clicks(count))
            place = Path(folder)
            session = Session(Config(Settings.make("local[*]", {}), place / "w", place / "log", place))
            session.parts.packages.load(session.spark, PACKAGES["kafka"], CancelToken())
            times: dict[str, list[float]] = {"console": [], "by hand": []}
            for round in range(rounds + 1):
                for name in sorted(times, reverse=bool(round % 2)):
                    run = f"{name.replace(' ', '')}{round}"
                    began = time.perf_counter()
                    if name == "console":
                        script = SQL.format(
                            servers=broker.servers, topic=topic, folder=folder, run=run, most=PER_BATCH
                        )
                        for written in split_script(Source("b", script)):
                            session.execute(parse(written))
                    else:
                        by_hand(session.spark, broker, topic, folder, run)
                    if round:
                        times[name].append(time.perf_counter() - began)
            session.close()
    finally:
        broker.remove()
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    for name, seconds in medians.items():
        each = ", ".join(f"{t:.2f}" for t in times[name])
        print(f"{name:10} {count / seconds:10,.0f} rows/s   {seconds:.2f} s   ({each})")
    print(f"console / by hand, rows per second: {medians['by hand'] / medians['console']:.3f}")


if __name__ == "__main__":
    main()
