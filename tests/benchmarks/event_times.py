"""What the distribution of event times costs that the console measures as rows come: windowed counts, plain
copies and filtered copies of JSON files and of a topic with `SET streamsql.event_times = on` and `off`, in one JVM, in turn.

Usage: event_times.py [rounds [rows [files|topic]]]. Starts a Kafka of its own for a topic; prints seconds, processor seconds and the medians
of the ratios on / off of each round.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import processor
from broker import Broker, Message

from streamsql.connectors.packages import PACKAGES
from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

STREAMS = """
CREATE STREAM files (user STRING, n INT, ts TIMESTAMP, note STRING)
  USING json OPTIONS (path '{folder}/in', maxFilesPerTrigger 2) WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES;
CREATE STREAM topic (user STRING, n INT, ts TIMESTAMP, note STRING)
  USING kafka FORMAT json OPTIONS (servers '{servers}', topic '{topic}', maxOffsetsPerTrigger {most})
  WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES;
CREATE SINK nowhere USING noop;
"""
QUERIES = {
    "copy": "SELECT * FROM {stream}",
    "filter": "SELECT * FROM {stream} WHERE n % 10 = 0",
    "windows": "SELECT window.start AS since, user, count(*) AS c, sum(n) AS s FROM {stream}"
    " GROUP BY window(ts, '10 minutes'), user",
}
RUN = """
SET streamsql.event_times = {switch};
INSERT INTO nowhere AS QUERY q TRIGGER AVAILABLE NOW {query};
AWAIT QUERY q;
DROP QUERY q;
"""


def clicks(count: int) -> Iterator[str]:
    """JSON rows in order of event time, the same in every run."""
    for i in range(count):
        second = i * 7200 // count
        stamp = f"2024-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        yield json.dumps({"user": f"u{i * 7919 % 100}", "n": i, "ts": stamp, "note": f"the note of row {i}"})


def write_files(folder: Path, count: int) -> None:
    folder.mkdir()
    files = [(folder / f"{number}.json").open("w") for number in range(8)]
    for i, row in enumerate(clicks(count)):
        files[i * 8 // count].write(row + "\n")
    for file in files:
        file.close()


def execute(session: Session, script: str) -> None:
    for written in split_script(Source("b", script)):
        session.execute(parse(written))


def measure(session: Session, stream: str, query: str, switch: str) -> tuple[float, float]:
    """The seconds, and the processor seconds, of one run."""
    began, used = time.perf_counter(), processor.seconds()
    execute(session, RUN.format(switch=switch, query=query.format(stream=stream)))
    return time.perf_counter() - began, processor.seconds() - used


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    streams = sys.argv[3:] or ["files", "topic"]
    broker = Broker(heap="512m")
    if "topic" in streams:
        broker.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            topic = ""
            if "topic" in streams:
                topic = broker.topic(partitions=2)
                broker.produce(topic, (Message(row, partition=i % 2) for i, row in enumerate(clicks(count))))
            write_files(place / "in", count)
            session = Session(Config(Settings.make("local[*]", {}), place / "w", place / "log", place))
            servers = "localhost:9092"
            if "topic" in streams:
                session.parts.packages.load(session.spark, PACKAGES["kafka"], CancelToken())
                servers = broker.servers
            values = {"folder": folder, "servers": servers, "topic": topic or "clicks", "most": count // 4}
            execute(session, STREAMS.format(**values))
            for stream in streams:
                for name, query in QUERIES.items():
                    compare(session, stream, name, query, rounds, count)
            session.close()
    finally:
        broker.remove()


def compare(session: Session, stream: str, name: str, query: str, rounds: int, count: int) -> None:
    taken: dict[str, list[tuple[float, float]]] = {"on": [], "off": []}
    for round in range(rounds + 2):
        for switch in sorted(taken, reverse=bool(round % 2)):
            figures = measure(session, stream, query, switch)
            if round > 1:
                taken[switch].append(figures)
    for at, what in ((0, "time"), (1, "processor")):
        on, off = ([each[at] for each in taken[switch]] for switch in ("on", "off"))
        ratio = statistics.median(a / b for a, b in zip(on, off, strict=True))
        print(
            f"{stream:6} {name:8} {what:10} on {statistics.median(on):6.2f} s  off {statistics.median(off):6.2f} s"
            f"  median of the ratios {ratio - 1:+.1%}  best {min(on) / min(off) - 1:+.1%}"
            f"  ({count / statistics.median(on):,.0f} rows/s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
