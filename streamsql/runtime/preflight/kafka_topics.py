"""The topics of a Kafka cluster, read with Kafka's own client in Spark's JVM."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from streamsql.connectors.kafka import client_settings
from streamsql.definitions import Sink
from streamsql.errors import Cancelled, EngineFault, InputFault, Span, StreamsqlError, did_you_mean
from streamsql.results import Rows
from streamsql.runtime.embedded.secret_references import filled
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.package_loader import use_added_jars
from streamsql.runtime.engine.spark_errors import translate

PATIENCE = 10
"""The seconds that the brokers may take to answer."""
# The client's own time-outs, within that limit.
_LIMITS = {
    "default.api.timeout.ms": str(PATIENCE * 1000),
    "request.timeout.ms": str(PATIENCE * 500),
    "socket.connection.setup.timeout.max.ms": str(PATIENCE * 500),
}


def show_topics(
    spark: Any, settings: Mapping[str, str], like: str, span: Span | None, cancel: CancelToken
) -> Rows:
    """The topics whose names match a pattern, with the numbers of their partitions, replicas and messages.
    span: the part of the statement that names the brokers. Raises EngineFault when these do not answer, or
    refuse.
    """
    began = time.monotonic()
    wanted = _pattern(like)
    try:
        with _client(spark, settings, cancel) as client:
            rows = client.described([name for name in client.names() if wanted.match(name)])
    except StreamsqlError as fault:
        fault.span = span
        raise
    columns = ("topic", "partitions", "replicas", "messages")
    return Rows((), columns, rows, (False, True, True, True), time.monotonic() - began)


def check_topics(spark: Any, settings: Mapping[str, str], topics: Sequence[str], cancel: CancelToken) -> None:
    """Check that the brokers answer and have these topics, before Spark waits for them. Raises EngineFault
    or InputFault.
    """
    with _client(spark, settings, cancel) as client:
        existing = client.names()
    for topic in topics:
        if topic not in existing:
            listed = ", ".join(existing[:8]) + (", …" if len(existing) > 8 else "")
            raise InputFault(
                f"there is no topic {topic}",
                hint=did_you_mean(topic, existing)
                or (f"topics: {listed}" if existing else "there are none yet"),
                code="MISSING_TOPIC",
            )


def offsets_now(
    spark: Any, settings: Mapping[str, str], topics: Sequence[str], cancel: CancelToken
) -> dict[tuple[str, int], tuple[int, int]]:
    """The first offset and the one behind the last message of each (topic, partition). Raises EngineFault
    when the brokers do not answer, or have not the topics.
    """
    with _client(spark, settings, cancel) as client:
        return client.offsets(client.partitions(topics))


def check_sink_topics(spark: Any, sinks: Iterable[Sink], cancel: CancelToken) -> None:
    """Check that Kafka has the topics of sinks, or creates them automatically: Spark itself fails only after
    a minute. Raises EngineFault.
    """
    for sink in sinks:
        topic = sink.option("topic") if sink.connector == "kafka" else ""
        if not topic:
            continue
        with _client(spark, client_settings(sink.options), cancel) as client:
            existing = client.names()
            missing = topic not in existing and not client.makes_topics()
        if missing:
            raise EngineFault(
                f"Kafka has no topic {topic} to write to",
                detail="its brokers do not create topics automatically",
                hint=did_you_mean(topic, existing) or "create it with Kafka's tools, or name another topic",
                code="MISSING_TOPIC",
            )


def _pattern(like: str) -> re.Pattern[str]:
    """A pattern as in Spark's SHOW TABLES: * stands for any characters, | separates patterns; % is the
    same as *.
    """
    parts = [p.strip() for p in like.split("|")] if like else ["*"]
    alternatives = "|".join(re.escape(p).replace(r"\*", ".*").replace("%", ".*") for p in parts)
    return re.compile(rf"(?:{alternatives})\Z", re.IGNORECASE)


@contextmanager
def _client(spark: Any, settings: Mapping[str, str], cancel: CancelToken) -> Iterator[_Client]:
    """A client of Kafka. Inside, exceptions of Java are raised as StreamsqlErrors."""
    try:
        use_added_jars(spark)
        jvm = spark._jvm
        wanted = jvm.java.util.HashMap()
        for key, value in {**settings, **_LIMITS}.items():
            try:
                wanted.put(key, filled(value))
            except ValueError as error:
                raise EngineFault(str(error), code="SECRET_LOST") from None
        with closing(_Client(jvm, wanted, cancel)) as client:
            yield client
    except StreamsqlError:
        raise
    except Exception as error:
        raise translate(error) from error


class _Client:
    def __init__(self, jvm: Any, settings: Any, cancel: CancelToken) -> None:
        self.jvm = jvm
        self.admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        self.cancel = cancel

    def close(self) -> None:
        self.admin.close(self.jvm.java.time.Duration.ofSeconds(1))

    def names(self) -> list[str]:
        """The topics, without Kafka's internal ones."""
        return sorted(str(n) for n in self._answer(self.admin.listTopics().names()))

    def described(self, names: Sequence[str]) -> list[tuple[str, int, int, int]]:
        """(topic, partitions, replicas, messages) of each topic."""
        partitions = self.partitions(names) if names else {}
        messages = dict.fromkeys(names, 0)
        for (name, _), (first, behind) in self.offsets(partitions).items():
            messages[name] += behind - first
        return [
            (name, len(parts), len(parts[0].replicas()), messages[name]) for name, parts in partitions.items()
        ]

    def partitions(self, names: Sequence[str]) -> dict[str, Any]:
        """Kafka's descriptions of the partitions of topics."""
        asked = self.jvm.java.util.ArrayList()
        for name in names:
            asked.add(name)
        topics = self._answer(self.admin.describeTopics(asked).allTopicNames())
        return {name: topics.get(name).partitions() for name in names}

    def offsets(self, partitions: Mapping[str, Any]) -> dict[tuple[str, int], tuple[int, int]]:
        """(first offset, the one behind the last message) of each (topic, partition)."""
        parts = [(name, int(part.partition())) for name in partitions for part in partitions[name]]
        first, behind = self._offsets("earliest", parts), self._offsets("latest", parts)
        return {part: (first[part], behind[part]) for part in parts}

    def makes_topics(self) -> bool:
        """Whether the brokers create topics automatically; True if this login may not read that setting."""
        common = self.jvm.org.apache.kafka.common.config.ConfigResource
        kind = common.Type.BROKER
        nodes = self._answer(self.admin.describeCluster().nodes())
        asked = self.jvm.java.util.ArrayList()
        asked.add(common(kind, nodes.iterator().next().idString()))
        try:
            configs = self._answer(self.admin.describeConfigs(asked).all())
        except Cancelled:
            raise
        except Exception:  # not this login
            return True
        setting = configs.get(asked[0]).get("auto.create.topics.enable")
        return setting is None or str(setting.value()) != "false"

    def _offsets(self, which: str, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        common = self.jvm.org.apache.kafka.common.TopicPartition
        spec = getattr(self.jvm.org.apache.kafka.clients.admin.OffsetSpec, which)()
        asked = self.jvm.java.util.HashMap()
        for name, partition in partitions:
            asked.put(common(name, partition), spec)
        offsets = self._answer(self.admin.listOffsets(asked).all())
        return {(n, p): int(offsets.get(common(n, p)).offset()) for n, p in partitions}

    def _answer(self, future: Any) -> Any:
        """The result of a future of Kafka, within the client's time-outs."""
        while not future.isDone():
            self.cancel.wait(0.02)
        return future.get()
