"""kafka: topics of Apache Kafka. Options: Spark's "Structured Streaming + Kafka Integration Guide"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from streamsql.calls import Function, Node, Var, expr
from streamsql.connectors import debezium, messages, schema_registry
from streamsql.connectors.base import (
    MICRO_BATCH,
    PROGRESS_OPTIONS,
    OptionSpec,
    Places,
    conflict,
    missing,
    option_table,
    read,
    read_stream,
    with_options,
)
from streamsql.definitions import Sink, Stream
from streamsql.errors import Note
from streamsql.language.statements.base import Column, Name, Option
from streamsql.language.tokens import refers

# The short words → Spark's, for reading and for writing.
_READ = {"servers": "kafka.bootstrap.servers", "topic": "subscribe"}
_WRITE = {"servers": "kafka.bootstrap.servers"}
_TOPICS = ("subscribe", "topic", "subscribePattern", "assign")
# What only a stream has.
_OF_STREAMS = frozenset("maxoffsetspertrigger minoffsetspertrigger maxtriggerdelay".split())
_STARTS = ("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp")

SERVERS = (
    OptionSpec("servers", "the bootstrap servers: host:port, …", "list of host:port"),
    OptionSpec("kafka.bootstrap.servers", "Spark's name of this option", "list of host:port"),
)
# Those that people need; any other of Kafka's settings may be given as kafka.NAME.
_SECURITY = option_table("""
    kafka.security.protocol: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = PLAINTEXT -- the protocol of the
        connection to the brokers
    kafka.sasl.mechanism -- PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI or OAUTHBEARER
    kafka.sasl.jaas.config: secret -- the login, in the format of Kafka's JAAS configuration
    kafka.sasl.kerberos.service.name -- the Kerberos service name of the brokers
    kafka.ssl.truststore.location: path -- a file with the certificates to trust
    kafka.ssl.truststore.password: secret -- its password
    kafka.ssl.truststore.type -- JKS, PKCS12 or PEM
    kafka.ssl.keystore.location: path -- a file with the client's key
    kafka.ssl.keystore.password: secret -- its password
    kafka.ssl.keystore.type -- JKS, PKCS12 or PEM
    kafka.ssl.key.password: secret -- the key's password
    kafka.ssl.endpoint.identification.algorithm -- how host names are verified; empty: not at all
""")
_CONSUMER = option_table("""
    kafka.fetch.max.wait.ms: number of milliseconds = 1 -- how long a broker waits for new messages, in
        milliseconds; CONTINUOUS and REAL TIME: 500
    kafka.max.poll.records: positive integer = 20000 -- messages that a consumer hands over at once;
        CONTINUOUS and REAL TIME: 500
