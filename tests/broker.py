"""Apache Kafka for the tests: one broker in KRaft mode on loopback, with its own data folder."""

from __future__ import annotations

import logging
import random
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from maven import fetched

from streamsql.errors import StartFault
from streamsql.runtime.engine.java import find_java

KAFKA = ("org.apache.kafka:kafka_2.13:4.3.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3")
USER, PASSWORD = "ann", "hush-hush"
# The client library's own words about a broker that is not there yet, or not any more.
_SILENT = logging.getLogger("streamsql.tests.kafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False

# A small broker that is soon there. Offsets of groups and transactions have one partition, not 50.
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl},SSL://127.0.0.1:{tls},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl},SSL://127.0.0.1:{tls}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT
listener.name.ssl.ssl.keystore.type=PEM
listener.name.ssl.ssl.keystore.location={folder}/broker.pem
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule \
 required user_{user}="{password}";
log.dirs={folder}/data
# Messages with timestamps of years ago are not deleted while a test runs.
log.retention.ms=-1
auto.create.topics.enable=false
num.network.threads=2
num.io.threads=2
background.threads=2
num.recovery.threads.per.data.dir=1
log.cleaner.enable=false
file.delete.delay.ms=100
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class Unavailable(Exception):
    """Kafka cannot be had on this machine."""


class Message(NamedTuple):
    """A message, as produced or as read. timestamp: milliseconds since 1970, 0 for now."""

    value: bytes | str | None
    key: bytes | str | None = None
    headers: list[tuple[str, bytes]] | None = None
    timestamp: int = 0
    partition: int = -1
    offset: int = -1


def _free_port() -> int:
    """A free port below those that connections going out are given: it stays free while the broker is down."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise Unavailable("no free port on loopback")


def _java() -> Path:
    try:
        return find_java("system").path
    except StartFault:
        return find_java("bundled").path


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that is its own authority, and its key, as PEM files."""
    made = folder / "certificate.pem", folder / "key.pem"
    about = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    files = ["-out", str(made[0]), "-keyout", str(made[1])]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *about, *files]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return made


