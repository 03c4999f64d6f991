"""What happens to Kafka while a query runs, and to a console that is killed: nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import Broker, Message
from conftest import Console
from scripts import command
from test_kafka import as_json, insert, said, source, target
from test_scripts import wait_until

ROOMS = ("streamsql/connectors/", "streamsql/runtime/")

RUNNING = "INSERT INTO o AS QUERY q SELECT * FROM s;\n"


def test_a_topic_that_is_not_there(kafka: Broker, console: Console) -> None:
    error = said(console, source(kafka, "no-such-topic") + "SELECT * FROM s;")
    assert "a topic that the query reads does not exist" in error
    assert "misspelt" in error


def test_a_topic_that_disappears_ends_its_query(
    kafka: Broker, console: Console, eventually: Callable[..., None]
) -> None:
    topic, copies = kafka.topic(*as_json(("ann", 1))), kafka.topic()
    console.run(source(kafka, topic) + target(kafka, copies) + RUNNING)
    eventually(lambda: len(kafka.read(copies)) == 1)
    kafka.delete(topic)
    error = said(console, "AWAIT QUERY q;")
    assert "a topic that the query reads does not exist" in error
    assert "deleted" in error
    # It comes again, shorter than it was read: the query does not pass over that in silence.
    kafka.topic(name=topic)
    error = said(console, "START QUERY q; AWAIT QUERY q;")
    assert "the next messages are no longer in Kafka" in error
    assert "failOnDataLoss false" in error


def test_messages_that_are_too_old_are_lost_only_when_allowed(kafka: Broker, console: Console) -> None:
    topic, copies = kafka.topic(*as_json(*((str(i), i) for i in range(6)))), kafka.topic()
    script = source(kafka, topic, startingOffsets=json.dumps({topic: {"0": 1}})) + target(kafka, copies)
    kafka.delete_before(topic, 4)
    error = said(console, script + insert("SELECT * FROM s"))
    assert "the next messages are no longer in Kafka" in error
    console.run("DROP QUERY q;")
    allowed = script.replace("'startingOffsets'", "failOnDataLoss false, 'startingOffsets'")
    console.run(allowed + insert("SELECT * FROM s"))
    assert [json.loads(m.value)["n"] for m in kafka.read(copies)] == [4, 5]


def test_a_partition_added_while_running_is_read_from_its_beginning(
    kafka: Broker, console: Console, eventually: Callable[..., None]
) -> None:
    topic, copies = kafka.topic(*as_json(("ann", 1))), kafka.topic()
    console.run(
        source(kafka, topic, **{"kafka.metadata.max.age.ms": "500"})
        + target(kafka, copies)
        + "INSERT INTO o AS QUERY q SELECT k, n, _partition AS p FROM s;"
    )
    eventually(lambda: len(kafka.read(copies)) == 1)
    kafka.add_partitions(topic, 3)
    kafka.produce(
        topic, [Message(p, partition=i) for i, p in enumerate(as_json(("a", 0), ("b", 1), ("c", 2)))]
    )
    eventually(lambda: len(kafka.read(copies)) == 4)
    found = {(r["k"], r["p"]) for m in kafka.read(copies) for r in [json.loads(m.value)]}
    assert found == {("ann", 0), ("a", 0), ("b", 1), ("c", 2)}


@pytest.mark.usefixtures("processes")
def test_a_broker_that_goes_away_and_returns(
    kafka: Broker, console: Console, eventually: Callable[..., None]
) -> None:
    topic, copies = kafka.topic(*as_json(("ann", 1))), kafka.topic()
    console.run(
        source(kafka, topic)
        + target(kafka, copies)
        + RUNNING.replace("SELECT", "TRIGGER EVERY INTERVAL 1 SECOND SELECT")
    )
    eventually(lambda: len(kafka.read(copies)) == 1)
    kafka.stop()
    try:
        assert [r[1] for r in console.rows("SHOW QUERIES;")] == ["running"]
    finally:
        kafka.start()
    kafka.produce(topic, as_json(("bob", 2), ("cid", 3)))
    eventually(lambda: len(kafka.read(copies)) >= 3)
    assert [json.loads(m.value)["k"] for m in kafka.read(copies)] == ["ann", "bob", "cid"]
    assert [r[1] for r in console.rows("SHOW QUERIES;")] == ["running"]


KEYS, MESSAGES = 5, 600
SCRIPT = """
CREATE STREAM s (k STRING, n INT, ts TIMESTAMP) USING kafka
  OPTIONS (servers '${servers}', topic '${topic}', maxOffsetsPerTrigger 150)
  WITH WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
CREATE SINK counts USING kafka KEY (since, k) OPTIONS (servers '${servers}', topic '${counts}');
CREATE SINK copies USING kafka OPTIONS (servers '${servers}', topic '${copies}');
CREATE SINK files USING parquet OPTIONS (path 'files');
INSERT INTO counts CHECKPOINT 'counts' OUTPUT MODE UPDATE
  SELECT date_format(window.start, 'HH:mm') AS since, k, count(*) AS n, sum(n) AS total FROM s
  GROUP BY window(ts, '1 minute'), k;
