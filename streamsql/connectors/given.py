"""values, and in a test the streams of messages that GIVEN gives rows to.

The stream of a test that stands for one of Kafka's, for example, has the same format. Its files are messages:
payloads, which are decoded as those of the original are, or rows under the declared columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamsql.calls import Call, Node, Var, expr
from streamsql.connectors import debezium, messages, schema_registry
from streamsql.connectors import rows as rows_of_files
from streamsql.connectors.base import Places, read, read_stream, schema_text
from streamsql.connectors.kafka import FIELDS, Kafka
from streamsql.connectors.messages import GIVEN, Payload
from streamsql.connectors.socket import Socket
from streamsql.connectors.values import Values, hidden_column, inserted, moment_text
from streamsql.definitions import PAYLOAD_FORMATS, ROW_FILES, Stream
from streamsql.error_codes import MALFORMED_MESSAGE
from streamsql.language.statements.base import Column
from streamsql.language.tokens import quote_name

PAYLOAD = "_value"
"""The column of GIVEN for the payload itself."""
_LINES = frozenset(("json", "csv", "text", debezium.FORMAT))
"""The formats of which a file holds a message in each line."""
_PLACE = "'what GIVEN gave'"
_REFUSED = (
    f"concat('[{MALFORMED_MESSAGE}] a row of ', regexp_replace({rows_of_files.FILE}, '^file:/+', '/'), "
    f"' cannot be read\\nthe row: ', substr({rows_of_files.PAYLOAD}, 1, 200))"
)
"""What ends a query at a row that cannot be read: the words of a stream of files."""


def takes_messages(original: Stream) -> bool:
    """Whether the stream that stands for another one decodes messages."""
    if schema_registry.uses(original):
        return False  # there is no registry in a test
    return original.connector == "kafka" or original.format in PAYLOAD_FORMATS


def message_format(original: Stream) -> str:
    """The format of its messages."""
    return Kafka().format_of(original) if original.connector == "kafka" else original.format


def format_options(original: Stream) -> tuple[tuple[str, str], ...]:
    """Its options that say how a payload is read."""
    option_names = {spec.name.casefold() for spec in messages.FORMAT_OPTIONS[message_format(original)]}
    return tuple((k, v) for k, v in original.options if k.casefold() in option_names)


class Given(Values):
    """values, with messages where a stream stands for one of messages."""

    def metadata(self, stream: Stream) -> tuple[Column, ...]:
        return () if stream.rejected else _fields(stream)

    def columns(self, stream: Stream) -> tuple[Column, ...]:
        if stream.rejected:
            return (
                rows_of_files.REJECTED_COLUMNS
                if _tells(stream)
                else messages.rejected_columns(_fields(stream))
            )
        return super().columns(stream)

    def source(self, stream: Stream, places: Places) -> Node:
        if not _decodes(stream) and not _tells(stream):
            return super().source(stream, places)
        written = _rows_written(stream) if _tells(stream) else _written(stream)
        reader = read_stream("parquet").call("schema", schema_text(written))
        reader = reader.call("option", "maxFilesPerTrigger", "1").call("option", "maxFileAge", "36500d")
        if _tells(stream):
            return _rows_of_file(stream, reader.call("load", _folder(stream, places)))
        return _decoded(stream, reader.call("load", _folder(stream, places)))

    def at_rest(self, stream: Stream, places: Places) -> Node:
        if _tells(stream):
            reader = read("parquet").call("schema", schema_text(_rows_written(stream)))
            frame = _rows_of_file(stream, reader.call("load", _folder(stream, places)))
            return inserted(stream, frame) if stream.watermark else frame
        if not _decodes(stream):
            return super().at_rest(stream, places)
        reader = read("parquet").call("schema", schema_text(_written(stream)))
        # What cannot be parsed is skipped, and was counted when the query read it.
        readable = replace(stream, malformed="skip", counted=False)
        frame = _decoded(readable, reader.call("load", _folder(stream, places)))
        return inserted(stream, frame) if stream.watermark else frame

    def given_columns(self, stream: Stream) -> tuple[Column, ...]:
        if not _decodes(stream):
            return super().given_columns(stream)
        own = () if stream.is_of_changes else stream.columns
        fields = tuple(f for f in _fields(stream) if f.name != PAYLOAD)
        return (*own, *fields, Column(PAYLOAD, "BINARY"))

    def written(self, stream: Stream, rows: Node, given: Sequence[str]) -> Node:
        if _tells(stream):
            extras = (expr(name) for name in (rows_of_files.PAYLOAD, rows_of_files.FILE) if name in given)
            frame = super().written(stream, rows, given)
            assert isinstance(frame, Call)
            return replace(frame, args=(*frame.args, *extras))
        if not _decodes(stream):
            return super().written(stream, rows, given)
        given_names = {name.casefold() for name in given}
        text = stream.format not in PAYLOAD_FORMATS

        def value(column: Column) -> str:
            is_given = column.name.casefold() in given_names
            return f"CAST({quote_name(column.name) if is_given else 'NULL'} AS {column.type})"

        payload = "value" if text and PAYLOAD not in given_names else PAYLOAD
        columns = [value(Column(payload, "BINARY")) + " AS value"]
        columns += [f"{value(f)} AS {f.name}" for f in _fields(stream) if f.name != PAYLOAD]
        own = [f"{value(c)} AS {quote_name(c.name)}" for c in stream.columns]
        if any(c.name.casefold() in given_names for c in stream.columns) and not text:
            columns.append(f"struct({', '.join(own)}) AS {GIVEN}")
        return rows.call("toDF", *given).call("select", *map(expr, columns))

    def advance(self, stream: Stream, moment: str, places: Places) -> Node:
        if not _decodes(stream):
            return super().advance(stream, moment, places)
        assert stream.watermark
        at, time = moment_text(moment), stream.watermark.column.value.casefold()

        def value(column: Column) -> str:
            return f"CAST({at if column.name.casefold() == time else 'NULL'} AS {column.type})"

        own = ", ".join(f"{value(c)} AS {quote_name(c.name)}" for c in stream.columns)
        fields = [f"{value(f)} AS {f.name}" for f in _fields(stream) if f.name != PAYLOAD]
        columns = [*fields, f"struct({own}) AS {GIVEN}", f"{at} AS {hidden_column(stream).name}"]
        row = Var("spark").call("range", 1).call("select", *map(expr, columns))
        write = row.call("coalesce", 1).attr("write").call("mode", "append")
        return write.call("parquet", _folder(stream, places))


def file_rows(stream: Stream, path: str) -> Node | None:
    """The rows of a file, with those that cannot be read; None where the stream does not tell these."""
    original = stream.stands_for
    if original is None or not _tells(stream):
        return None
    return rows_of_files.at_rest(original.connector, replace(original, columns=stream.columns), path)


def _tells(stream: Stream) -> bool:
    """Whether a stream stands for one of files, whose rows may be malformed."""
    original = stream.stands_for
    if original is None or original.connector not in ROW_FILES or takes_messages(original):
        return False
    # With ON MALFORMED FAIL, too, the row is given, so that it is the query that fails.
    skipping = replace(original, columns=stream.columns, malformed="skip")
    return bool(stream.rejected or rows_of_files.separates_malformed(skipping))


def _rows_written(stream: Stream) -> tuple[Column, ...]:
    """The columns of the files of such a stream."""
    more = (Column(rows_of_files.PAYLOAD, "STRING"), Column(rows_of_files.FILE, "STRING"))
    hidden = (hidden_column(stream),) if stream.watermark else ()
    return (*(stream.rejected or stream.columns), *more, *hidden)


def _rows_of_file(stream: Stream, frame: Node) -> Node:
    """The rows that such a stream has; of NAME$malformed, those that cannot be read."""
    bad = f"{rows_of_files.PAYLOAD} IS NOT NULL"
    if stream.rejected:
        frame = frame.call("where", expr(bad))
        return frame.call(
            "select", expr(f"{rows_of_files.PAYLOAD} AS payload"), expr(f"{rows_of_files.FILE} AS file")
        )
    assert stream.stands_for
    mode = rows_of_files.mode_of(stream.stands_for)
    if mode == "DROPMALFORMED":
        frame = frame.call("where", expr(f"NOT ({bad})"))
    elif mode == "FAILFAST":
        frame = frame.call("where", expr(f"NOT ({bad}) OR raise_error({_REFUSED}) IS NULL"))
    return frame.call("drop", rows_of_files.PAYLOAD, rows_of_files.FILE)


def message_rows(stream: Stream, path: str) -> Node:
    """The messages of a file, as a column PAYLOAD: its lines, or all of it where a message is binary."""
    if stream.format in _LINES:
        return read("text").call("load", path).call("select", expr(f"value AS {PAYLOAD}"))
    return read("binaryFile").call("load", path).call("select", expr(f"content AS {PAYLOAD}"))


def _decodes(stream: Stream) -> bool:
    return stream.stands_for is not None and takes_messages(stream.stands_for)


def _fields(stream: Stream) -> tuple[Column, ...]:
    """The metadata columns of its messages."""
    original = stream.stands_for
    if original is None or not takes_messages(original):
        return ()
    if original.connector == "kafka":
        return FIELDS
    return Socket().metadata(original) if original.connector == "socket" else ()


def _folder(stream: Stream, places: Places) -> str:
    assert stream.stands_for
    return places.values(stream.stands_for.name)


def _written(stream: Stream) -> tuple[Column, ...]:
    """The columns of its files."""
    fields = tuple(f for f in _fields(stream) if f.name != PAYLOAD)
    columns = (Column("value", "BINARY"), *fields)
    if stream.columns:
        columns = (*columns, Column(GIVEN, f"STRUCT<{schema_text(stream.columns)}>"))
    return (*columns, hidden_column(stream)) if stream.watermark else columns


def _decoded(stream: Stream, frame: Node) -> Node:
    """The rows of messages; the hidden column of ADVANCE STREAM stays."""
    fields = {f.name: f.name for f in _fields(stream)}
    if PAYLOAD in fields:
        fields[PAYLOAD] = "CAST(value AS STRING)"
    decoded = stream
    if stream.watermark and not stream.rejected:
        name = hidden_column(stream).name
        fields[name] = name
        decoded = _with_field(stream, name)
    return messages.read(frame, decoded, Payload("value", fields, _PLACE), stream.format)


def _with_field(stream: Stream, name: str) -> Stream:
    return replace(stream, metadata=(*stream.metadata, name))
