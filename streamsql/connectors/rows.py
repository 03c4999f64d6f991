"""Rows of csv, json and xml files that cannot be parsed: counted, skipped, or written to a sink.

Spark gives them in a column (columnNameOfCorruptRecord, Spark guide: JSON, CSV and XML Files), which is read
for the count and left out again unless the stream declares it.
"""

from __future__ import annotations

from streamsql.calls import Node, expr
from streamsql.connectors.base import read as static
from streamsql.connectors.base import read_stream, schema_text, with_options
from streamsql.connectors.messages import COUNTED, MALFORMED
from streamsql.definitions import ROW_FILES, Stream
from streamsql.language.statements.base import Column
from streamsql.language.tokens import quote_name

REJECTED_COLUMNS = (Column("payload", "STRING"), Column("file", "STRING"))
FILLED = "filled"
"""The metric that says for each of read_columns how many rows have a value."""
PAYLOAD, FILE = "_malformed_payload", "_malformed_file"
_OWN_OPTIONS = ("path", "mode", "columnNameOfCorruptRecord")
# What ON MALFORMED says, as Spark's modes.
_MODES = {"fail": "FAILFAST", "skip": "DROPMALFORMED", "into": "DROPMALFORMED"}


def corrupt_column(stream: Stream) -> str:
    """The name under which Spark would show a row that it cannot read."""
    return stream.option("columnNameOfCorruptRecord", "_corrupt_record")


def read_columns(stream: Stream) -> tuple[str, ...]:
    """The columns of a stream that are read from its rows, without that for what cannot be read."""
    columns = stream.rejected or stream.columns
    return tuple(c.name for c in columns if c.name.casefold() != corrupt_column(stream).casefold())


def mode_of(stream: Stream) -> str:
    """PERMISSIVE, DROPMALFORMED or FAILFAST."""
    return _MODES.get(stream.malformed) or stream.option("mode", "PERMISSIVE").upper()


def binds_by_name(stream: Stream) -> bool:
    """Whether a csv file whose header is not that of the columns is an error. Spark takes the columns by
    their position; it compares the header with them, unless enforceSchema is true.
    """
    header = stream.option("header").casefold() == "true"
    return stream.connector == "csv" and header and stream.option("enforceSchema").casefold() != "true"


def options_of(stream: Stream) -> tuple[tuple[str, str], ...]:
    """The options of a stream, under which Spark compares the header of csv files with the columns."""
    if binds_by_name(stream) and stream.columns and not stream.option("enforceSchema"):
        return (*stream.options, ("enforceSchema", "false"))
    return stream.options


def keeps_malformed(stream: Stream) -> bool:
    """Whether a row that cannot be read is in the stream, with NULL in place of its values."""
    return stream.connector in ROW_FILES and mode_of(stream) == "PERMISSIVE"


def as_said(stream: Stream) -> tuple[tuple[str, str], ...]:
    """The options of a stream, with the parse mode that ON MALFORMED implies."""
    return (*options_of(stream), ("mode", mode_of(stream))) if stream.malformed else options_of(stream)


def separates_malformed(stream: Stream) -> bool:
    """Whether a streaming program distinguishes the rows that cannot be read."""
    if stream.rejected:
        return True
    return bool(stream.columns and mode_of(stream) != "FAILFAST" and not stream.option("singleVariantColumn"))


def at_rest(format: str, stream: Stream, path: str) -> Node:
    """The calls that read a file of a stream, with more columns: PAYLOAD, the text of a row that cannot be
    read, and FILE, its file.
    """
    schema = schema_text((Column(MALFORMED, "STRING"), *stream.columns))
    reader = with_options(static(format), options_of(stream), skip=_OWN_OPTIONS)
    reader = reader.call("schema", schema).call("option", "columnNameOfCorruptRecord", MALFORMED)
    if format == "csv":
        reader = reader.call("option", "columnPruning", "false")
    columns = (expr(quote_name(c.name)) for c in stream.columns)
    own = (expr(f"{MALFORMED} AS {PAYLOAD}"), expr(f"_metadata.file_path AS {FILE}"))
    return reader.call("load", path).call("select", *columns, *own)


def read(format: str, stream: Stream) -> Node:
    """The calls that read a stream, counting what cannot be read; of NAME$malformed, nothing but that."""
    columns = stream.rejected or stream.columns
    name = corrupt_column(stream).casefold()
    declared = next((c.name for c in columns if c.name.casefold() == name), "")
    corrupt = declared or MALFORMED
    # In front: Spark takes the last columns for those of the folders (partition=…).
    schema = schema_text(columns if declared else (Column(MALFORMED, "STRING"), *columns))
    reader = with_options(read_stream(format).call("schema", schema), options_of(stream), skip=_OWN_OPTIONS)
    if format == "csv":  # else a row counts as bad for some queries only, by the columns that they read
        reader = reader.call("option", "columnPruning", "false")
    frame = reader.call("option", "columnNameOfCorruptRecord", corrupt).call("load", stream.option("path"))
    bad = f"{quote_name(corrupt)} IS NOT NULL"
    # Spark tells a row as unreadable by the columns that a query reads: here all of them, in each reading.
    names = [quote_name(name) for name in read_columns(stream) or (corrupt,)]
    if stream.rejected:
        row = f"CAST(struct({', '.join(names)}) AS STRING)"
        payload = expr(f"coalesce({quote_name(corrupt)}, {row}) AS payload")
        # The second condition holds for each row: with it a query that reads no payload is read the same way.
        frame = frame.call("where", expr(f"{bad} AND length({row}) > 0"))
        return frame.call("select", payload, expr("_metadata.file_path AS file"))
    if stream.counted:
        filled = ", ".join(f"count({name})" for name in names)
        counts = [f"count_if({bad}) AS rows", f"array({filled}) AS {FILLED}"]
        frame = frame.call("observe", f"{COUNTED} {stream.name}", *map(expr, counts))
    if mode_of(stream) == "DROPMALFORMED":
        frame = frame.call("where", expr(f"NOT ({bad})"))
    return frame if declared else frame.call("drop", MALFORMED)
