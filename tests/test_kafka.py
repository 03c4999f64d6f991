"""Kafka, with a real broker: what is read and written, in every format, and what goes wrong on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broker import PASSWORD, USER, Broker, Message
from conftest import Console, notes_of

from streamsql.errors import StreamsqlError
from streamsql.output.error_text import format_error
from streamsql.results import Text

ROOMS = ("streamsql/connectors/", "streamsql/runtime/")

ROWS = [("ann", 1), ("bob", 2)]
AVRO = '{"type":"record","name":"r","fields":[{"name":"k","type":"string"},{"name":"n","type":"int"}]}'


def source(
    kafka: Broker, topic: str, columns: str = "(k STRING, n INT)", clauses: str = "", **options: str
) -> str:
    """CREATE STREAM s over a topic. columns, clauses: what stands before and after USING kafka."""
    given = {"servers": kafka.servers} | ({"topic": topic} if topic else {}) | options
    listed = ", ".join(f"'{k}' '{v}'" for k, v in given.items())
    return f"CREATE OR REPLACE STREAM s {columns} USING kafka {clauses} OPTIONS ({listed});\n"


def target(kafka: Broker, topic: str, clauses: str = "", **options: str) -> str:
    """CREATE SINK o into a topic."""
    given = {"servers": kafka.servers} | ({"topic": topic} if topic else {}) | options
    listed = ", ".join(f"'{k}' '{v}'" for k, v in given.items())
    return f"CREATE OR REPLACE SINK o USING kafka {clauses} OPTIONS ({listed});\n"


def insert(select: str, head: str = "") -> str:
    """A query q into o that reads what is there and ends."""
    return f"INSERT INTO o AS QUERY q {head} TRIGGER AVAILABLE NOW {select};\nAWAIT QUERY q;\n"


def said(console: Console, script: str) -> str:
    """The error of a script as a person sees it."""
    with pytest.raises(StreamsqlError) as caught:
        console.run(script)
    return format_error(caught.value)


def as_json(*rows: tuple[Any, ...]) -> list[str]:
    return [json.dumps({"k": k, "n": n}) for k, n in rows]


# ---- through a window and back -----------------------------------------------------------


def test_one_topic_is_counted_by_window_into_another(kafka: Broker, console: Console) -> None:
    events = [("a", 0), ("b", 30), ("a", 50), ("a", 70), ("b", 400)]
    topic = kafka.topic(
        *(json.dumps({"k": k, "ts": f"2024-01-01T00:{s // 60:02}:{s % 60:02}"}) for k, s in events)
    )
    counts = kafka.topic()
    watermark = "WITH WATERMARK ts DELAY OF INTERVAL 1 MINUTE"
    console.run(
        source(kafka, topic, "(k STRING, ts TIMESTAMP)").replace(";", watermark + ";")
        + target(kafka, counts, "FORMAT json KEY (k)")
        + insert(
            "SELECT k, date_format(window.start, 'HH:mm') AS since, count(*) AS n FROM s"
            " GROUP BY window(ts, '1 minute'), k",
            "OUTPUT MODE APPEND",
        )
    )
    found = [(m.key, json.loads(m.value)) for m in kafka.read(counts)]
    assert sorted(found, key=str) == [
        (b"a", {"k": "a", "since": "00:00", "n": 2}),
        (b"a", {"k": "a", "since": "00:01", "n": 1}),
        (b"b", {"k": "b", "since": "00:00", "n": 1}),
    ]


@pytest.mark.slow
def test_newest_counts_by_key_in_update_mode(kafka: Broker, console: Console) -> None:
    topic, counts = kafka.topic(*as_json(("a", 1), ("b", 1), ("a", 1), ("a", 1))), kafka.topic()
    console.run(
        source(kafka, topic, maxOffsetsPerTrigger="2")
        + target(kafka, counts, "KEY (k)")
        + insert("SELECT k, count(*) AS n FROM s GROUP BY k", "OUTPUT MODE UPDATE")
    )
    newest = {m.key: json.loads(m.value)["n"] for m in kafka.read(counts)}
    assert newest == {b"a": 3, b"b": 1}
    assert len(kafka.read(counts)) == 3  # a and b, then a again


# ---- formats -----------------------------------------------------------------------------


@pytest.fixture
def description(tmp_path: Path) -> Path:
    """A protobuf description, as `protoc --include_imports -o` writes it."""
    from google.protobuf import descriptor_pb2

    described = descriptor_pb2.FileDescriptorSet()
    file = described.file.add(name="r.proto", package="shop", syntax="proto3")
    record = file.message_type.add(name="Record")
    kind = descriptor_pb2.FieldDescriptorProto
    record.field.add(name="k", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    record.field.add(name="n", number=2, type=kind.TYPE_INT32, label=kind.LABEL_OPTIONAL)
    path = tmp_path / "record.desc"
    path.write_bytes(described.SerializeToString())
    return path


# Format → its options, and the payload of ('ann', 1) byte by byte.
FORMATS = {
    "json": ({}, b'{"k":"ann","n":1}'),
    "csv": ({}, b"ann,1"),
    "avro": ({"avroSchema": AVRO}, b"\x06ann\x02"),
    "protobuf": ({"descriptorFile": "", "message": "shop.Record"}, b"\x0a\x03ann\x10\x01"),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_columns_go_through_a_format_and_back(
    kafka: Broker, console: Console, packages: Callable[[str], None], description: Path, form: str
) -> None:
    if form == "avro":
        packages("avro")
    options, payload = FORMATS[form]
    if form == "protobuf":
        options = options | {"descriptorFile": str(description)}
    topic, again = kafka.topic(Message(payload)), kafka.topic()
    # From bytes that Spark has not made …
    assert console.rows(
        source(kafka, topic, clauses=f"FORMAT {form}", **options) + "SELECT k, n FROM s;"
    ) == [("ann", 1)]
    # … into bytes that any other program can read.
    console.run(target(kafka, again, f"FORMAT {form}", **options) + insert("SELECT k, n FROM s"))
    assert [m.value for m in kafka.read(again)] == [payload]


@pytest.mark.slow
def test_an_avro_schema_out_of_a_file_tells_the_columns(
    kafka: Broker, console: Console, packages: Callable[[str], None], tmp_path: Path
) -> None:
    packages("avro")
    (tmp_path / "r.avsc").write_text(AVRO)
    # As a schema registry's clients write; the second is cut off.
    topic = kafka.topic(*map(Message, (b"\x00\x00\x00\x00\x07\x06ann\x02", b"\x00\x00\x00\x00\x07\x06an")))
    script = source(
        kafka, topic, "", "FORMAT avro", avroSchemaFile=str(tmp_path / "r.avsc"), wireFormat="confluent"
    )
    assert "malformed message" in said(console, script + "SELECT * FROM s;")
    script = script.replace(");", ") ON MALFORMED SKIP;")
    assert console.rows(script + "SELECT * FROM s;") == [("ann", 1)]


@pytest.mark.slow
def test_text_and_raw_are_one_column(kafka: Broker, console: Console) -> None:
    topic, again = kafka.topic("one", Message(b"\xff\x00")), kafka.topic()
    assert console.rows(source(kafka, topic, "", "FORMAT text") + "SELECT value FROM s LIMIT 1;") == [
        ("one",)
    ]
    console.run(
        source(kafka, topic, "", "FORMAT raw")
        + target(kafka, again, "FORMAT raw")
        + insert("SELECT value FROM s")
    )
    assert [m.value for m in kafka.read(again)] == [b"one", b"\xff\x00"]
    console.run("DROP QUERY q;" + target(kafka, again, "FORMAT text") + "INSERT INTO o VALUES ('three');")
    assert kafka.read(again)[-1].value == b"three"


# ---- fields of the messages --------------------------------------------------------------


@pytest.mark.slow
def test_fields_of_a_message_are_there_to_be_named(kafka: Broker, console: Console) -> None:
    topic = kafka.topic(
        Message(
            '{"k":"x","n":1}', "one", [("h", b"1"), ("h", b"2")], timestamp=1_704_067_200_000, partition=1
        ),
        partitions=2,
    )
    console.run(source(kafka, topic))
    assert console.rows("SELECT * FROM s;") == [("x", 1)]
    select = (
        "SELECT k, _key, _topic, _partition, _offset, CAST(_timestamp AS STRING),"
        " transform(_headers, h -> CAST(h.value AS STRING)) FROM s;"
    )
    assert console.rows(select) == [("x", "one", topic, 1, 0, "2024-01-01 00:00:00", ["1", "2"])]
    assert console.rows("SELECT n FROM s WHERE _key = 'one' AND _partition = 1;") == [(1,)]


@pytest.mark.slow
def test_a_query_may_say_key_topic_and_headers_of_what_it_writes(kafka: Broker, console: Console) -> None:
    topic = kafka.topic(*as_json(*ROWS))
    odd, even = kafka.topic(), kafka.topic()
    console.run(
        source(kafka, topic)
        + target(kafka, "")
        + insert(
            f"SELECT n, upper(k) AS _key, if(n % 2 = 0, '{even}', '{odd}') AS _topic,"
            " array(named_struct('key', 'from', 'value', CAST(_topic AS BINARY))) AS _headers FROM s"
        )
    )
    for place, key, n in ((odd, b"ANN", 1), (even, b"BOB", 2)):
        [message] = kafka.read(place)
        assert (message.key, json.loads(message.value)) == (key, {"n": n})
        assert message.headers == [("from", topic.encode())]


# ---- which messages ----------------------------------------------------------------------


@pytest.mark.slow
def test_topics_by_list_by_pattern_and_by_partition(kafka: Broker, console: Console) -> None:
    name = kafka.topic("1")
    kafka.topic("2", name=f"{name}-b")
    kafka.topic(Message("3", partition=0), Message("4", partition=1), name=f"{name}-c", partitions=2)
    for options, expected in (
        ({"topic": f"{name},{name}-b"}, ["1", "2"]),
        ({"subscribe": name}, ["1"]),
        ({"subscribePattern": f"{name}-.*"}, ["2", "3", "4"]),
        ({"assign": json.dumps({f"{name}-c": [1]})}, ["4"]),
    ):
        found = console.rows(
            source(kafka, options.pop("topic", ""), "", "FORMAT text", **options) + "SELECT value FROM s;"
        )
        assert sorted(v for (v,) in found) == expected, options


@pytest.mark.slow
def test_where_a_query_begins(kafka: Broker, console: Console) -> None:
    second = 1_704_067_200_000
    topic = kafka.topic(*(Message(str(i), timestamp=second + i * 1000) for i in range(5)))
    created = console.run(source(kafka, topic, "", "FORMAT text"))[-1]
    assert "startingOffsets 'latest'" in " ".join(notes_of(created))
    for options, expected in (
        ({}, 5),
        ({"startingOffsets": "latest"}, 0),
        ({"startingOffsets": json.dumps({topic: {"0": 3}})}, 2),
        ({"startingTimestamp": str(second + 1000)}, 4),
    ):
        script = source(kafka, topic, "", "FORMAT text", **options)
        found = console.run(script)[-1]
        assert bool(options) != bool(notes_of(found)), options  # the note is for those who say nothing
        assert len(console.rows("SELECT value FROM s;")) == expected, options


def test_so_many_messages_in_a_micro_batch(kafka: Broker, console: Console) -> None:
    topic, copies = kafka.topic(*as_json(*ROWS, *ROWS)), kafka.topic()
    console.run(
        source(kafka, topic, maxOffsetsPerTrigger="3") + target(kafka, copies) + insert("SELECT * FROM s")
    )
    batches = console.session.parts.queries.all["q"].progress(10)
    assert [b["numInputRows"] for b in batches if b["numInputRows"]] == [3, 1]
    assert len(kafka.read(copies)) == 4


@pytest.mark.slow
def test_a_table_over_a_topic_reads_it_as_it_is_now(kafka: Broker, console: Console) -> None:
    """A table of Spark's, with an end: endingOffsets is for reading once."""
    topic = kafka.topic("a", "b", "c")
    ends = json.dumps({topic: {"0": 2}})
    console.run(
        f"CREATE TABLE t USING kafka OPTIONS ('kafka.bootstrap.servers' '{kafka.servers}',"
        f" subscribe '{topic}', endingOffsets '{ends}');"
    )
    assert console.rows("SELECT CAST(value AS STRING) FROM t ORDER BY offset;") == [("a",), ("b",)]


