"""Looking into Kafka, with a real broker: SHOW TOPICS, and PREVIEW of a topic."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from broker import PASSWORD, USER, Broker, Message
from conftest import Console, notes_of
from previews import look, taken

from streamsql.errors import StreamsqlError
from streamsql.output.error_text import format_error
from streamsql.results import Preview
from streamsql.runtime.preflight import kafka_topics

ROOMS = ("streamsql/features/preview/", "streamsql/connectors/", "streamsql/runtime/")

LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="{}";'


def preview(console: Console, kafka: Broker, topic: str, more: str = "", clauses: str = "") -> Preview:
    options = f"OPTIONS (servers '{kafka.servers}', topic '{topic}'{more})"
    return look(console, f"PREVIEW USING kafka {clauses} {options};")


def fault(console: Console, statement: str) -> str:
    with pytest.raises(StreamsqlError) as raised:
        console.run(statement)
    return format_error(raised.value)


def test_topics_and_what_is_in_them(console: Console, kafka: Broker) -> None:
    one, three = kafka.topic("a", "b", name="shop.orders"), kafka.topic(partitions=3, name="shop.parcels")
    kafka.delete_before(one, 1)
    everything = console.rows(f"SHOW TOPICS FROM '{kafka.servers}';")
    assert [r for r in everything if r[0].startswith("shop.")] == [(one, 1, 1, 1), (three, 3, 1, 0)]
    for pattern in ("shop.o*|nothing*", "SHOP.O%"):
        assert console.rows(f"SHOW TOPICS FROM '{kafka.servers}' LIKE '{pattern}';") == [(one, 1, 1, 1)]
    assert console.rows(f"SHOW TOPICS FROM '{kafka.servers}' LIKE 'shop';") == []
    console.run(
        f"""CREATE STREAM s USING kafka OPTIONS (servers '{kafka.servers}', topic '{one}');
        CREATE SINK out USING kafka OPTIONS (servers '{kafka.servers}', topic '{three}');"""
    )
    assert console.rows("SHOW TOPICS FROM s LIKE 'shop.*';") == [(one, 1, 1, 1), (three, 3, 1, 0)]
    assert console.rows("SHOW TOPICS FROM out LIKE 'shop.p*';") == [(three, 3, 1, 0)]


@pytest.mark.slow
def test_topics_behind_a_login(console: Console, kafka: Broker) -> None:
    topic = kafka.topic("a")
    ask = (
        f"SHOW TOPICS FROM '{kafka.sasl_servers}' LIKE '{topic}' OPTIONS (kafka.security.protocol "
        "'SASL_PLAINTEXT', kafka.sasl.mechanism 'PLAIN', kafka.sasl.jaas.config '{}');"
    )
    assert console.rows(ask.format(LOGIN.format(USER, PASSWORD))) == [(topic, 1, 1, 1)]
    refused = fault(console, ask.format(LOGIN.format(USER, "wrong-word")))
    assert "Kafka refuses the login" in refused
    assert "wrong-word" not in refused
    console.run(
        f"CREATE STREAM s USING kafka OPTIONS (servers '{kafka.sasl_servers}', topic '{topic}', "
        "kafka.security.protocol 'SASL_PLAINTEXT', kafka.sasl.mechanism 'PLAIN', "
        f"kafka.sasl.jaas.config '{LOGIN.format(USER, PASSWORD)}');"
    )
    assert console.rows(f"SHOW TOPICS FROM s LIKE '{topic}';") == [(topic, 1, 1, 1)]
    assert [r[0] for r in look(console, "PREVIEW s;").rows] == ["a"]


@pytest.mark.slow
def test_a_login_that_lies_in_the_environment(
    console: Console, kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic("a")
    options = (
        "kafka.security.protocol 'SASL_PLAINTEXT', kafka.sasl.mechanism 'PLAIN', "
        "kafka.sasl.jaas.config '${env:KAFKA_LOGIN}'"
    )
    ask = f"SHOW TOPICS FROM '{kafka.sasl_servers}' LIKE '{topic}' OPTIONS ({options});"
    assert "the environment has no variable KAFKA_LOGIN" in fault(console, ask)
    monkeypatch.setenv("KAFKA_LOGIN", LOGIN.format(USER, PASSWORD))
    assert console.rows(ask) == [(topic, 1, 1, 1)]
    shown = look(
        console,
        f"PREVIEW USING kafka OPTIONS (servers '{kafka.sasl_servers}', topic '{topic}', {options});",
    )
    assert "kafka.sasl.jaas.config '${env:KAFKA_LOGIN}'" in shown.proposal
    assert [r[0] for r in taken(console, shown)] == ["a"]


@pytest.mark.slow
def test_a_proposal_hides_secrets(console: Console, kafka: Broker) -> None:
    login = LOGIN.format(USER, PASSWORD)
    shown = preview(console, kafka, kafka.topic("a"), f", kafka.sasl.jaas.config '{login}'")
    assert "kafka.sasl.jaas.config '***'" in shown.proposal
    assert PASSWORD not in shown.proposal


@pytest.mark.slow
def test_a_broker_that_is_not_there(console: Console, kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_topics, "_LIMITS", dict.fromkeys(kafka_topics._LIMITS, "1500"))
    for statement in (
        "SHOW TOPICS FROM '127.0.0.1:9';",
        "PREVIEW USING kafka OPTIONS (servers '127.0.0.1:9', topic 't');",
    ):
        shown = fault(console, statement)
        assert "Kafka does not answer" in shown
        assert "hint: is a broker listening there" in shown


@pytest.mark.slow
def test_a_preview_of_json_messages(console: Console, kafka: Broker) -> None:
    messages = [
        Message(
            json.dumps({"user": u, "n": i, "ms": 1714564800000 + i}), key=f"k{i}", timestamp=1714564800000
        )
        for i, u in enumerate("abcdef")
    ]
    topic = kafka.topic(*messages, name="page.views")
    shown = preview(console, kafka, topic, clauses="LIMIT 2")
    assert shown.columns == (
        "user",
        "n",
        "ms",
        "_key",
        "_topic",
        "_partition",
        "_offset",
        "_timestamp",
        "event_time",
    )
    assert shown.rows[1][:4] == ("b", 1, 1714564800001, "k1")
    assert shown.rows[1][-1] == datetime(2024, 5, 1, 12, 0, 0, 1000)
    assert shown.proposal == (
        "CREATE STREAM page_views (user STRING, n BIGINT, ms BIGINT)\n  USING kafka\n  FORMAT json\n"
        f"  OPTIONS (servers '{kafka.servers}', topic 'page.views')\n"
        "  WITH WATERMARK timestamp_millis(ms) AS event_time DELAY '10 minutes';"
    )
    assert [r[:3] for r in taken(console, shown)] == [
        (u, i, 1714564800000 + i) for i, u in enumerate("abcdef")
    ]
    again = look(console, "PREVIEW page_views LIMIT 3;")
    assert [r[0] for r in again.rows] == ["a", "b", "c"]
    assert again.proposal == ""
    assert console.session.spark.streams.active == []


@pytest.mark.slow
def test_malformed_messages_are_counted_and_passed_over(console: Console, kafka: Broker) -> None:
    topic = kafka.topic('{"a": 1}', "oops", '{"a": 2}')
    shown = preview(console, kafka, topic)
    assert [r[0] for r in shown.rows] == [1, 2]
    assert "1 of the first 3 records are not JSON objects, or are empty" in notes_of(shown)
    assert "ON MALFORMED SKIP" in shown.proposal
    assert "no event time in the payload: _timestamp is the time of the message" in notes_of(shown)
    assert "WITH WATERMARK _timestamp DELAY '10 minutes'" in shown.proposal
    assert sorted(r[0] for r in taken(console, shown)) == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("messages", "said", "value"),
    [
        (["1;ann", "2;bob"], "(_c0 INT, _c1 STRING)\n  USING kafka\n  FORMAT csv\n", 1),
        (["to be or", "not to be"], "USING kafka\n  OPTIONS", "to be or"),
        ([b"\0\0\0\0\7\2\xc8\xff"], "USING kafka\n  FORMAT raw\n", b"\0\0\0\0\7\2\xc8\xff"),
    ],
)
def test_the_format_of_messages_is_guessed(
    console: Console, kafka: Broker, messages: list[Any], said: str, value: object
) -> None:
    shown = preview(console, kafka, kafka.topic(*map(Message, messages)))
    assert said in shown.proposal
    assert shown.rows[0][0] == value
    if isinstance(value, bytes):
        assert any("wireFormat 'confluent'" in note for note in notes_of(shown))
    assert taken(console, shown)[0][0] == value


@pytest.mark.slow
def test_a_stream_that_begins_with_the_latest_is_looked_at_all_the_same(
    console: Console, kafka: Broker
) -> None:
    topic = kafka.topic('{"a": 1}')
    shown = preview(console, kafka, topic, ", startingOffsets 'latest', maxOffsetsPerTrigger 5")
    assert [r[0] for r in shown.rows] == [1]
    assert "startingOffsets 'latest'" in shown.proposal


def test_of_several_streams_a_query_is_made_from_what_is_there(console: Console, kafka: Broker) -> None:
    topic = kafka.topic('{"k": "a"}', '{"k": "b"}', '{"k": "a"}')
    console.run(
        f"""CREATE STREAM s (k STRING) USING kafka OPTIONS (servers '{kafka.servers}', topic '{topic}');
        CREATE STREAM n AS SELECT k, count(*) AS n, max(_offset) AS o FROM s GROUP BY k;"""
    )
    assert sorted(look(console, "PREVIEW n;").rows) == [("a", 2, 2), ("b", 1, 1)]


def test_what_is_not_there_or_empty(console: Console, kafka: Broker) -> None:
    topic = kafka.topic(name="lookedAtOften")
    ask = f"PREVIEW USING kafka OPTIONS (servers '{kafka.servers}', topic '{{}}');"
    empty = fault(console, ask.format(topic))
    assert "error[NO_RECORDS]: there are no records to show yet" in empty
    misspelt = fault(console, ask.format("lookedAtOfen"))
    assert "error[MISSING_TOPIC]: there is no topic lookedAtOfen" in misspelt
    assert "hint: did you mean lookedAtOften?" in misspelt
    assert "^" * len("'lookedAtOfen'") in misspelt
    console.run(f"CREATE STREAM s (a INT) USING kafka OPTIONS (servers '{kafka.servers}', topic 'gone');")
    assert "there is no topic gone" in fault(console, "PREVIEW s;")