""")
"""Settings of the consumers of micro-batches, unless a stream has its own. After each poll Spark asks for the
offsets of the partition (InternalKafkaConsumer.getAvailableOffsetRange of Spark 4.3). A broker answers the
requests of a connection one after the other, and the one before is the fetch that the consumer has sent
ahead: it waits for new messages, by Kafka's default for half a second. And with its default of 500 messages
for a poll, such requests are many.
"""
_SOURCE = (
    *option_table("""
        topic -- topics to read: a name, or several with commas
        subscribe -- Spark's name of this option
        subscribePattern -- a Java regular expression of topics
        assign: JSON object -- partitions to read, as JSON: {"topic":[0,1]}
        startingOffsets: earliest, latest, JSON object = earliest -- where a new query starts: earliest,
            latest, or JSON: {"topic":{"0":23}}
        startingTimestamp: number -- start with messages from this time on (milliseconds since 1970)
        startingOffsetsByTimestamp: JSON object -- the same for each partition: {"topic":{"0":1700000000000}}
        startingOffsetsByTimestampStrategy: error, latest = error -- if no message is that new: error or
            latest
        failOnDataLoss: boolean = true -- fail the query if messages were deleted before they were read
        maxOffsetsPerTrigger: positive number -- maximum number of messages in a micro-batch
        minOffsetsPerTrigger: positive number -- minimum number of messages in a micro-batch
        maxTriggerDelay: duration = 15m -- how long a micro-batch waits for minOffsetsPerTrigger
        minPartitions: positive integer -- minimum number of Spark partitions to read with
        maxRecordsPerPartition: positive number -- maximum number of messages in a Spark partition
        groupIdPrefix -- prefix of the consumer group names
        kafka.group.id -- the consumer group; use with care, see Spark's Kafka guide
        includeHeaders: boolean -- read headers; set automatically for queries that name _headers
        kafkaConsumer.pollTimeoutMs: number of milliseconds -- time limit for answers of the brokers, in
            milliseconds
        fetchOffset.numRetries: integer from 0 = 3 -- number of attempts to fetch the newest offsets
        fetchOffset.retryIntervalMs: number of milliseconds = 10 -- delay between these attempts, in
            milliseconds
    """),
    *_CONSUMER,
    OptionSpec("kafka.isolation.level", "read_committed skips messages of uncommitted transactions"),
)
_SINK = option_table("""
    topic -- the topic to write to; default: the column _topic of the query
    includeHeaders: boolean -- write headers; set automatically for queries with a column _headers
    kafka.acks = all -- how many brokers must confirm a message: all, 1 or 0
    kafka.compression.type -- compression of the messages: none, gzip, snappy, lz4 or zstd
    kafka.linger.ms: number of milliseconds -- how long to wait for more messages of a batch, in milliseconds
    kafka.batch.size: number of bytes -- maximum size of a batch, in bytes
    kafka.max.request.size: number of bytes -- maximum size of a request, in bytes
    kafka.delivery.timeout.ms: number of milliseconds -- time limit for the delivery of a message, in
        milliseconds