# ---- login -------------------------------------------------------------------------------


def login(password: str) -> dict[str, str]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{module} required username="{USER}" password="{password}";',
    }


def test_a_login_lets_in_and_is_never_shown(kafka: Broker, console: Console) -> None:
    topic, copies = kafka.topic(*as_json(*ROWS)), kafka.topic()
    options = login(PASSWORD) | {"servers": kafka.sasl_servers}
    console.run(
        source(kafka, topic, **options) + target(kafka, copies, **options) + insert("SELECT * FROM s")
    )
    assert len(kafka.read(copies)) == 2
    shown = []
    for statement in (
        "SHOW CREATE STREAM s;",
        "SHOW CREATE SINK o;",
        "DESCRIBE STREAM s;",
        "DESCRIBE SINK o;",
        "DESCRIBE QUERY q;",
        "EXPLAIN SELECT * FROM s;",
        "EXPLAIN PYSPARK INSERT INTO o SELECT * FROM s;",
        "SHOW STREAMS;",
        "SHOW SINKS;",
        "SHOW QUERIES EXTENDED;",
    ):
        result = console.run(statement)[-1]
        shown.append(result.text if isinstance(result, Text) else str(getattr(result, "rows", result)))
    assert PASSWORD not in "\n".join(shown)
    assert "***" in shown[0]


