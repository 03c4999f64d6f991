"""Topics of a Kafka cluster, asked for with Kafka's own client in Spark's JVM."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from streamsql.catalog import Sink
from streamsql.connectors.kafka import client_settings
from streamsql.errors import Cancelled, EngineFault, InputFault, did_you_mean
from streamsql.plan.plans import Topics
from streamsql.results import Rows
from streamsql.runtime.embedded.secret_references import filled
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.package_loader import use_added_jars
from streamsql.runtime.engine.spark_errors import translate

PATIENCE = 10
"""Seconds that the brokers may take for an answer."""
# The client's own limits, within that of the whole.
_LIMITS = {
    "default.api.timeout.ms": str(PATIENCE * 1000),
    "request.timeout.ms": str(PATIENCE * 500),
    "socket.connection.setup.timeout.max.ms": str(PATIENCE * 500),
}


def show_topics(spark: Any, made: Topics, cancel: CancelToken) -> Rows:
    """Topics with their partitions, the copies of each, and their messages. Raises EngineFault when the
    brokers do not answer, or refuse.
    """
    began = time.monotonic()
    wanted = _pattern(made.like)
    try:
        with _client(spark, made.settings, cancel) as client:
            names = [n for n in client.names() if wanted.match(n)]
            rows = client.described(names)
    except Exception as error:
        fault = translate(error)
        fault.span = made.place.span
        raise fault from error
    columns = ("topic", "partitions", "replicas", "messages")
    return Rows((), columns, rows, (False, True, True, True), time.monotonic() - began)


def check_topics(spark: Any, settings: Mapping[str, str], topics: Sequence[str], cancel: CancelToken) -> None:
    """See that brokers answer and have topics of these names, before Spark waits for them. Raises
    EngineFault or InputFault.
    """
    try:
        with _client(spark, settings, cancel) as client:
            there = client.names()
    except Exception as error:
        raise translate(error) from error
    for topic in topics:
        if topic not in there:
            listed = ", ".join(there[:8]) + (", …" if len(there) > 8 else "")
            raise InputFault(
                f"there is no topic {topic}",
                hint=did_you_mean(topic, there) or (f"topics: {listed}" if there else "there are none yet"),
                code="MISSING_TOPIC",
            )


def check_sink_topics(spark: Any, sinks: Iterable[Sink], cancel: CancelToken) -> None:
    """See that Kafka has the topics that sinks name, or makes them by itself: else Spark would learn after
    a minute that it does not. Raises EngineFault.
    """
    for sink in sinks:
        topic = sink.option("topic") if sink.connector == "kafka" else ""
        if not topic:
            continue
        try:
            with _client(spark, client_settings(sink.options), cancel) as client:
                there = client.names()
                missing = topic not in there and not client.makes_topics()
        except Exception as error:
            raise translate(error) from error
        if missing:
            raise EngineFault(
                f"Kafka has no topic {topic} to write to",
                detail="its brokers do not create topics automatically",
                hint=did_you_mean(topic, there) or "create it with Kafka's tools, or name another topic",
                code="MISSING_TOPIC",
            )


def _pattern(like: str) -> re.Pattern[str]:
    """A pattern as Spark's SHOW TABLES takes it: * for any characters, | between several; % is *, too."""
    parts = [p.strip() for p in like.split("|")] if like else ["*"]
    made = "|".join(re.escape(p).replace(r"\*", ".*").replace("%", ".*") for p in parts)
    return re.compile(rf"(?:{made})\Z", re.IGNORECASE)


@contextmanager
def _client(spark: Any, settings: Mapping[str, str], cancel: CancelToken) -> Iterator[_Client]:
    use_added_jars(spark)
    jvm = spark._jvm
    wanted = jvm.java.util.HashMap()
    try:
        for key, value in {**settings, **_LIMITS}.items():
            wanted.put(key, filled(value))
    except ValueError as error:
        raise EngineFault(str(error), code="SECRET_LOST") from None
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(wanted)
    try:
        yield _Client(jvm, admin, cancel)
    finally:
        admin.close(jvm.java.time.Duration.ofSeconds(1))


class _Client:
    def __init__(self, jvm: Any, admin: Any, cancel: CancelToken) -> None:
        self.jvm = jvm
        self.admin = admin
        self.cancel = cancel

    def names(self) -> list[str]:
        """The topics, without Kafka's own."""
        return sorted(str(n) for n in self._answer(self.admin.listTopics().names()))

    def described(self, names: Sequence[str]) -> list[tuple[str, int, int, int]]:
        """(topic, partitions, copies of each, messages that are there)."""
        if not names:
            return []
        asked = self.jvm.java.util.ArrayList()
        for name in names:
            asked.add(name)
        found = self._answer(self.admin.describeTopics(asked).allTopicNames())
        shapes = {}
        for name in names:
            partitions = found.get(name).partitions()
            shapes[name] = [int(p.partition()) for p in partitions], len(partitions[0].replicas())
        partitions = [(name, p) for name in names for p in shapes[name][0]]
        first, behind = self._offsets("earliest", partitions), self._offsets("latest", partitions)
        return [
            (name, len(parts), copies, sum(behind[name, p] - first[name, p] for p in parts))
            for name, (parts, copies) in shapes.items()
        ]

    def makes_topics(self) -> bool:
        """Whether the brokers make a topic that is written into; also where they may not be asked."""
        common = self.jvm.org.apache.kafka.common.config.ConfigResource
        kind = common.Type.BROKER
        nodes = self._answer(self.admin.describeCluster().nodes())
        asked = self.jvm.java.util.ArrayList()
        asked.add(common(kind, nodes.iterator().next().idString()))
        try:
            found = self._answer(self.admin.describeConfigs(asked).all())
        except Cancelled:
            raise
        except Exception:  # not this login
            return True
        setting = found.get(asked[0]).get("auto.create.topics.enable")
        return setting is None or str(setting.value()) != "false"

    def _offsets(self, which: str, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        common = self.jvm.org.apache.kafka.common.TopicPartition
        spec = getattr(self.jvm.org.apache.kafka.clients.admin.OffsetSpec, which)()
        asked = self.jvm.java.util.HashMap()
        for name, partition in partitions:
            asked.put(common(name, partition), spec)
        found = self._answer(self.admin.listOffsets(asked).all())
        return {(n, p): int(found.get(common(n, p)).offset()) for n, p in partitions}

    def _answer(self, future: Any) -> Any:
        """What a future of Kafka's gives, within the client's own limits."""
        while not future.isDone():
            self.cancel.wait(0.02)
        return future.get()