INSERT INTO copies CHECKPOINT 'copies' SELECT n, _partition AS p, _offset AS at FROM s;
INSERT INTO files CHECKPOINT 'copied' SELECT n, _partition AS p, _offset AS at FROM s;
"""


@pytest.mark.usefixtures("processes")
def test_a_killed_console_loses_nothing_and_counts_nothing_twice(kafka: Broker, tmp_path: Path) -> None:
    """kill -9 in the middle of a micro-batch; then all of it is there, by key just once."""
    messages = []
    for i in range(MESSAGES):  # in order of event time in both partitions, so that none is late
        event = {"k": f"k{i % KEYS}", "n": i, "ts": f"2024-01-01T00:{i // 60:02}:{i % 60:02}"}
        messages.append(Message(json.dumps(event), partition=i % 2))
    topic, counts, copies = kafka.topic(*messages, partitions=2), kafka.topic(), kafka.topic()
    names = {"servers": kafka.servers, "topic": topic, "counts": counts, "copies": copies}
    (tmp_path / "run.sql").write_text(SCRIPT)
    defined = [word for name, value in names.items() for word in ("-D", f"{name}={value}")]

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command(*defined, "run.sql"),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def under_way(checkpoint: str, batch: int) -> Callable[[], bool]:
        """Whether a micro-batch is written down and not yet done."""
        folder = tmp_path / checkpoint

        def look() -> bool:
            begun = {int(f.name) for f in (folder / "offsets").glob("[0-9]*")}
            done = {int(f.name) for f in (folder / "commits").glob("[0-9]*")}
            return any(b >= batch for b in begun - done)

        return look

    for checkpoint, batch in (("copied", 1),):
        process = start()
        wait_until(under_way(checkpoint, batch), process, f"micro-batch {batch} of {checkpoint}")
        os.killpg(process.pid, signal.SIGKILL)  # the console and its Spark
        process.communicate(timeout=60)

    def numbers() -> dict[bytes | str | None, tuple[int, int]]:
        return {m.key: (v["n"], v["total"]) for m in kafka.read(counts) for v in [json.loads(m.value)]}  # type: ignore[arg-type]

    def parts() -> list[tuple[int, int]]:
        return [(v["p"], v["at"]) for m in kafka.read(copies) for v in [json.loads(m.value)]]  # type: ignore[arg-type]

    process = start()
    wait_until(
        lambda: sum(n for n, _ in numbers().values()) >= MESSAGES and len(set(parts())) >= MESSAGES,
        process,
        "all messages",
    )
    wait_until(lambda: len(exactly_once(tmp_path / "files")) >= MESSAGES, process, "all files")
    process.send_signal(signal.SIGTERM)
    _, words = process.communicate(timeout=120)
    assert process.returncode == 0, words
    assert "Traceback" not in words

    expected: Counter[tuple[str, str]] = Counter()
    totals: Counter[tuple[str, str]] = Counter()
    for i in range(MESSAGES):
        group = (f"00:{i // 60:02}", f"k{i % KEYS}")
        expected[group] += 1
        totals[group] += i
    got = {(k["since"], k["k"]): v for key, v in numbers().items() for k in [json.loads(key or b"")]}
    assert got == {group: (expected[group], totals[group]) for group in expected}
    produced = {(m.partition, m.offset) for m in kafka.read(topic)}
    assert set(parts()) == produced  # a copy may be there twice, under the same partition and offset
    assert sorted(exactly_once(tmp_path / "files")) == sorted(produced)  # files hold each just once


def exactly_once(folder: Path) -> list[tuple[int, int]]:
    """The (partition, offset) of all rows in a folder that a file sink wrote, by its log of what counts."""
    import pyarrow.parquet as parquet

    log = folder / "_spark_metadata"
    names = set()
    for entry in sorted(log.glob("[0-9]*")):
        for line in entry.read_text().splitlines()[1:]:
            names.add(json.loads(line)["path"].rpartition("/")[2])
    rows = []
    for name in names:
        table = parquet.read_table(folder / name)
        rows += list(zip(table["p"].to_pylist(), table["at"].to_pylist(), strict=True))
    return rows


def test_a_topic_to_write_into_that_is_not_there_is_said_at_once(kafka: Broker, console: Console) -> None:
    """Before the start, where Spark would learn it after a minute: the broker makes no topics by itself."""
    topic, copies = kafka.topic(*as_json(("ann", 1))), kafka.topic(name="copies-of-it")
    script = source(kafka, topic) + target(kafka, "copies-of-itt")
    console.run(script)
    for statement in (RUNNING, "INSERT INTO o SELECT 1 AS n;"):
        began = time.monotonic()
        error = said(console, statement)
        assert time.monotonic() - began < 5
        assert "error[MISSING_TOPIC]: Kafka has no topic copies-of-itt to write to" in error
        assert "its brokers do not create topics automatically" in error
        assert f"hint: did you mean {copies}?" in error
    assert console.rows("SHOW QUERIES;") == []