@pytest.mark.slow
def test_a_wrong_login_is_refused_in_plain_words(kafka: Broker, console: Console) -> None:
    topic = kafka.topic("x")
    options = login("not-" + PASSWORD) | {"servers": kafka.sasl_servers}
    error = said(console, source(kafka, topic, "", "FORMAT text", **options) + "SELECT * FROM s;")
    assert "Kafka refuses the login" in error
    assert "Invalid username or password" in error
    assert PASSWORD not in error


# ---- payloads that cannot be read --------------------------------------------------------

GOOD_AND_BAD = ('{"k":"ann","n":1}', "no json", '{"k":"bob","n":"many"}', '{"k":"cid","n":3}')


@pytest.mark.slow
def test_a_malformed_message_ends_the_query(kafka: Broker, console: Console) -> None:
    topic, copies = kafka.topic(*GOOD_AND_BAD), kafka.topic()
    for clause in ("", "ON MALFORMED FAIL"):
        script = source(kafka, topic, clauses=clause) + target(kafka, copies) + insert("SELECT * FROM s")
        error = said(console, script)
        assert f"malformed message in topic {topic}, partition 0, offset 1: no json" in error
        console.run("DROP QUERY q;")


def test_malformed_messages_are_skipped_and_counted(kafka: Broker, console: Console) -> None:
    topic, copies = kafka.topic(*GOOD_AND_BAD), kafka.topic()
    console.run(
        source(kafka, topic, clauses="ON MALFORMED SKIP") + target(kafka, copies) + insert("SELECT * FROM s")
    )
    assert [json.loads(m.value)["k"] for m in kafka.read(copies)] == ["ann", "cid"]
    assert ("malformed", 2) in [r[:2] for r in console.rows("DESCRIBE QUERY q;")]
    assert console.rows("SELECT count(*) FROM s;") == [(2,)]


