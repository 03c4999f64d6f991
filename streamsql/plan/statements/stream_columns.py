"""The columns that CREATE STREAM declares: whether its connector and its format have them, and event time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamsql.connectors.base import Connector
from streamsql.definitions import PAYLOAD_FORMATS, Stream
from streamsql.errors import NameFault, Note, RuleFault, did_you_mean
from streamsql.language.statements.base import Column, Watermark
from streamsql.language.statements.stream import CreateStream
from streamsql.language.tokens import quote, quote_name


def read_otherwise(columns: tuple[Column, ...]) -> Iterator[Note]:
    """Notes about columns whose declared type is read as another one."""
    for column in columns:
        if "(" in column.declared:
            padding = "it is not padded, and " if _CHAR.search(column.declared) else ""
            what = f"{column.name} {column.declared} is read as {column.type}"
            yield Note("READ_AS", f"{what}: {padding}its length is not checked")


_CHAR = re.compile(r"\bchar(acter)?\s*\(", re.IGNORECASE)


def check_columns(statement: CreateStream, stream: Stream, using: Connector) -> None:
    """Raise RuleFault for columns that the connector, or the format of its messages, does not take."""
    assert statement.connector
    written = quote_name(statement.name.value)
    if using.needs_columns and not statement.columns:
        raise RuleFault(
            f"a {using.name} stream declares its columns",
            hint=f"CREATE STREAM {written} (id INT, ts TIMESTAMP) USING {using.name} …",
            span=statement.connector.span,
            code="MISSING_COLUMNS",
        )
    parsed = stream.format in PAYLOAD_FORMATS
    fields = {f.name.casefold() for f in using.metadata(stream)}
    own = next((c for c in statement.columns if c.name.casefold() in fields), None)
    if own:
        raise RuleFault(
            f"{own.name} is a field of the message itself",
            hint=f"omit it from the column list: queries can use {own.name} anyway",
            span=own.span,
            code="FIXED_COLUMNS",
        )
    parsers = " | ".join(f for f in using.formats if f in PAYLOAD_FORMATS)
    fixed = using.fixed_columns or (using.formats and not parsed)
    if fixed and statement.columns and using.name != "text":
        listed = ", ".join(f"{c.name} {c.type}" for c in using.fixed_columns) or "value STRING"
        raise RuleFault(
            f"the columns of {using.name} are fixed: {listed}",
            hint="omit the column list" + (f", or add FORMAT {parsers}" if parsers else ""),
            span=statement.columns[0].span,
            code="FIXED_COLUMNS",
        )
    if parsed and not statement.columns and using.infer(stream) is None:
        assert statement.format
        raise RuleFault(
            f"FORMAT {statement.format} needs the columns of the payload",
            hint=f"CREATE STREAM {written} (id INT, …) USING {using.name} FORMAT {statement.format} …",
            span=statement.format.span,
            code="MISSING_COLUMNS",
        )


def check_types(statement: CreateStream, reader: Connector) -> None:
    """Raise RuleFault for a column of a type that is not read in the format: each query would fail. reader:
    the connector of the format.
    """
    for column in statement.columns:
        kind = next((k for k in column.kinds if k in reader.no_types), "")
        if kind:
            nested = kind in ("ARRAY", "MAP", "STRUCT")
            given = f"from_json({quote_name(column.name)}, {quote(column.type)}) in a query"
            raise RuleFault(
                f"{reader.name} has no values of type {kind}",
                hint=f"{quote_name(column.name)} STRING" + (f", and {given}" if nested else ""),
                span=column.span,
                code="WRONG_TYPE",
            )
        if column.type.upper() in ("GEOMETRY", "GEOGRAPHY"):
            raise RuleFault(
                f"the type {column.type.upper()} needs a reference system",
                hint=f"{quote_name(column.name)} {column.type.upper()}(4326)",
                span=column.span,
                code="WRONG_TYPE",
            )


def check_watermark(watermark: Watermark | None, columns: tuple[Column, ...]) -> None:
    """Check that the event-time column is a timestamp (Spark guide, withWatermark). columns: empty if they
    are not known yet.

    Raises NameFault or RuleFault with the span of the watermark's column.
    """
    if watermark is None or watermark.computed or not columns:
        return
    name = watermark.column.value
    column = next((c for c in columns if c.name.casefold() == name.casefold()), None)
    if column is None:
        raise NameFault(
            f"there is no column {name} for the watermark",
            hint=did_you_mean(name, [c.name for c in columns])
            or f"columns: {', '.join(c.name for c in columns)}",
            span=watermark.column.span,
            code="UNKNOWN_COLUMN",
        )
    kind = column.type.upper()
    if not kind.startswith("TIMESTAMP") or kind.startswith("TIMESTAMP_NTZ"):
        raise RuleFault(
            f"the watermark's column {name} is {column.type.lower()}, not a timestamp",
            hint=f"WITH WATERMARK to_timestamp({name}) AS event_time DELAY '{watermark.delay}'",
            span=watermark.column.span,
            code="WRONG_TYPE",
        )
