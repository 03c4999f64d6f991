"""Reads the file with the Avro schema of a stream or sink, once, when the stream or sink is created, and
compares the columns of a stream with the message type of its descriptor file.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from streamsql.connectors.messages import SCHEMA, SCHEMA_FILE
from streamsql.definitions import Sink, Stream
from streamsql.errors import InputFault, NameFault, did_you_mean
from streamsql.language.statements.base import Name
from streamsql.runtime.embedded.message_codecs import ProtobufKind

Entry = TypeVar("Entry", Stream, Sink)


def with_schema_file(entry: Entry, place: Name | None = None) -> Entry:
    """A stream or sink with the Avro schema itself in place of its file, so that later changes of the file
    have no effect; others unchanged.

    place: the option that names the file. Raises InputFault when it cannot be read.
    """
    file = entry.option(SCHEMA_FILE)
    if not file:
        return entry
    schema = _read(file, place)
    options = (
        (SCHEMA, schema) if k.casefold() == SCHEMA_FILE.casefold() else (k, v) for k, v in entry.options
    )
    return replace(entry, options=tuple(options))


def check_described(stream: Stream) -> None:
    """Raise NameFault, with its span, for a column that the message type of a protobuf stream does not have:
    it would be NULL in each row. A descriptor file that cannot be read is told when a query starts.
    """
    if stream.format != "protobuf":
        return
    message = stream.option("message")
    try:
        described = ProtobufKind(stream.option("descriptorFile"), message).make().DESCRIPTOR
    except ValueError:
        return
    names = [field.name for field in described.fields]
    for column in stream.columns:
        if column.name not in names:
            raise NameFault(
                f"the message {message} has no field {column.name}",
                hint=did_you_mean(column.name, names) or f"fields: {', '.join(names)}",
                span=column.span,
                code="UNKNOWN_COLUMN",
            )


def _read(path: str, place: Name | None) -> str:
    span = place.span if place else None
    try:
        return json.dumps(json.loads(Path(path).expanduser().read_text("utf-8")))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputFault(
            f"cannot read {path}: {reason}",
            hint="the path of an .avsc file; a relative one starts at the current folder",
            span=span,
            code="MISSING_PATH" if isinstance(error, FileNotFoundError) else "",
        ) from None
    except ValueError as error:
        raise InputFault(
            f"{path} is not JSON: {error}", hint="an Avro schema is a JSON text", span=span, code="BAD_SCHEMA"
        ) from None