@pytest.mark.slow
def test_malformed_messages_go_into_a_sink(kafka: Broker, console: Console) -> None:
    topic, copies, letters = kafka.topic(*GOOD_AND_BAD), kafka.topic(), kafka.topic()
    dead = target(kafka, letters).replace("SINK o", "SINK dead")
    console.run(
        dead
        + source(kafka, topic, clauses="ON MALFORMED INTO dead")
        + target(kafka, copies)
        + insert("SELECT * FROM s")
        + "AWAIT QUERY s_malformed;"
    )
    assert [json.loads(m.value)["k"] for m in kafka.read(copies)] == ["ann", "cid"]
    found = [json.loads(m.value) for m in kafka.read(letters)]
    assert [(f["payload"]) for f in found] == [GOOD_AND_BAD[1], GOOD_AND_BAD[2]]


# ---- triggers ----------------------------------------------------------------------------


def test_a_micro_batch_does_not_wait_for_more_messages(kafka: Broker, console: Console) -> None:
    topic, waits, many = kafka.topic(), '"kafka.fetch.max.wait.ms"', '"kafka.max.poll.records", "20000"'

    def program(trigger: str = "", **options: str) -> str:
        console.run(source(kafka, topic, **options) + target(kafka, topic))
        shown = console.run(f"EXPLAIN PYSPARK INSERT INTO o {trigger} SELECT * FROM s;")[-1]
        assert isinstance(shown, Text)
        return shown.text

    assert f'{waits}, "1"' in program() and many in program()
    given = program(**{"kafka.Fetch.Max.Wait.ms": "200"})
    assert waits not in given and many in given
    real_time = program("OUTPUT MODE UPDATE TRIGGER REAL TIME EVERY INTERVAL 5 SECONDS")
    assert waits not in real_time and many not in real_time


