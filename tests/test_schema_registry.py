"""Avro messages of Kafka by a schema registry: read, written, and what goes wrong on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from broker import Broker, Message
from conftest import Console
from schemas import Registry
from test_kafka import insert, said, source, target
from test_preview import look, taken

from streamsql.results import Text

LOGIN = "ann:open-sesame"


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def avro(packages: Any) -> None:
    packages("avro")


def record(*fields: Any, name: str = "Click") -> dict[str, Any]:
    """An Avro record of fields: (name, type) or (name, type, default)."""
    keys = ("name", "type", "default")
    return {"type": "record", "name": name, "fields": [dict(zip(keys, f, strict=False)) for f in fields]}


def serialized(registry: Registry, topic: str, schema: object, *values: Any) -> list[Message]:
    """Values as messages, made by Confluent's own serializer."""
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    with SchemaRegistryClient({"url": registry.url}) as client:
        write = AvroSerializer(client, json.dumps(schema))
        return [Message(write(v, SerializationContext(topic, MessageField.VALUE))) for v in values]


def deserialized(kafka: Broker, registry: Registry, topic: str) -> list[Any]:
    """All values of a topic, read by Confluent's own deserializer."""
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    with SchemaRegistryClient({"url": registry.url}) as client:
        read = AvroDeserializer(client)
        return [read(m.value, SerializationContext(topic, MessageField.VALUE)) for m in kafka.read(topic)]


EVERYTHING = record(
    ("text", "string"),
    ("maybe", ["null", "long"], None),
    ("small", "int"),
    ("exact", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    ("day", {"type": "int", "logicalType": "date"}),
    ("millis", {"type": "long", "logicalType": "timestamp-millis"}),
    ("micros", ["null", {"type": "long", "logicalType": "timestamp-micros"}], None),
    ("local", {"type": "long", "logicalType": "local-timestamp-micros"}),
    ("id", {"type": "string", "logicalType": "uuid"}),
    ("raw", "bytes"),
    ("mood", {"type": "enum", "name": "Mood", "symbols": ["GOOD", "BAD"]}),
    ("place", record(("city", "string"), ("at", ["null", {"type": "array", "items": "double"}]), name="Place")),
    ("tags", {"type": "array", "items": ["null", "string"]}),
    ("counts", {"type": "map", "values": "long"}),
    ("either", ["int", "string"]),
)
VALUE = {
    "text": "ann",
    "maybe": 7,
    "small": 1,
    "exact": Decimal("12.50"),
    "day": date(2024, 5, 1),
    "millis": datetime(2024, 5, 1, 12, 0, 0, 5000, tzinfo=UTC),
    "micros": datetime(2024, 5, 1, 12, 0, 0, 5, tzinfo=UTC),
    "local": datetime(2024, 5, 1, 12),
    "id": "6f2bfe4a-0c0d-4d8e-8b3e-1d1c8c5c7c11",
    "raw": b"\x00\xff",
    "mood": "BAD",
    "place": {"city": "Oslo", "at": [59.5, 10.5]},
    "tags": ["a", None],
    "counts": {"x": 1},
    "either": "two",
}


def test_every_type_comes_in_and_goes_out(kafka: Broker, console: Console, registry: Registry) -> None:
    topic, copies = kafka.topic(), kafka.topic()
    nothing = VALUE | {"maybe": None, "micros": None, "place": {"city": "", "at": None}, "either": 2}
    kafka.produce(topic, serialized(registry, topic, EVERYTHING, VALUE, nothing))
    created = console.run(source(kafka, topic, "", schemaRegistry=registry.url))[-1]
    assert created.notes[0] == (
        "columns of s, as inferred and kept: text string, maybe bigint, small int, exact decimal(9,2), "
        "day date, millis timestamp, micros timestamp, local timestamp_ntz, id string, raw binary, mood string, "
        "place struct<city:string,at:array<double>>, tags array<string>, counts map<string,bigint>, "
        "either struct<member0:int,member1:string>"
    )
    assert console.rows("SELECT text, maybe, millis, place.at, either FROM s ORDER BY maybe NULLS LAST;") == [
        ("ann", 7, datetime(2024, 5, 1, 12, 0, 0, 5000), [59.5, 10.5], (None, "two")),
        ("ann", None, datetime(2024, 5, 1, 12, 0, 0, 5000), None, (2, None)),
    ]
    # What the console writes, in a schema that it makes of the columns, Confluent's reader reads the same.
    console.run(
        target(kafka, copies, "KEY (text)", schemaRegistry=registry.url) + insert("SELECT * EXCEPT (either) FROM s")
    )
    for value in (VALUE, nothing):
        value.pop("either")
    assert deserialized(kafka, registry, copies) == [VALUE, nothing]
    assert kafka.read(copies)[0].key == b"ann"
    assert kafka.read(copies)[0].value[:1] == b"\0"
    fields = {f["name"]: f for f in registry.newest(f"{copies}-value")["fields"]}
    assert fields["maybe"] == {"name": "maybe", "type": ["null", "long"], "default": None}
