"""Avro messages of Kafka by a schema registry: read, written, and what goes wrong on the way."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from broker import Broker, Message
from conftest import ROOT, Console, notes_of
from previews import look, taken
from schemas import Registry
from test_kafka import insert, said, source, target

from streamsql.results import Text
from streamsql.runtime.embedded.registry_codecs import SchemaRegistry

ROOMS = ("streamsql/connectors/", "streamsql/runtime/embedded/", "streamsql/runtime/preflight/")

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
    (
        "place",
        record(("city", "string"), ("at", ["null", {"type": "array", "items": "double"}]), name="Place"),
    ),
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
    assert notes_of(created)[-1] == (
        "columns of s, as inferred and recorded: text string, maybe bigint, small int, exact decimal(9,2), "
        "day date, millis timestamp, micros timestamp, local timestamp_ntz, id string, raw binary, mood string, "
        "place struct<city:string,at:array<double>>, tags array<string>, counts map<string,bigint>, "
        "either struct<member0:int,member1:string>"
    )
    assert console.rows("SELECT text, maybe, millis, place.at, either FROM s;") == [
        ("ann", 7, datetime(2024, 5, 1, 12, 0, 0, 5000), [59.5, 10.5], {"member0": None, "member1": "two"}),
        ("ann", None, datetime(2024, 5, 1, 12, 0, 0, 5000), None, {"member0": 2, "member1": None}),
    ]
    # What the console writes, in a schema that it makes of the columns, Confluent's reader reads the same.
    console.run(
        target(kafka, copies, "KEY (text)", schemaRegistry=registry.url)
        + insert("SELECT * EXCEPT (either) FROM s")
    )
    for value in (VALUE, nothing):
        value.pop("either")
    assert deserialized(kafka, registry, copies) == [VALUE, nothing]
    assert kafka.read(copies)[0].key == b"ann"
    assert kafka.read(copies)[0].value[:1] == b"\0"
    fields = {f["name"]: f for f in registry.newest(f"{copies}-value")["fields"]}
    assert fields["maybe"] == {"name": "maybe", "type": ["null", "long"], "default": None}


def test_older_and_newer_messages_are_read_by_the_schema_of_create(
    kafka: Broker, console: Console, registry: Registry
) -> None:
    topic = kafka.topic()
    first = record(("user", "string"), ("old", "int"), ("n", "int"))
    second = record(("user", "string"), ("n", "long"), ("city", "string", "nowhere"))
    third = record(("user", "string"), ("n", "long"), ("city", "string", "nowhere"), ("more", "int", 0))
    kafka.produce(topic, serialized(registry, topic, first, {"user": "ann", "old": 5, "n": 1}))
    kafka.produce(topic, serialized(registry, topic, second, {"user": "bob", "n": 2, "city": "Oslo"}))
    console.run(source(kafka, topic, "", schemaRegistry=registry.url))
    kafka.produce(
        topic, serialized(registry, topic, third, {"user": "cid", "n": 3, "city": "Bergen", "more": 9})
    )
    rows = [("ann", 1, "nowhere"), ("bob", 2, "Oslo"), ("cid", 3, "Bergen")]
    assert console.rows("SELECT * FROM s;") == rows
    # Declared columns are some of the schema's, in types that it fits into; the newest schema counts.
    console.run(source(kafka, topic, "(n DECIMAL(5, 1), more INT)", schemaRegistry=registry.url))
    found = console.rows("SELECT * FROM s;")
    assert found == [(Decimal(1), 0), (Decimal(2), 0), (Decimal(3), 9)]
    # What SHOW CREATE gives needs no registry: the schema is in it.
    [made] = console.run("SHOW CREATE STREAM s;")
    assert isinstance(made, Text)
    console.run("DROP STREAM s;")
    asked = len(registry.asked)
    console.run(made.text)
    assert len(registry.asked) == asked
    assert console.rows("SELECT * FROM s;") == found


def test_a_worker_asks_once_for_each_schema(kafka: Broker, console: Console, registry: Registry) -> None:
    topic = kafka.topic()
    values = [{"user": "ann", "n": i} for i in range(3)]
    kafka.produce(topic, serialized(registry, topic, record(("user", "string"), ("n", "int")), *values))
    console.run(
        source(kafka, topic, "", schemaRegistry=registry.url, maxOffsetsPerTrigger="1")
        + "CREATE LIVE TABLE t AS SELECT * FROM s; AWAIT QUERY t IDLE;"
    )
    assert sorted(console.rows("SELECT n FROM t;")) == [(0,), (1,), (2,)]
    # The driver at CREATE, and the workers (two at most) that read three micro-batches.
    assert 1 <= registry.asked.count("GET /schemas/ids/1") <= 2
    assert registry.asked.count(f"GET /subjects/{topic}-value/versions/latest") == 1


def test_a_schema_may_refer_to_others(kafka: Broker, console: Console, registry: Registry) -> None:
    topic = kafka.topic()
    place = record(("city", "string"), name="Place") | {"namespace": "shop"}
    refers = [{"name": "shop.Place", "subject": "place", "version": 1}]
    registry.register("place", place)
    order = record(("at", "shop.Place"), ("to", ["null", "shop.Place"], None), name="Order")
    number = registry.register(f"{topic}-value", order | {"namespace": "shop"}, refers)
    head = b"\0" + number.to_bytes(4, "big")
    kafka.produce(topic, [Message(head + b"\x08Oslo\x02\x0cBergen")])
    console.run(source(kafka, topic, "", schemaRegistry=registry.url))
    assert console.rows("SELECT at.city, to.city FROM s;") == [("Oslo", "Bergen")]


BAD = {
    b"no magic": "it does not start with the header of a schema registry message",
    b"\0\0\0": "it does not start with the header of a schema registry message",
    b"\0\0\0\x03\xe7\x02": "the schema registry has no schema 999",
    b"\0\0\0\0\x03\x02": "schema 3 is not Avro",
    b"\0\0\0\0\x02\x06ann\x02": "schema 2 does not fit: No default value for field n in Click",
    b"\0\0\0\0\x01\x06an": None,  # that is for Spark to find out: it is in the reader's schema
}
FAIL, SKIP = "", " ON MALFORMED SKIP"


def reading(kafka: Broker, topic: str, registry: Registry, malformed: str = FAIL, **options: str) -> str:
    made = source(kafka, topic, "", schemaRegistry=registry.url, **options)
    return made.replace(");", f"){malformed};")


def test_what_cannot_be_read_is_malformed(kafka: Broker, console: Console, registry: Registry) -> None:
    topic, copies, letters = kafka.topic(), kafka.topic(), kafka.topic()
    schema = record(("k", "string"), ("n", "int"))
    good = serialized(registry, topic, schema, {"k": "ann", "n": 1})
    registry.register("other", record(("k", "string"), ("m", "int")))
    registry.register("third", {"type": "object"}, kind="JSON")
    asked, unknown = SchemaRegistry(registry.url), dict[int, str]()
    for payload, why in BAD.items():
        found = asked.resolved(payload, json.dumps(schema), None, unknown)
        assert found.get("fault") == why, payload
    kafka.produce(topic, [*good, Message(None), *map(Message, BAD)])
    console.run(
        target(kafka, letters).replace("SINK o", "SINK dead")
        + reading(kafka, topic, registry, " ON MALFORMED INTO dead")
        + target(kafka, copies)
        + insert("SELECT * FROM s")
        + "AWAIT QUERY s_malformed;"
    )
    assert ("malformed", len(BAD)) in [r[:2] for r in console.rows("DESCRIBE QUERY q;")]
    # A message without a payload is none that cannot be read.
    assert [json.loads(m.value or b"") for m in kafka.read(copies)] == [{"k": "ann", "n": 1}, {}]
    last = len(BAD) + 1
    assert [json.loads(m.value or b"")["_offset"] for m in kafka.read(letters)] == [*range(2, last + 1)]
    for offset, why in ((2, BAD[b"no magic"]), (last, "its bytes do not match schema 1")):
        only = json.dumps({topic: {"0": offset}})
        console.run("DROP QUERY q;" + reading(kafka, topic, registry, startingOffsets=only))
        error = said(console, insert("SELECT * FROM s"))
        assert f"malformed message in topic {topic}, partition 0, offset {offset}: {why}" in error


def test_a_registry_that_goes_away_is_no_malformed_message(
    kafka: Broker, console: Console, registry: Registry, eventually: Any
) -> None:
    """SKIP skips nothing then: the query ends, and goes on once the registry is there again."""
    topic, copies = kafka.topic(), kafka.topic()
    first, second = record(("n", "int")), record(("n", "int"), ("m", "int", 0))
    kafka.produce(topic, serialized(registry, topic, first, {"n": 1}))
    later = serialized(registry, topic, second, {"n": 2, "m": 1})
    retries = {"schemaRegistry.max.retries": "0"}
    console.run(
        reading(kafka, topic, registry, SKIP, **retries)
        + target(kafka, copies)
        + "INSERT INTO o AS QUERY q SELECT * FROM s;"
    )
    eventually(lambda: len(kafka.read(copies)) == 1)
    registry.stop()
    kafka.produce(topic, later)
    error = said(console, "AWAIT QUERY q;")
    assert (
        f"query q failed: the schema registry {registry.url} cannot be reached: [Errno 111] Connection refused"
        in error
    )
    # At START and CREATE it is said at once.
    for statement in (
        "START QUERY q;",
        reading(kafka, topic, registry),
        "INSERT INTO o AS QUERY r SELECT * FROM s;",
    ):
        began = time.monotonic()
        error = said(console, statement)
        assert time.monotonic() - began < 0.5
        assert "the schema registry of the stream s cannot be reached" in error
        assert f"{registry.url.removeprefix('http://')}: connection refused" in error


# ---- writing -----------------------------------------------------------------------------


ROWS = "CREATE STREAM v (k STRING, n INT) USING values; INSERT INTO v VALUES ('ann', 1), ('bob', NULL);\n"


def writing(kafka: Broker, topic: str, registry: Registry, **options: str) -> str:
    return target(kafka, topic, schemaRegistry=registry.url, **options)


def test_a_schema_is_registered_once_and_fits_what_is_there(
    kafka: Broker, console: Console, registry: Registry
) -> None:
    topic = kafka.topic()
    subject = f"{topic}-value"
    console.run(ROWS + writing(kafka, topic, registry) + insert("SELECT k FROM v"))
    console.run("DROP QUERY q;" + insert("SELECT k, n FROM v"))  # a column more, NULL in older messages
    assert deserialized(kafka, registry, topic) == [
        {"k": "ann"},
        {"k": "bob"},
        {"k": "ann", "n": 1},
        {"k": "bob", "n": None},
    ]
    posted = [a for a in registry.asked if a == f"POST /subjects/{subject}/versions"]
    assert len(registry.subjects[subject]) == 2
    assert len(posted) == 2  # before the start, and not for each row
    error = said(console, "DROP QUERY q;" + insert("SELECT n AS k FROM v"))
    assert f"the schema of the rows is not compatible with the subject {subject}" in error
    assert f'incompatible with an earlier schema for subject "{subject}"' in error
    assert "MISSING_UNION_BRANCH" in error
    assert console.rows("SHOW QUERIES;") == []
    console.run("INSERT INTO o SELECT 'cid' AS k, 3 AS n;")
    assert deserialized(kafka, registry, topic)[-1] == {"k": "cid", "n": 3}


def test_a_schema_of_ones_own_and_one_that_is_there(
    kafka: Broker, console: Console, registry: Registry
) -> None:
    topic = kafka.topic()
    subject = f"{topic}-value"
    own = record(("k", "string"), ("n", ["null", "long"], None), name="Mine") | {"namespace": "shop"}
    console.run(ROWS + writing(kafka, topic, registry, autoRegister="false"))
    error = said(console, insert("SELECT * FROM v"))
    assert f"the schema registry has no subject {subject}" in error
    console.run(writing(kafka, topic, registry, autoRegister="false", avroSchema=json.dumps(own)))
    registry.register(subject, record(("other", "int")))
    error = said(console, insert("SELECT * FROM v"))
    assert f"the subject {subject} does not have this schema, and autoRegister is false" in error
    registry.register(subject, own)
    rows = [{"k": "ann", "n": 1}, {"k": "bob", "n": None}]
    console.run(insert("SELECT * FROM v") + "DROP QUERY q;")
    # Without a schema of one's own it is the newest that is there.
    console.run(writing(kafka, topic, registry, autoRegister="false") + insert("SELECT * FROM v"))
    assert deserialized(kafka, registry, topic) == rows + rows
    assert not any("POST" in a and a.endswith("versions") for a in registry.asked)
    error = said(console, "DROP QUERY q;" + insert("SELECT k, n AS count FROM v"))
    assert "the Avro schema has no field count" in error
    assert "its fields: k, n" in error
    error = said(console, insert("SELECT n FROM v"))
    assert "the Avro schema needs a column k: string" in error
    console.run(writing(kafka, topic, registry, subject="elsewhere"))
    for column, why in (
        ("n AS `a-b`", "a-b is not a valid name in Avro"),
        ("INTERVAL 1 DAY AS i", "Avro cannot hold the column i"),
    ):
        assert f"{why}" in said(console, insert(f"SELECT {column} FROM v"))
    console.run(insert("SELECT k FROM v"))
    assert registry.newest("elsewhere")["name"] == "elsewhere"


def test_several_sinks_of_one_query(kafka: Broker, console: Console, registry: Registry) -> None:
    one, two = kafka.topic(), kafka.topic()
    console.run(
        ROWS + writing(kafka, one, registry) + writing(kafka, two, registry).replace("SINK o", "SINK p")
    )
    registry.register(f"{two}-value", record(("k", "int")))
    both = "INSERT INTO o, p AS QUERY q SELECT * FROM v; AWAIT QUERY q IDLE;"
    error = said(console, both)  # before anything starts
    assert f"the schema of the rows is not compatible with the subject {two}-value" in error
    registry.subjects[f"{two}-value"].clear()
    console.run(both + "INSERT INTO v VALUES ('cid', 3); AWAIT QUERY q IDLE;")
    for topic in (one, two):
        assert [r["k"] for r in deserialized(kafka, registry, topic)] == ["ann", "bob", "cid"]
    assert registry.asked.count(f"POST /subjects/{one}-value/versions") == 2  # not for each micro-batch


# ---- secrets, words, places --------------------------------------------------------------


def test_a_login_is_needed_and_never_shown(
    kafka: Broker, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(LOGIN)
    topic = kafka.topic()
    registry.register(f"{topic}-value", record(("k", "string")))
    try:
        key = "schemaRegistry.basic.auth.user.info"
        error = said(console, source(kafka, topic, "", schemaRegistry=registry.url))
        assert f"the schema registry {registry.url} refuses the login" in error
        assert "Unauthorized" in error
        wrong = said(
            console, source(kafka, topic, "", schemaRegistry=registry.url, **{key: "ann:not-sesame"})
        )
        assert "refuses the login" in wrong
        assert "not-sesame" not in wrong
        address = registry.url.replace("//", f"//{LOGIN}@")
        wrong = said(console, source(kafka, topic, "", schemaRegistry=address))
        assert "the address of a schema registry must not contain a login" in wrong
        assert LOGIN not in wrong
        login = {key: LOGIN}
        console.run(
            source(kafka, topic, "", schemaRegistry=registry.url, **login)
            + writing(kafka, kafka.topic(), registry, **login)
            + insert("SELECT * FROM s")
        )
        shown = []
        for statement in (
            "SHOW CREATE STREAM s;",
            "SHOW CREATE SINK o;",
            "DESCRIBE STREAM s;",
            "DESCRIBE SINK o;",
            "DESCRIBE QUERY q;",
            "EXPLAIN PYSPARK INSERT INTO o SELECT * FROM s;",
            "SHOW QUERIES EXTENDED;",
        ):
            result = console.run(statement)[-1]
            shown.append(result.text if isinstance(result, Text) else str(getattr(result, "rows", result)))
        assert "sesame" not in "\n".join(shown)
        assert f"{key} '***'" in shown[0]
        given = source(kafka, topic, "", schemaRegistry=registry.url, **{key: "${env:REGISTRY_LOGIN}"})
        assert "the environment has no variable REGISTRY_LOGIN" in said(console, given)
        monkeypatch.setenv("REGISTRY_LOGIN", LOGIN)
        console.run(given + "SELECT * FROM s;")
    finally:
        registry.stop()


def test_a_preview_asks_the_registry(kafka: Broker, console: Console, registry: Registry) -> None:
    topic = kafka.topic(name="clicks.avro")
    clock = {"type": "long", "logicalType": "timestamp-millis"}
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    schema = record(("user", "string"), ("at", clock))
    kafka.produce(
        topic, serialized(registry, topic, schema, {"user": "ann", "at": at}, {"user": "bob", "at": at})
    )
    options = f"OPTIONS (servers '{kafka.servers}', topic '{topic}', schemaRegistry '{registry.url}')"
    shown = look(console, f"PREVIEW USING kafka LIMIT 1 {options};")
    assert shown.columns[:2] == ("user", "at")
    assert [r[:2] for r in shown.rows] == [("ann", datetime(2024, 5, 1, 12))]
    assert shown.proposal == (
        f"CREATE STREAM clicks (user STRING, at TIMESTAMP)\n  USING kafka\n  FORMAT avro\n  {options}\n"
        "  WITH WATERMARK at DELAY '10 minutes';"
    )
    assert [r[0] for r in taken(console, shown)] == ["ann", "bob"]
    assert [r[0] for r in look(console, "PREVIEW clicks;").rows] == ["ann", "bob"]
    # Without it the bytes are seen for what they are.
    notes = notes_of(
        look(console, f"PREVIEW USING kafka OPTIONS (servers '{kafka.servers}', topic '{topic}');")
    )
    assert any("schemaRegistry 'http://host:8081' reads Avro" in n for n in notes)
    rows = {r[0]: r for r in console.rows("DESCRIBE CONNECTOR kafka;")}
    assert rows["schemaRegistry"][1] == "read, write"
    assert rows["schemaRegistry.basic.auth.user.info"][2] == "text, secret"
    assert rows["autoRegister"][1] == "write"


WRONG = [
    ("STREAM s (k STRING)", "FORMAT json", "topic 't', {url}", "a schema registry needs FORMAT avro, not json", "schemaRegistry"),
    ("STREAM s", "FORMAT protobuf", "topic 't', {url}", "json and protobuf schemas of a registry are not supported yet", "schemaRegistry"),
    ("STREAM s", "FORMAT avro", "topic 't', subject 'x'", "subject needs the option schemaRegistry", "subject"),
    ("SINK s", "FORMAT avro", "topic 't', autoRegister 'false'", "autoRegister needs the option schemaRegistry", "autoRegister"),
    ("STREAM s", "", "topic 'a,b', {url}", "each topic has a subject of its own", "schemaRegistry"),
    ("STREAM s (k STRING)", "", "subscribePattern 'a.*', {url}", "each topic has a subject of its own", "schemaRegistry"),
    ("SINK s", "", "{url}", "rows go to several topics", "schemaRegistry"),
    ("SINK s", "FORMAT avro", "topic 't', wireFormat 'confluent'", "needs a schema registry", "wireFormat"),
    ("STREAM s", "", "topic 't', {url}, wireFormat 'plain'", "have the wire format confluent", "wireFormat"),
    ("STREAM s", "", "topic 't', schemaRegistry 'host:8081'", "option schemaRegistry takes a list of http://host:port, not 'host:8081'", "'host:8081'"),
    ("STREAM s", "", "topic 't', {url}, schemaRegistry.basic.auth.userinfo 'x'", "did you mean schemaRegistry.basic.auth.user.info?", "schemaRegistry.basic.auth.userinfo"),
    ("STREAM s", "", "topic 't', autoRegister 'true', {url}", "kafka has no option autoRegister", "autoRegister"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "form", "options", "says", "under"), WRONG)
def test_options_that_do_not_go_together(
    console: Console, what: str, form: str, options: str, says: str, under: str
) -> None:
    options = options.replace("{url}", "schemaRegistry 'http://127.0.0.1:9'")
    text = said(console, f"CREATE {what} USING kafka {form} OPTIONS (servers '127.0.0.1:9', {options});")
    assert says in text
    line, mark = text.splitlines()[1:3]
    assert line[mark.index("^") :].startswith(under)


def test_a_subject_or_a_column_that_is_not_there(kafka: Broker, console: Console, registry: Registry) -> None:
    registry.register("clicks-value", record(("user", "string"), ("n", "int")))
    error = said(console, source(kafka, "click", "", schemaRegistry=registry.url))
    assert "the schema registry has no subject click-value\n" in error.replace("\n1 |", "\n")
    assert "it has clicks-value" in error
    error = said(console, source(kafka, "clicks", "(usr STRING)", schemaRegistry=registry.url))
    assert "the schema of the payload has no field usr" in error
    assert "hint: did you mean user?" in error


def test_what_is_to_be_installed_is_said(
    kafka: Broker, console: Console, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    error = said(console, source(kafka, "t", "", schemaRegistry=registry.url))
    assert "pip install 'confluent-kafka[schemaregistry]>=2.10,<3' 'fastavro>=1.9,<2'" in error


@pytest.mark.usefixtures("processes")
def test_the_printed_program_runs_by_itself(
    kafka: Broker, console: Console, registry: Registry, tmp_path: Path
) -> None:
    topic, copies = kafka.topic(), kafka.topic()
    old, new = record(("k", "string")), record(("k", "string"), ("n", ["null", "int"], None))
    kafka.produce(topic, serialized(registry, topic, old, {"k": "ann"}))
    kafka.produce(topic, serialized(registry, topic, new, {"k": "bob", "n": 2}))
    program = console.run(
        reading(kafka, topic, registry)
        + writing(kafka, copies, registry)
        + "EXPLAIN PYSPARK INSERT INTO o TRIGGER AVAILABLE NOW SELECT k, n FROM s;"
    )[-1]
    assert isinstance(program, Text)
    assert "streamsql" not in program.text
    (tmp_path / "program.py").write_text(program.text)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert deserialized(kafka, registry, copies) == [{"k": "ann", "n": None}, {"k": "bob", "n": 2}]


def test_the_example_of_its_topic(kafka: Broker, console: Console, registry: Registry) -> None:
    clicks, counts = kafka.topic(), kafka.topic()
    topic = (ROOT / "grammars" / "topics" / "schema_registry.md").read_text()
    script = next(
        t for t in re.findall(r"^```sql\n(.*?)^```$", topic, re.DOTALL | re.MULTILINE) if "Registry" in t
    )
    schema = record(("user", "string"), ("n", "int"))
    kafka.produce(
        clicks, serialized(registry, clicks, schema, *({"user": u, "n": 1} for u in ("ann", "bob", "ann")))
    )
    script = script.replace("localhost:9092", kafka.servers).replace("http://localhost:8081", registry.url)
    script = script.replace("'clicks'", f"'{clicks}'").replace("'counts'", f"'{counts}'")
    console.run(script + "AWAIT QUERY counts IDLE;")
    assert sorted(map(str, deserialized(kafka, registry, counts))) == [
        "{'user': 'ann', 'n': 2}",
        "{'user': 'bob', 'n': 1}",
    ]
