"""End-to-end latency from topic to topic at a steady rate: from the moment a message is produced to the
moment the query has written it. For micro-batches also from the moment when the source has told Spark of the
messages (the time of the micro-batch, current_timestamp()).

Usage: kafka_latency.py [seconds [rows per second]]. Starts a Kafka of its own; prints p50 and p99 in
milliseconds for the default trigger, the same with asynchronous progress tracking, and TRIGGER REAL TIME.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from broker import Broker, Message

from streamsql.config.folders import cache_folder
from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

WARM_UP = 10
"""Seconds at the beginning that do not count, at most as many as those that do."""
SQL = """
CREATE OR REPLACE STREAM clicks (n BIGINT) USING kafka OPTIONS (servers '{servers}', topic '{topic}');
CREATE OR REPLACE SINK copies USING kafka FORMAT csv OPTIONS (servers '{servers}', topic '{copies}'{options});
INSERT INTO copies AS QUERY q {trigger}
  SELECT n, unix_millis(_timestamp) AS produced, unix_millis(current_timestamp()) AS told FROM clicks WHERE n >= 0;
"""
WAYS = {
    "default trigger": ("", ""),
    "asynchronous progress": ("", ", asyncProgressTrackingEnabled 'true'"),
    "real time": ("OUTPUT MODE UPDATE TRIGGER REAL TIME EVERY INTERVAL 1 MINUTE", ""),
}


def produce(broker: Broker, topic: str, seconds: float, rate: int) -> None:
    """So many messages each second, in steps of 20 milliseconds."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 0})
    began, sent = time.monotonic(), 0
    while sent < seconds * rate:
        due = int((time.monotonic() - began) * rate)
        for number in range(sent, due):
            producer.produce(topic, f'{{"n": {number}}}', partition=number % 2)
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(0.02)
    producer.flush(30)


def latencies(copies: list[Message], from_number: int) -> tuple[list[int], list[int]]:
    """Milliseconds until a message was written: since it was produced, by the timestamps that Kafka's clients
    gave, and since the beginning of its micro-batch.
    """
    since_produced, since_told = [], []
    for message in copies:
        number, produced, told = map(int, (message.value or b"").split(b","))  # type: ignore[arg-type]
        if number >= from_number:
            since_produced.append(message.timestamp - produced)
            since_told.append(message.timestamp - told)
    return since_produced, since_told


def cuts(times: list[int]) -> str:
    hundredths = statistics.quantiles(times, n=100)
    return f"p50 {hundredths[49]:5.0f} ms   p99 {hundredths[98]:5.0f} ms"


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    warm_up = min(WARM_UP, seconds)
    rate = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    broker = Broker(heap="512m")
    broker.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            session = Session(
                Config(Settings.make("local[*]", {}), place / "w", place / "log", cache_folder())
            )
            for name, (trigger, options) in WAYS.items():
                topic, copies = broker.topic(partitions=2), broker.topic(partitions=2)
                script = SQL.format(
                    servers=broker.servers, topic=topic, copies=copies, trigger=trigger, options=options
                )
                for written in split_script(Source("b", script)):
                    session.execute(parse(written))
                produce(broker, topic, warm_up + seconds, rate)
                while len(broker.read(copies)) < (warm_up + seconds) * rate:
                    time.sleep(0.5)
                for written in split_script(Source("b", "STOP QUERY q; DROP QUERY q;")):
                    session.execute(parse(written))
                produced, told = latencies(broker.read(copies), int(warm_up * rate))
                since = "" if "REAL TIME" in trigger else f"   since its micro-batch {cuts(told)}"
                print(f"{name:22} {cuts(produced)}{since}")
            session.close()
    finally:
        broker.remove()


if __name__ == "__main__":
    main()
