"""What message connectors share: a payload in a FORMAT that becomes the declared columns, and back.

A message brings fields of its own beside its payload (Kafka: key, topic, offset …). They are columns
that a query names, `_key` and so on, and that `SELECT *` leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from streamsql.calls import Call, Node, Var, expr, lit
from streamsql.connectors import debezium, schema_registry
from streamsql.connectors.base import (
    Connector,
    OptionSpec,
    Places,
    conflict,
    missing,
    option_table,
    schema_text,
)
from streamsql.connectors.event_metrics import measured
from streamsql.definitions import PAYLOAD_FORMATS, Sink, Stream
from streamsql.error_codes import MALFORMED_MESSAGE
from streamsql.language.statements.base import Column, Name, Option
from streamsql.language.tokens import quote, quote_name, quote_option

MALFORMED = "_malformed"
"""The field for a payload that cannot be parsed (Spark guide: columnNameOfCorruptRecord)."""
GIVEN = "_given"
"""The field of a message in a test that takes a row instead of a payload."""
COUNTED = "malformed"
"""The prefix of the names of metrics that count malformed messages, in Spark's progress reports."""

SCHEMA, SCHEMA_FILE = "avroSchema", "avroSchemaFile"
"""The options that hold the Avro schema of the payload, or name the file that does."""

_TIMES = option_table("""
    dateFormat = yyyy-MM-dd -- pattern of dates in the payload
    timestampFormat -- pattern of timestamps in the payload
    timestampNTZFormat -- pattern of timestamps without time zone in the payload
    timeZone -- time zone of timestamps without one
    locale = en-US -- language of day and month names
""")
_CSV = option_table(r"""
    sep = , -- separator between fields of a csv payload
    quote: single character = " -- quote character of a csv payload
    escape: single character = \ -- escape character for quotes in a csv payload
    nullValue -- text that means NULL in a csv payload
""")
_AVRO = (
    *option_table("""
        avroSchema -- the Avro schema of the payload, as JSON
        avroSchemaFile: path -- a file with the Avro schema of the payload
        wireFormat: plain, confluent = plain -- plain, or confluent: five bytes (a zero and the schema's id)
            before the payload
    """),
    *schema_registry.OPTIONS,
)
_PROTOBUF = (
    OptionSpec(
        "descriptorFile", "the descriptor file of the payload: protoc --include_imports -o FILE", "path"
    ),
    OptionSpec("message", "the name of the message type in the descriptor file"),
)
FORMAT_OPTIONS = {
    "json": _TIMES,
    "csv": (*_TIMES, *_CSV),
    "avro": _AVRO,
    "protobuf": _PROTOBUF,
    "text": (),
    "raw": (),
    debezium.FORMAT: _TIMES,
}
"""Format → the options that say how a payload is read or written."""
ALL_OPTIONS = tuple(dict.fromkeys(spec for specs in FORMAT_OPTIONS.values() for spec in specs))
"""Those of all formats."""


@dataclass(frozen=True)
class Payload:
    """Where a connector's messages are: the payload is a column `value`, of type TEXT or BINARY. fields:
    metadata column → the expression that gives it; place: a TEXT expression that says which message.
    """

    fields: Mapping[str, str]
    place: str


class MessageConnector(Connector):
    """A source of messages. fields: the metadata columns of all its messages; place: a TEXT expression that
    says which message.
    """

    fields: tuple[Column, ...] = ()
    place = ""

    def format_of(self, stream: Stream) -> str:
        """json for declared columns, else text."""
        return stream.format or ("json" if stream.columns else "text")

    def columns(self, stream: Stream) -> tuple[Column, ...]:
        if stream.rejected:
            return rejected_columns(self.fields)
        form = self.format_of(stream)
        return () if form in PAYLOAD_FORMATS else (payload_column(form),)

    def metadata(self, stream: Stream) -> tuple[Column, ...]:
        return () if stream.rejected else self.fields

    def payload(self, stream: Stream) -> Payload:
        """Where the messages of a stream are."""
        return Payload({c.name: c.name.removeprefix("_") for c in self.fields}, self.place)

    def decoded(self, frame: Node, stream: Stream) -> Node:
        """The calls that make messages the columns of a stream."""
        return read(frame, stream, self.payload(stream), self.format_of(stream))

    def now(self, stream: Stream, places: Places) -> Node | None:
        """The calls that give the existing messages as a static DataFrame; None where there are none."""
        return None

    def at_rest(self, stream: Stream, places: Places) -> Node | None:
        frame = self.now(stream, places)
        if frame is None:
            return None
        # What cannot be parsed is skipped: it would end the preview.
        rows = self.decoded(frame, replace(stream, malformed="skip", counted=False))
        return debezium.at_rest(rows) if self.format_of(stream) == debezium.FORMAT else rows

    def infer(self, stream: Stream) -> Node | None:
        return infer(stream)

    def before_watermark(self, stream: Stream, frame: Node) -> Node:
        return measured(frame, stream)

    def check_stream(self, stream: Stream, options: dict[str, Option], at: Name) -> None:
        check_format(self.format_of(stream), options, at, reads=True)