""")
# What Spark sets itself (Kafka Integration Guide, "Kafka Specific Configurations").
_SPARKS_OWN = {
    "kafka.auto.offset.reset": "startingOffsets sets where a query starts",
    "kafka.key.deserializer": "the key is read as bytes; FORMAT sets the format of the payload",
    "kafka.value.deserializer": "FORMAT sets the format of the payload",
    "kafka.key.serializer": "the key is written as text or bytes",
    "kafka.value.serializer": "FORMAT sets the format of the payload",
    "kafka.enable.auto.commit": "the checkpoint keeps the offsets",
    "kafka.interceptor.classes": "Spark reads messages as they are",
}
FIELDS = (
    Column("_key", "STRING"),
    Column("_topic", "STRING"),
    Column("_partition", "INT"),
    Column("_offset", "BIGINT"),
    Column("_timestamp", "TIMESTAMP"),
    Column("_headers", "ARRAY<STRUCT<key: STRING, value: BINARY>>"),
)


class Kafka(messages.MessageConnector):
    name = "kafka"
    help = "topics of Apache Kafka"
    not_read_back = "its messages go to topics of their own, or tell changes"
    reads = (*SERVERS, *_SOURCE, *messages.ALL_OPTIONS, *_SECURITY)
    writes = (
        *SERVERS,
        *_SINK,
        *PROGRESS_OPTIONS,
        *messages.ALL_OPTIONS,
        schema_registry.AUTO_REGISTER,
        *_SECURITY,
    )
    formats = tuple(messages.FORMAT_OPTIONS)
    fields = FIELDS
    place = "concat('topic ', topic, ', partition ', partition, ', offset ', offset)"
    packages = ("kafka", "avro")
    open_prefix = "kafka."
    takes_key = True
    offset_options = ("startingOffsets", "endingOffsets")
    triggers = MICRO_BATCH | {"continuous", "real_time"}
    sink_triggers = MICRO_BATCH | {"continuous", "real_time"}

    def rate_option(self, stream: Stream) -> str:
        return "maxOffsetsPerTrigger"

    def beginning_at(self, stream: Stream, moment: datetime) -> Stream | str:
        own = {name.casefold() for name in (*_STARTS, "startingOffsetsByTimestampStrategy")}
        others = (pair for pair in stream.options if pair[0].casefold() not in own)
        # Kafka's times are cut to milliseconds: one that is rounded up would leave out messages after it.
        milliseconds = str((moment - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1))
        begin = ("startingTimestamp", milliseconds), ("startingOffsetsByTimestampStrategy", "latest")
        return replace(stream, options=(*others, *begin))

    def format_of(self, stream: Stream) -> str:
        """The format without FORMAT: avro with a schema registry, json for declared columns, else text."""
        if schema_registry.uses(stream) and not stream.format:
            return "avro"
        return super().format_of(stream)

    def metadata(self, stream: Stream) -> tuple[Column, ...]:
        fields = super().metadata(stream)
        is_raw = self.format_of(stream) == "raw"
        return (Column("_key", "BINARY"), *fields[1:]) if fields and is_raw else fields

    def source(self, stream: Stream, places: Places) -> Node:
        options = _read_options(stream)
        if not any(k.casefold() == s.casefold() for k, _ in options for s in _STARTS):
            options.append(("startingOffsets", "earliest"))
        if "_headers" in stream.metadata and not stream.option("includeHeaders"):
            options.append(("includeHeaders", "true"))
        if stream.batched:
            options = _tuned(options)
        return self.decoded(with_options(read_stream(self.name), options).call("load"), stream)

    def payload(self, stream: Stream) -> messages.Payload:
        payload = super().payload(stream)
        key = "key" if self.format_of(stream) == "raw" else "CAST(key AS STRING)"
        return replace(payload, fields={**payload.fields, "_key": key})

    def brokers(self, stream: Stream) -> tuple[dict[str, str], tuple[str, ...]]:
        named = stream.option("topic") or stream.option("subscribe")
        return client_settings(stream.options), tuple(t.strip() for t in named.split(",") if t.strip())

    def records(self, stream: Stream) -> Node:
        return self.now(stream, Places("")).call("select", expr("CAST(value AS STRING) AS value"))

    def now(self, stream: Stream, places: Places) -> Node:
        """The existing messages; from the first when the stream begins with the latest, of which there are
        none.
        """
        options = _read_options(stream)
        usable = [(k, v) for k, v in options if k.casefold() not in _OF_STREAMS and v.casefold() != "latest"]
        headers = [("includeHeaders", "true")] if "_headers" in stream.metadata else []
        return with_options(read(self.name), _tuned([*usable, *headers])).call("load")

    def servers(self, entry: Stream | Sink) -> tuple[tuple[str, int], ...]:
        given = entry.option("servers") or entry.option("kafka.bootstrap.servers")
        if refers(given):
            return ()
        pairs = (server.strip().rpartition("://")[2].rpartition(":") for server in given.split(","))
        return tuple((host.strip("[]"), int(port)) for host, _, port in pairs)

    def schema_servers(self, entry: Stream | Sink) -> tuple[tuple[str, int], ...]:
        return schema_registry.servers(entry)

    def notes_of(self, stream: Stream) -> tuple[Note, ...]:
        if any(stream.option(s) for s in _STARTS):
            return ()
        later = "startingOffsets 'latest' starts with new messages"
        text = f"{stream.name} is read from the oldest message; {later}"
        return (Note("READ_FROM_START", text),)

    def check_stream(self, stream: Stream, options: dict[str, Option], at: Name) -> None:
        _check_servers(options, at)
        _check_own(options)
        given = [o for name in _TOPICS if (o := options.get(name.casefold()))]
        if not given:
            raise missing(at, "kafka needs to know the topic", "OPTIONS (…, topic 'name')")
        if len(given) > 1:
            fact = f"{given[0].key} and {given[1].key} cannot be used together"
            raise conflict(given[1], fact, "omit one of them")
        schema_registry.check(self.format_of(stream), stream, options)
        super().check_stream(stream, options, at)

    # ---- writing --------------------------------------------------------------------------

    def _form(self, sink: Sink) -> str:
        return sink.format or ("avro" if schema_registry.uses(sink) else "json")

    def prepared(self, sink: Sink, frame: Node) -> Node:
        return messages.written(frame, sink, self._form(sink))

    def _options(self, sink: Sink) -> list[tuple[str, str]]:
        return [(_WRITE.get(k.casefold(), k), v) for k, v in _of_kafka(sink.options)]

    def read_back(self, sink: Sink) -> Node | None:
        if not sink.option("topic") or sink.format == debezium.FORMAT:
            return None
        option_names = {s.name.casefold() for s in (*SERVERS, *_SECURITY)}
        options = [(_READ.get(k.casefold(), k), v) for k, v in sink.options if k.casefold() in option_names]
        options += [("subscribe", sink.option("topic")), ("includeHeaders", "true")]
        return with_options(read(self.name), _tuned(options)).call("load")

    def messages(self, sink: Sink) -> Node:
        return Function(("rows",), (), self.prepared(sink, Var("rows")))

    def write_stream(self, sink: Sink, writer: Node) -> Node:
        return with_options(writer.call("format", self.name), self._options(sink))

    def write_batch(self, sink: Sink, frame: Node) -> Node:
        writer = self.prepared(sink, frame).attr("write").call("format", self.name)
        return with_options(writer, self._options(sink)).call("save")

    def modes_of(self, sink: Sink) -> tuple[str, ...]:
        # Only the changes of a live table tell what a row was before.
        return ("append",) if sink.format == debezium.FORMAT else self.modes

    def shows_newest(self, sink: Sink) -> bool:
        return bool(sink.key) and sink.format != debezium.FORMAT

    def delivery(self, sink: Sink) -> str:
        return "at least once: messages may be sent again after a failure"

    def batch_writer(self, sink: Sink) -> Node:
        # At least once: a micro-batch that is repeated after a failure is sent again.
        return Function(("batch", "batch_id"), (), self.write_batch(sink, Var("batch")))

    def changes_writer(self, sink: Sink) -> Node:
        if sink.format != debezium.FORMAT:
            return self.batch_writer(sink)
        rows = messages.written(Var("batch"), sink, sink.format, changes=True)
        writer = with_options(rows.attr("write").call("format", self.name), self._options(sink))
        return Function(("batch", "batch_id"), (), writer.call("save"))

    def check_sink(self, sink: Sink, options: dict[str, Option], key: tuple[Name, ...], at: Name) -> None:
        _check_servers(options, at)
        _check_own(options)
        schema_registry.check(self._form(sink), sink, options)
        messages.check_format(self._form(sink), options, at, reads=False)


def _read_options(stream: Stream) -> list[tuple[str, str]]:
    """The options with which Spark reads the messages of a stream."""
    return [(_READ.get(k.casefold(), k), v) for k, v in _of_kafka(stream.options)]


def _tuned(options: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Options with those of _CONSUMER that are not given."""
    given = {name.casefold() for name, _ in options}
    return [*options, *((spec.name, spec.default) for spec in _CONSUMER if spec.name not in given)]


def client_settings(options: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The settings for Kafka's own client, from the options of a stream or sink."""
    named = ((_WRITE.get(k.casefold(), k), v) for k, v in options)
    return {k.removeprefix("kafka."): v for k, v in named if k.startswith("kafka.")}


def _of_kafka(options: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Options without those of the payload's format, which are not Kafka's."""
    payload = {s.name.casefold() for s in (*messages.ALL_OPTIONS, schema_registry.AUTO_REGISTER)}
    return [(k, v) for k, v in options if k.casefold() not in payload]


def _check_servers(options: dict[str, Option], at: Name) -> None:
    given = options.get("servers") or options.get("kafka.bootstrap.servers")
    if given is None:
        raise missing(at, "kafka needs the option servers", "OPTIONS (servers 'host:9092', topic 'name')")


def _check_own(options: dict[str, Option]) -> None:
    for name, instead in _SPARKS_OWN.items():
        given = options.get(name)
        if given:
            raise conflict(given, f"Spark sets {name} itself", instead)