class Broker:
    """A broker and a client of it. servers: without login; sasl_servers: SASL/PLAIN as USER; tls_servers:
    SSL, with a certificate (certificate.pem) that nobody trusts by itself.
    """

    def __init__(self, heap: str = "256m") -> None:
        lib = fetched(KAFKA)
        if lib is None:
            raise Unavailable("Apache Kafka cannot be fetched: mvn is missing or reaches no repository")
        if not shutil.which("openssl"):
            raise Unavailable("openssl is missing, which makes the broker's certificate")
        plain, sasl, tls, controller = _free_port(), _free_port(), _free_port(), _free_port()
        self.servers, self.sasl_servers = f"127.0.0.1:{plain}", f"127.0.0.1:{sasl}"
        self.tls_servers = f"127.0.0.1:{tls}"
        self.folder = Path(tempfile.mkdtemp(prefix="streamsql-kafka-"))
        self.process: subprocess.Popen[bytes] | None = None
        self._java = [str(_java()), f"-Xmx{heap}", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self._java += ["-cp", f"{lib}/*"]
        self.certificate, key = certificate(self.folder)
        (self.folder / "broker.pem").write_text(key.read_text() + self.certificate.read_text())
        self._properties = self.folder / "server.properties"
        self._properties.write_text(
            PROPERTIES.format(
                plain=plain,
                sasl=sasl,
                tls=tls,
                controller=controller,
                folder=self.folder,
                user=USER,
                password=PASSWORD,
            )
        )
        cluster = ["--cluster-id", "streamsqlTestsStreamsq", "--config", str(self._properties)]
        subprocess.run(
            [*self._java, "kafka.tools.StorageTool", "format", *cluster],
            check=True,
            capture_output=True,
            timeout=60,
            cwd=self.folder,
        )

    def start(self) -> None:
        """Start it, the first time or again on the same data, and wait until it answers."""
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        self._until(lambda: bool(self._admin.list_topics(timeout=1).brokers), "answer")

    def stop(self) -> None:
        """End it; what was produced stays on disk."""
        if self.process:
            self.process.terminate()  # after a kill it would wait for 9 s until its old session is over
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(30)
            self.process = None

    def remove(self) -> None:
        """End it for good."""
        if self.process:
            self.process.kill()
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _until(self, seen: Callable[[], bool], what: str, seconds: float = 60) -> None:
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + seconds
        while True:
            assert self.process and self.process.poll() is None, (self.folder / "broker.log").read_text()
            try:
                if seen():
                    return
            except KafkaException:
                pass
            assert time.monotonic() < deadline, f"no {what} of Kafka after {seconds} s"
            time.sleep(0.05)  # how often one looks, not how long one waits

    @cached_property
    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        options = {"bootstrap.servers": self.servers, "reconnect.backoff.max.ms": 200}
        return AdminClient(options, logger=_SILENT)

    def topic(self, *messages: Message | str, partitions: int = 1, name: str = "") -> str:
        """Make a topic with a name of its own, with these messages; its name."""
        from confluent_kafka.admin import NewTopic

        name = name or f"t{uuid.uuid4().hex[:8]}"
        for done in self._admin.create_topics([NewTopic(name, partitions, 1)]).values():
            done.result(30)
        self._until(lambda: self.partitions(name) == partitions, f"topic {name}")
        self.produce(name, messages)
        return name

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; 0 when it is not there."""
        found = self._admin.list_topics(timeout=10).topics.get(topic)
        return len(found.partitions) if found and not found.error else 0

    def delete(self, topic: str) -> None:
        for done in self._admin.delete_topics([topic]).values():
            done.result(30)
        self._until(lambda: not self.partitions(topic), f"end of topic {topic}")

    def add_partitions(self, topic: str, total: int) -> None:
        from confluent_kafka.admin import NewPartitions

        for done in self._admin.create_partitions([NewPartitions(topic, total)]).values():
            done.result(30)
        self._until(lambda: self.partitions(topic) == total, f"new partition of {topic}")

    def delete_before(self, topic: str, offset: int, partition: int = 0) -> None:
        """Delete the messages of a partition before an offset, as retention does."""
        from confluent_kafka import TopicPartition

        for done in self._admin.delete_records([TopicPartition(topic, partition, offset)]).values():
            done.result(30)

    def produce(self, topic: str, messages: Iterable[Message | str]) -> None:
        """Send messages and wait until the broker has them all."""
        from confluent_kafka import Producer

        failed: list[Any] = []
        producer = Producer(
            {"bootstrap.servers": self.servers, "linger.ms": 5, "queue.buffering.max.messages": 2_000_000},
            logger=_SILENT,
        )
        for message in messages:
            m = Message(message) if isinstance(message, str) else message
            producer.produce(
                topic,
                m.value,
                m.key,
                m.partition,
                lambda error, _: error and failed.append(error),
                timestamp=m.timestamp,
                headers=m.headers,
            )
            producer.poll(0)
        assert not producer.flush(60), "Kafka did not take all messages"
        assert not failed, failed[0]

    def read(self, topic: str) -> list[Message]:
        """All messages that are in a topic now, in the order of partition and offset."""
        from confluent_kafka import Consumer, TopicPartition

        options = {"bootstrap.servers": self.servers, "group.id": "reader", "enable.auto.commit": False}
        consumer = Consumer(options, logger=_SILENT)
        found: list[Message] = []
        try:
            left: dict[int, int] = {}
            for partition in range(self.partitions(topic)):
                start, end = _offsets(consumer, TopicPartition(topic, partition))
                if end > start:
                    left[partition] = end
            consumer.assign([TopicPartition(topic, p, 0) for p in left])
            deadline = time.monotonic() + 60
            while left:
                assert time.monotonic() < deadline, f"{topic} cannot be read to its end"
                for got in consumer.consume(500, timeout=0.2):
                    assert not got.error(), got.error()
                    one = Message(
                        got.value(),
                        got.key(),
                        got.headers(),
                        got.timestamp()[1],
                        got.partition(),
                        got.offset(),
                    )
                    found.append(one)
                    if one.offset + 1 >= left.get(one.partition, 0):
                        left.pop(one.partition, None)
        finally:
            consumer.close()
        return sorted(found, key=lambda m: (m.partition, m.offset))


def _offsets(consumer: Any, partition: Any) -> tuple[int, int]:
    """The first and the next offset of a partition; waits while a broker that was restarted elects leaders."""
    from confluent_kafka import KafkaError, KafkaException

    deadline = time.monotonic() + 60
    while True:
        try:
            return consumer.get_watermark_offsets(partition, timeout=30)
        except KafkaException as error:
            electing = error.args[0].code() in (
                KafkaError.NOT_LEADER_FOR_PARTITION,
                KafkaError.LEADER_NOT_AVAILABLE,
            )
            if not electing or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