def payload_column(form: str) -> Column:
    """The one column of a format that has no others."""
    return Column("value", "BINARY" if form == "raw" else "STRING")


def read(frame: Node, stream: Stream, payload: Payload, form: str) -> Node:
    """The calls that make messages a stream's columns and the metadata columns that it is to have."""
    if stream.rejected:
        fields = [expr(f"{e} AS {name}") for name, e in payload.fields.items() if name != "_headers"]
        frame = _with_parsed(frame, stream, form).call("where", expr(_malformed(form)))
        return frame.call("select", expr("CAST(value AS STRING) AS payload"), *fields)
    fields = [expr(f"{payload.fields[name]} AS {name}") for name in stream.metadata]
    if form not in PAYLOAD_FORMATS:
        value = "value" if form == "raw" else "CAST(value AS STRING)"
        return frame.call("select", expr(f"{value} AS value"), *fields)
    columns = [expr(f"{_column(stream, c)} AS {quote_name(c.name)}") for c in stream.columns]
    frame, bad = _with_parsed(frame, stream, form), _malformed(form)
    if form == debezium.FORMAT:
        columns = [expr(f"_row.row.{quote_name(c.name)} AS {quote_name(c.name)}") for c in stream.columns]
    # The count also keeps Spark from reading each payload twice, for the filter and for its columns.
    if stream.counted:
        frame = frame.call("observe", f"{COUNTED} {stream.name}", expr(f"count_if({bad}) AS messages"))
    frame = frame.call("where", expr(_row_condition(stream, payload, bad)))
    if form == debezium.FORMAT:
        return debezium.rows(frame, columns, fields)
    return frame.call("select", *columns, *fields)


def rejected_columns(fields: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns of NAME$malformed: the payload, and all metadata columns but the headers."""
    return (Column("payload", "STRING"), *(f for f in fields if f.name != "_headers"))


def _malformed(form: str) -> str:
    """The condition of the messages that cannot be read."""
    corrupt = f" OR _parsed.{MALFORMED} IS NOT NULL" if form in ("json", "csv", debezium.FORMAT) else ""
    corrupt += f" OR {debezium.MALFORMED}" if form == debezium.FORMAT else ""
    return f"value IS NOT NULL AND (_parsed IS NULL{corrupt})"


def _row_condition(stream: Stream, payload: Payload, bad: str) -> str:
    """The condition of the rows that are kept. By default a malformed message ends the query."""
    if stream.malformed in ("skip", "into"):
        return f"NOT ({bad})"
    why = "substr(CAST(value AS STRING), 1, 200)"
    if schema_registry.uses(stream):
        why = "coalesce(_read.fault, concat('its bytes do not match schema ', _read.writer))"
    said = f"concat('[{MALFORMED_MESSAGE}] malformed message in ', {payload.place}, ': ', {why})"
    return f"NOT ({bad}) OR raise_error({said}) IS NULL"


def _column(stream: Stream, column: Column) -> str:
    """A column of the payload; that of a registry's schema may have another type than was declared."""
    field = f"_parsed.{quote_name(column.name)}"
    if stream.stands_for is not None:
        return f"coalesce({GIVEN}.{quote_name(column.name)}, {field})"
    return f"CAST({field} AS {column.type})" if schema_registry.uses(stream) else field


def _with_parsed(frame: Node, stream: Stream, form: str) -> Node:
    """The frame with a column _parsed, NULL where a payload cannot be read."""
    if schema_registry.uses(stream):
        given = (stream.option("avroSchema"), *filter(None, [stream.option("subject")]))
        reader = schema_registry.client(stream).call("reader", *given)
        frame = frame.call("select", expr("*"), Call(reader, (expr("value"),)).call("alias", "_read"))
    frame = frame.call("select", expr("*"), _parsed(stream, form))
    return debezium.with_change(frame) if form == debezium.FORMAT else frame


def _parsed(stream: Stream, form: str) -> Node:
    if form == "protobuf":
        columns = schema_text(stream.rejected or stream.columns)
        arguments = stream.option("descriptorFile"), stream.option("message"), columns
        decoder = Call(Var("protobuf_reader"), tuple(map(lit, arguments)))
        return Call(decoder, (expr("value"),)).call("alias", "_parsed")
    if form == "avro":
        if schema_registry.uses(stream):
            value = "_read.avro"
        elif stream.option("wireFormat").casefold() == "confluent":
            value = "concat(X'02', substring(value, 6), X'00')"
        else:
            value = "concat(X'02', value, X'00')"
        # As a list of one: it is NULL when it cannot be read, where a record would be one of NULLs.
        schema = quote(f'{{"type":"array","items":{stream.option("avroSchema")}}}')
        return expr(f"from_avro({value}, {schema}, map('mode', 'PERMISSIVE'))[0] AS _parsed")
    of_rows = stream.rejected or stream.columns
    schema = debezium.schema(of_rows) if form == debezium.FORMAT else schema_text(of_rows)
    schema = f"{schema}, {MALFORMED} STRING"
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED, **_options_of(stream, form)}
    given = ", ".join(f"{quote(k)}, {quote_option(v)}" for k, v in options.items())
    reader = "from_csv" if form == "csv" else "from_json"
    return expr(f"{reader}(CAST(value AS STRING), {quote(schema)}, map({given})) AS _parsed")


