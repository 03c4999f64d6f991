"""values, and in a test the streams of messages that GIVEN gives rows to.

The stream of a test that stands for one of Kafka's, for example, has the same format. Its files are messages:
payloads, which are decoded as those of the original are, or rows under the declared columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from streamsql.calls import Node, expr
from streamsql.connectors import debezium, messages, schema_registry
from streamsql.connectors import rows as rows_of_files
from streamsql.connectors.base import Places, read, read_stream, schema_text
from streamsql.connectors.kafka import FIELDS, Kafka
from streamsql.connectors.messages import GIVEN, Payload
from streamsql.connectors.socket import Socket
from streamsql.connectors.values import Values, hidden_column, inserted
from streamsql.definitions import PAYLOAD_FORMATS, ROW_FILES, Stream
from streamsql.error_codes import MALFORMED_MESSAGE
from streamsql.language.statements.base import Column

PAYLOAD = "_value"
"""The column of GIVEN for the payload itself."""
_LINES = frozenset(("json", "csv", "text", debezium.FORMAT))
"""The formats of which a file holds a message in each line."""
_PLACE = "'what GIVEN gave'"
_FROM_FILES = (Column(rows_of_files.PAYLOAD, "STRING"), Column(rows_of_files.FILE, "STRING"))
"""The columns that tell of a row of a file whether it can be read."""
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
        reader = read_stream("parquet").call("schema", schema_text(_written(stream)))
        reader = reader.call("option", "maxFilesPerTrigger", "1").call("option", "maxFileAge", "36500d")
        return _rows(stream, reader.call("load", _folder(stream, places)))

    def at_rest(self, stream: Stream, places: Places) -> Node:
        if not _decodes(stream) and not _tells(stream):
            return super().at_rest(stream, places)
        reader = read("parquet").call("schema", schema_text(_written(stream)))
        # A message that cannot be parsed is skipped, and was counted when the query read it.
        readable = replace(stream, malformed="skip", counted=False) if _decodes(stream) else stream
        frame = _rows(readable, reader.call("load", _folder(stream, places)))
        return inserted(stream, frame) if stream.watermark else frame

    def given_columns(self, stream: Stream) -> tuple[Column, ...]:
        if not _decodes(stream):
            return super().given_columns(stream)
        own = () if stream.is_of_changes else stream.columns
        return (*own, *_fields_beside(stream), Column(PAYLOAD, "BINARY"))

    def row(self, stream: Stream, value: Callable[[Column], str]) -> list[str]:
        own = super().row(stream, value)
        if _tells(stream):
            return own + super().row(replace(stream, columns=_FROM_FILES), value)
        if not _decodes(stream):
            return own
        is_text = stream.format not in PAYLOAD_FORMATS
        payload = value(Column(PAYLOAD, "BINARY"))
        if is_text and payload == "NULL":
            payload = value(Column("value", "BINARY"))
        fields = super().row(replace(stream, columns=_fields_beside(stream)), value)
        columns = [f"CAST({payload} AS BINARY) AS value", *fields]
        if not is_text and any(value(c) != "NULL" for c in stream.columns):
            columns.append(f"struct({', '.join(own)}) AS {GIVEN}")
        return columns


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


def _rows(stream: Stream, frame: Node) -> Node:
    """The rows of files with the columns of `_written`."""
    return _rows_of_file(stream, frame) if _tells(stream) else _decoded(stream, frame)


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


def _fields_beside(stream: Stream) -> tuple[Column, ...]:
    """The same but for the payload."""
    return tuple(field for field in _fields(stream) if field.name != PAYLOAD)


def _folder(stream: Stream, places: Places) -> str:
    assert stream.stands_for
    return places.values(stream.stands_for.name)


def _written(stream: Stream) -> tuple[Column, ...]:
    """The columns of its files."""
    if _tells(stream):
        columns = (*(stream.rejected or stream.columns), *_FROM_FILES)
    else:
        given = (Column(GIVEN, f"STRUCT<{schema_text(stream.columns)}>"),) if stream.columns else ()
        columns = (Column("value", "BINARY"), *_fields_beside(stream), *given)
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
        decoded = replace(stream, metadata=(*stream.metadata, name))
    return messages.read(frame, decoded, Payload(fields, _PLACE), stream.format)