@pytest.mark.slow
@pytest.mark.parametrize(
    "trigger", ["REAL TIME EVERY INTERVAL 5 SECONDS", "CONTINUOUS EVERY INTERVAL 1 SECOND"]
)
def test_from_topic_to_topic_without_micro_batches(
    kafka: Broker, console: Console, eventually: Callable[..., None], trigger: str
) -> None:
    topic, copies = kafka.topic(*as_json(*ROWS)), kafka.topic()
    mode = "OUTPUT MODE UPDATE" if "REAL" in trigger else ""
    started = console.run(
        source(kafka, topic)
        + target(kafka, copies, "KEY (k)")
        + f"INSERT INTO o AS QUERY q {mode} TRIGGER {trigger} SELECT k, n + 1 AS n FROM s;"
    )[-1]
    note = "state store of this query: RocksDB, which real-time mode needs"
    assert (note in notes_of(started)) == ("REAL" in trigger)
    eventually(lambda: len(kafka.read(copies)) == 2)
    kafka.produce(topic, as_json(("cid", 3)))
    eventually(lambda: len(kafka.read(copies)) == 3)
    assert {m.key: json.loads(m.value)["n"] for m in kafka.read(copies)} == {b"ann": 2, b"bob": 3, b"cid": 4}
    told = dict(console.rows("DESCRIBE QUERY q;")).get("checkpointed", "")
    assert told.startswith("asynchronously, every 5 seconds") == ("REAL" in trigger)


# ---- low latency -------------------------------------------------------------------------


@pytest.mark.slow
def test_progress_is_tracked_asynchronously_if_the_sink_says_so(
    kafka: Broker, console: Console, tmp_path: Path
) -> None:
    topic, copies = kafka.topic(*as_json(("a", 0))), kafka.topic()

    def tracked(**options: str) -> str:
        return source(kafka, topic) + target(kafka, copies, asyncProgressTrackingEnabled="true", **options)

    def write(*numbers: int) -> None:
        for number in numbers:
            kafka.produce(topic, as_json(("a", number)))
            console.run("AWAIT QUERY q IDLE;")

    query = f"INSERT INTO o AS QUERY q CHECKPOINT '{tmp_path / 'kept'}' SELECT n FROM s;"
    console.run(tracked(asyncProgressTrackingCheckpointIntervalMs="600000") + query)
    write(1, 2, 3)
    told = dict(console.rows("DESCRIBE QUERY q;"))
    assert told["checkpointed"] == (
        "asynchronously, at most every 600,000 milliseconds;"
        " what was written since is written again after a failure"
    )
    console.run("STOP QUERY q; START QUERY q;")
    write(4, 5)
    console.run("STOP QUERY q;")
    rows = [json.loads(m.value)["n"] for m in kafka.read(copies)]
    assert set(rows) == set(range(6)) and len(rows) > 6  # the progress of 1 to 3 was not recorded
    console.run("DROP QUERY q;" + tracked(asyncProgressTrackingCheckpointIntervalMs="2000") + query)
    for _ in range(200):
        write(6)
        *_, before, newest = (batch for batch, *_ in console.rows("SHOW BATCHES OF QUERY q;"))
        if newest - before > 1:
            break
    console.run("STOP QUERY q;")
    console.run("DROP QUERY q;")
    synchronous = source(kafka, topic) + target(kafka, copies) + query
    shown = said(console, synchronous)
    assert "the checkpoint of q can only be resumed with asynchronous progress tracking" in shown
    assert f"does not record micro-batch {newest - 1}" in shown
    # What the hint says.
    console.run(tracked(asyncProgressTrackingCheckpointIntervalMs="0") + query)
    write(7, 7)
    assert dict(console.rows("DESCRIBE QUERY q;"))["checkpointed"].startswith("asynchronously; what")
    console.run("STOP QUERY q; DROP QUERY q;" + synchronous)
    write(8)
    assert "checkpointed" not in dict(console.rows("DESCRIBE QUERY q;"))
    console.run("STOP QUERY q; DROP QUERY q;")
    assert {json.loads(m.value)["n"] for m in kafka.read(copies)} == set(range(9))