def _options_of(entry: Stream | Sink, form: str) -> dict[str, str]:
    """The options of a stream or sink that say how a payload is read or written, as Spark spells them."""
    spellings = {s.name.casefold(): s.name for s in FORMAT_OPTIONS[form]}
    return {spellings[k.casefold()]: v for k, v in entry.options if k.casefold() in spellings}


def infer(stream: Stream) -> Node | None:
    """The DataFrame whose columns are those of an Avro schema, one of a registry once it has been asked
    for it; other formats tell none.
    """
    if stream.format != "avro":
        return None
    empty = f"SELECT from_avro(CAST(NULL AS BINARY), {quote(stream.option('avroSchema'))}) AS payload"
    return Var("spark").call("sql", empty).call("select", "payload.*")


def written(frame: Node, sink: Sink, form: str, *, changes: bool = False) -> Node:
    """The calls that make rows messages: columns key, value and what else a message has. changes: whether the
    rows of FORMAT debezium_json are in envelopes already.
    """
    options = _options_of(sink, form)
    if form == debezium.FORMAT:
        envelopes = frame if changes else debezium.envelopes(frame)
        pairs = [[k, v] for k, v in options.items()]
        return Call(Var("envelope_messages"), tuple(map(lit, (envelopes, list(sink.key), pairs))))
    writer: object = form
    if form == "protobuf":
        writer = Call(Var("protobuf_writer"), (lit(options["descriptorFile"]), lit(options["message"])))
    elif schema_registry.uses(sink):
        writer = _registered(sink)
    elif form == "avro":
        writer = Call(Var("avro_writer"), (lit(options["avroSchema"]),) if "avroSchema" in options else ())
    given = [[k, v] for k, v in options.items()] if form in ("json", "csv") else []
    arguments = (frame, writer, list(sink.key), *([given] if given else []))
    return Call(Var("to_messages"), tuple(map(lit, arguments)))


def _registered(sink: Sink) -> Node:
    """The calls that write by a schema of a registry."""
    named: dict[str, object] = {}
    if sink.option("avroSchema"):
        named["schema"] = sink.option("avroSchema")
    if sink.option("autoRegister").casefold() == "false":
        named["register"] = False
    return schema_registry.client(sink).call("writer", schema_registry.subject(sink), **named)


def check_format(form: str, options: dict[str, Option], at: Name, *, reads: bool) -> None:
    """Raise a placed error for an option of another format, or one that the format cannot do without."""
    for name in FORMAT_OPTIONS:
        for spec in FORMAT_OPTIONS[name]:
            given = options.get(spec.name.casefold())
            if given and spec not in FORMAT_OPTIONS[form]:
                fact = f"{given.key} belongs to FORMAT {name}, and the payload is {form}"
                raise conflict(given, fact, f"FORMAT {name}")
    wanted = []
    schema_options = {"avroschema", "avroschemafile", "schemaregistry"}
    if form == "avro" and reads and not schema_options & set(options):
        wanted = [SCHEMA_FILE]
    if form == "protobuf":
        wanted = [n for n in ("descriptorFile", "message") if n.casefold() not in options]
    if wanted:
        spec = next(s for s in FORMAT_OPTIONS[form] if s.name == wanted[0])
        fact = f"FORMAT {form} needs the option {spec.name}"
        raise missing(at, fact, f"OPTIONS (…, {spec.name} '…')", spec.help)
