"""Fields of Kafka's messages that are new, missing, moved or of another type while a query runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broker import Broker, Message
from conftest import Console, notes_of
from schemas import Registry
from slow.test_schema_registry import record, serialized
from test_kafka import source

from streamsql.errors import StreamsqlError
from streamsql.runtime.embedded.message_codecs import ProtobufKind

ROOMS = ("streamsql/features/alter_stream/", "streamsql/connectors/", "streamsql/runtime/embedded/")

FOLLOWED = "CREATE LIVE TABLE t AS SELECT * FROM s; AWAIT QUERY t IDLE;"
FAILS = None


def read_after(console: Console, kafka: Broker, stream: str, topic: str, *messages: Message) -> Any:
    """The rows of a query that runs while messages arrive; FAILS if it fails as malformed messages make it."""
    console.run(stream + FOLLOWED)
    kafka.produce(topic, messages)
    try:
        console.run("AWAIT QUERY t IDLE;")
    except StreamsqlError as fault:
        assert fault.code == "MALFORMED_MESSAGE", fault
        assert "ON MALFORMED SKIP" in fault.hint
        return FAILS
    return console.rows("SELECT * FROM t;")[1:]


TEXTS = {
    "json": {
        "new": ('{"a": 2, "b": "y", "c": 5}', [(2, "y")]),
        "missing": ('{"a": 2}', [(2, None)]),
        "moved": ('{"b": "y", "a": 2}', [(2, "y")]),
        "retyped": ('{"a": "two", "b": "y"}', FAILS),
        "too large": ('{"a": 3000000000, "b": "y"}', FAILS),
    },
    "csv": {
        "new": ("2,y,5", FAILS),
        "missing": ("2", FAILS),
        "moved": ("y,2", FAILS),
    },
}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("form", TEXTS)
def test_texts(kafka: Broker, console: Console, form: str) -> None:
    first = {"json": '{"a": 1, "b": "x"}', "csv": "1,x"}[form]
    for what, (text, rows) in TEXTS[form].items():
        topic = kafka.topic(first)
        stream = source(kafka, topic, "(a INT, b STRING)", f"FORMAT {form}")
        assert read_after(console, kafka, stream, topic, Message(text.encode())) == rows, what
        console.reset()


# ---- Avro -------------------------------------------------------------------------------------------


@pytest.fixture
def registry(packages: Callable[[str], None]) -> Iterator[Registry]:
    packages("avro")
    made = Registry()
    yield made
    made.stop()


CLICK = (("a", "int"), ("b", "string", ""))
NEW = (*CLICK, ("c", ["null", "long"], None))


def test_a_registry_tells_new_missing_moved_and_wider_fields(
    kafka: Broker, console: Console, registry: Registry
) -> None:
    topic = kafka.topic()

    def produce(fields: tuple[Any, ...], value: dict[str, Any]) -> None:
        kafka.produce(topic, serialized(registry, topic, record(*fields), value))

    def refreshed() -> tuple[str, ...]:
        result: Any = console.run("ALTER STREAM s REFRESH SCHEMA;")[-1]
        console.run("AWAIT QUERY t IDLE;")
        return (result.message, *notes_of(result))

    taken_up = "t goes on from the checkpoint: new columns are NULL in earlier rows"
    produce(CLICK, {"a": 1, "b": "x"})
    console.run(source(kafka, topic, "", schemaRegistry=registry.url) + FOLLOWED)
    assert refreshed() == ("the columns of s are as they were: a int, b string",)
    produce(NEW, {"a": 2, "b": "y", "c": 5})
    console.run("AWAIT QUERY t IDLE;")  # read by the schema of before
    assert refreshed() == ("stream s altered: c bigint added", taken_up)
    produce(tuple(reversed(NEW)), {"a": 3, "b": "z", "c": 6})
    console.run("AWAIT QUERY t IDLE;")
    rows = [(1, "x", None), (2, "y", None), (3, "z", 6)]
    assert console.rows("SELECT * FROM t ORDER BY a;") == rows
    # A field that is gone stays: both kinds of messages are read.
    without = (NEW[0], NEW[2])
    produce(without, {"a": 4, "c": 7})
    console.run("AWAIT QUERY t IDLE;")
    assert refreshed() == (
        "stream s altered: the schema of its messages",
        "b is no longer in the source of s: it stays, and is NULL where it is missing",
        taken_up,
    )
    assert refreshed()[0].startswith("the columns of s are as they were")
    produce(NEW, {"a": 5, "b": "back", "c": 8})
    produce(without, {"a": 6, "c": 9})
    console.run("AWAIT QUERY t IDLE;")
    rows += [(4, "", 7), (5, "back", 8), (6, None, 9)]
    assert console.rows("SELECT * FROM t ORDER BY a;") == rows
    # Avro reads no long as an int: the query fails until the stream has the wider type.
    produce((("a", "long"), *NEW[1:]), {"a": 3_000_000_000, "b": "w", "c": 10})
    with pytest.raises(StreamsqlError, match="does not fit: Schema mismatch: long is not int"):
        console.run("AWAIT QUERY t IDLE;")
    assert refreshed() == ("stream s altered: a int → bigint", taken_up)
    assert console.rows("SELECT * FROM t ORDER BY a;") == [*rows, (3_000_000_000, "w", 10)]


@pytest.mark.slow
def test_a_registry_and_declared_columns(kafka: Broker, console: Console, registry: Registry) -> None:
    topic = kafka.topic()
    kafka.produce(topic, serialized(registry, topic, record(*CLICK), {"a": 1, "b": "x"}))
    console.run(source(kafka, topic, "(a INT, b STRING)", schemaRegistry=registry.url) + FOLLOWED)
    kafka.produce(topic, serialized(registry, topic, record(*NEW), {"a": 2, "b": "y", "c": 5}))
    [refreshed] = console.run("ALTER STREAM s REFRESH SCHEMA;")
    assert notes_of(refreshed)[0] == (
        "the schema of s has new fields, which it does not declare: c; ALTER STREAM s ADD COLUMN c … adds one"
    )
    console.run("AWAIT QUERY t IDLE; ALTER STREAM s ADD COLUMN c BIGINT;")
    statement = "ALTER STREAM s ADD COLUMN d INT;"
    with pytest.raises(StreamsqlError, match="the schema of the payload has no field d") as caught:
        console.run(statement)
    assert caught.value.span and statement[caught.value.span.start : caught.value.span.end] == "d"
    kafka.produce(topic, serialized(registry, topic, record(*NEW), {"a": 3, "b": "z", "c": 6}))
    console.run("AWAIT QUERY t IDLE;")
    assert console.rows("SELECT * FROM t ORDER BY a;") == [(1, "x", None), (2, "y", None), (3, "z", 6)]


@pytest.mark.slow
def test_avro_by_a_schema_that_is_given(
    kafka: Broker, console: Console, packages: Callable[[str], None]
) -> None:
    """Its messages do not say what they are: what does not fit byte by byte is malformed."""
    packages("avro")
    schema = '{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"b","type":"string"}]}'
    first = b"\x02\x02x"
    for what, (payload, rows) in {
        "the same": (b"\x04\x02y", [(2, "y")]),
        "new": (b"\x04\x02y\x0a", FAILS),
        "missing": (b"\x04", FAILS),
        "moved": (b"\x02y\x04", FAILS),
        "retyped": (b"\x06two\x02y", FAILS),
    }.items():
        topic = kafka.topic(Message(first))
        stream = source(kafka, topic, "(a INT, b STRING)", "FORMAT avro", avroSchema=schema)
        assert read_after(console, kafka, stream, topic, Message(payload)) == rows, what
        console.reset()


# ---- protobuf ---------------------------------------------------------------------------------------

Fields = tuple[tuple[str, int, str], ...]
RECORD: Fields = (("k", 1, "STRING"), ("n", 2, "INT32"))


def describe(path: Path, fields: Fields) -> None:
    """Write a descriptor file of a message shop.Record. A type with * is that of a list."""
    from google.protobuf import descriptor_pb2

    described = descriptor_pb2.FileDescriptorSet()
    file = described.file.add(name="r.proto", package="shop", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for inner in ("INT32", "INT64"):
        file.message_type.add(name=inner).field.add(
            name="x", number=1, type=getattr(kinds, f"TYPE_{inner}"), label=1
        )
    message = file.message_type.add(name="Record")
    for name, number, kind in fields:
        label = kinds.LABEL_REPEATED if kind.endswith("*") else kinds.LABEL_OPTIONAL
        if kind.startswith("."):
            message.field.add(name=name, number=number, type_name=kind, type=kinds.TYPE_MESSAGE, label=label)
        else:
            message.field.add(
                name=name, number=number, type=getattr(kinds, f"TYPE_{kind.rstrip('*')}"), label=label
            )
    path.write_bytes(described.SerializeToString())


def payload(path: Path, **values: Any) -> bytes:
    message: Any = ProtobufKind(str(path), "shop.Record").make()
    return bytes(message(**values).SerializeToString())


K = ("k", 1, "STRING")
WRITTEN: list[tuple[str, Fields, Fields, dict[str, Any], Any]] = [
    ("new", RECORD, (*RECORD, ("c", 3, "INT64")), {"k": "b", "n": 2, "c": 2**40}, {"k": "b", "n": 2}),
    ("new in front", (("k", 2, "STRING"),), (("c", 1, "INT64"), ("k", 2, "STRING")), {"k": "b", "c": 2**40}, {"k": "b"}),
    ("missing", RECORD, (K,), {"k": "b"}, {"k": "b", "n": 0}),
    ("moved", RECORD, tuple(reversed(RECORD)), {"k": "b", "n": 2}, {"k": "b", "n": 2}),
    ("renumbered", RECORD, (("k", 2, "STRING"), ("n", 1, "INT32")), {"k": "b", "n": 2}, None),
    ("a text", RECORD, (K, ("n", 2, "STRING")), {"k": "b", "n": "2"}, None),
    ("a double", RECORD, (K, ("n", 2, "DOUBLE")), {"k": "b", "n": 2.0}, None),
    ("a list", RECORD, (K, ("n", 2, "INT32*")), {"k": "b", "n": [1, 2]}, None),
    ("long, and fits", RECORD, (K, ("n", 2, "INT64")), {"k": "b", "n": -2}, {"k": "b", "n": -2}),
    ("long", RECORD, (K, ("n", 2, "INT64")), {"k": "b", "n": 3_000_000_000}, None),
    ("long of as many bytes", RECORD, (K, ("n", 2, "INT64")), {"k": "b", "n": 2**32 + 2**30}, None),
    ("long and negative", RECORD, (K, ("n", 2, "INT64")), {"k": "b", "n": -3_000_000_000}, None),
    ("unsigned", RECORD, (K, ("n", 2, "UINT32")), {"k": "b", "n": 4_000_000_000}, None),
    ("a number for a boolean", (K, ("n", 2, "BOOL")), (K, ("n", 2, "INT32")), {"k": "b", "n": 7}, None),
    ("longs in a list", (K, ("n", 2, "INT32*")), (K, ("n", 2, "INT64*")), {"k": "b", "n": [1, 2**33]}, None),
    ("fitting longs in a list", (K, ("n", 2, "INT32*")), (K, ("n", 2, "INT64*")), {"k": "b", "n": [1, -1]},
     {"k": "b", "n": [1, -1]}),
    ("a long inside", (K, ("n", 2, ".shop.INT32")), (K, ("n", 2, ".shop.INT64")), {"k": "b", "n": {"x": 2**40}}, None),
    ("a fitting long inside", (K, ("n", 2, ".shop.INT32")), (K, ("n", 2, ".shop.INT64")), {"k": "b", "n": {"x": 4}},
     {"k": "b", "n": {"x": 4}}),
]  # fmt: skip
"""What has changed, the fields that a reader knows, those of the writer, a message, and what is read of it."""


@pytest.mark.parametrize(
    ("read", "written", "values", "row"), [case[1:] for case in WRITTEN], ids=[case[0] for case in WRITTEN]
)
def test_protobuf_of_another_message_type(
    tmp_path: Path, read: Fields, written: Fields, values: dict[str, Any], row: Any
) -> None:
    describe(tmp_path / "read", read)
    describe(tmp_path / "written", written)
    names = {name for name, _, _ in read}
    kind = ProtobufKind(str(tmp_path / "read"), "shop.Record")
    assert kind.read(payload(tmp_path / "written", **values), names) == row
    # A column that the stream does not declare is of no matter.
    assert kind.read(payload(tmp_path / "written", **values), set()) == {}


def test_protobuf_messages_of_a_newer_type(kafka: Broker, console: Console, tmp_path: Path) -> None:
    file, newer = tmp_path / "record.desc", tmp_path / "newer.desc"
    describe(file, RECORD)
    describe(newer, (*RECORD, ("c", 3, "INT64")))
    topic = kafka.topic(Message(payload(file, k="a", n=1)))
    options = {"descriptorFile": str(file), "message": "shop.Record"}
    console.run(source(kafka, topic, "(k STRING, n INT)", "FORMAT protobuf", **options) + FOLLOWED)
    kafka.produce(topic, [Message(payload(newer, k="b", n=2, c=5))])
    statement = "ALTER STREAM s ADD COLUMN c BIGINT;"
    with pytest.raises(StreamsqlError, match="the message shop.Record has no field c") as caught:
        console.run(f"AWAIT QUERY t IDLE; {statement}")
    assert caught.value.hint == "fields: k, n"
    newer.rename(file)
    [altered] = console.run(statement)
    assert notes_of(altered)[-1].startswith("t goes on from the checkpoint")
    kafka.produce(topic, [Message(payload(file, k="c", n=3, c=6))])
    console.run("AWAIT QUERY t IDLE;")
    assert console.rows("SELECT * FROM t ORDER BY k;") == [("a", 1, None), ("b", 2, None), ("c", 3, 6)]
    describe(newer, (("k", 1, "STRING"), ("n", 2, "DOUBLE"), ("c", 3, "INT64")))
    kafka.produce(topic, [Message(payload(newer, k="d", n=4.0, c=7))])
    with pytest.raises(StreamsqlError, match="query t failed: malformed message") as caught:
        console.run("AWAIT QUERY t IDLE;")
    assert caught.value.code == "MALFORMED_MESSAGE"
