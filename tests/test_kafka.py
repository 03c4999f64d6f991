"""Kafka, with a real broker: read, windowed, written back, and what goes wrong on the way."""

from __future__ import annotations

from typing import Any

from broker import Broker, Message


def test_spark_reads_what_was_produced(kafka: Broker, spark: Any) -> None:
    topic = kafka.topic(Message("one", "a", [("h", b"1")]), "two")
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.servers)
    rows = reader.option("subscribe", topic).load().selectExpr("string(key)", "string(value)").collect()
    assert sorted(map(tuple, rows), key=str) == [("a", "one"), (None, "two")]
