"""Calls the schema registry on the driver: for the schema of a stream, and to register that of a query's
rows before it starts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from streamsql.calls import Node, evaluate
from streamsql.connectors import schema_registry
from streamsql.connectors.registry import connector
from streamsql.definitions import Sink, Stream
from streamsql.errors import InputFault, NameFault, RuleFault, did_you_mean
from streamsql.language.statements.base import Column, Name
from streamsql.runtime.embedded.registry_codecs import SchemaRegistry
from streamsql.runtime.embedded.secret_references import filled
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.preflight.connectivity import check_servers


def with_schema(stream: Stream) -> Stream:
    """A stream of a schema registry with the newest schema of its subject, which is used from now on; other
    streams unchanged. Raises EngineFault when the registry does not answer or has no schema, NameFault
    with a span for a column that the schema does not have.
    """
    if not schema_registry.uses(stream):
        return stream
    if not stream.option("avroSchema"):
        check_servers((stream,), registries_only=True)
        env = {"SchemaRegistry": SchemaRegistry, "filled": filled}
        try:
            _, schema = evaluate(schema_registry.client(stream), env).newest(schema_registry.subject(stream))
        except ValueError as error:
            raise translate(error) from None
        stream = replace(stream, options=(*stream.options, ("avroSchema", schema)))
    if stream.option("avroSchema"):
        _check_columns(stream.columns, stream.option("avroSchema"))
    return stream


@contextmanager
def asked_again() -> Iterator[None]:
    """Inside, registries are called again; running queries keep the earlier answers."""
    before, SchemaRegistry.said = SchemaRegistry.said, {}
    try:
        yield
    finally:
        SchemaRegistry.said = before | SchemaRegistry.said


def register_schemas(targets: Iterable[tuple[Sink, Node]], env: dict[str, Any]) -> None:
    """Register the schemas of the rows that sinks receive, or check that they exist. Raises ValueError."""
    with asked_again():
        for sink, rows in targets:
            if schema_registry.uses(sink):
                evaluate(connector(Name(sink.connector)).prepared(sink, rows), env)


def _check_columns(columns: Iterable[Column], text: str) -> None:
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise InputFault(f"avroSchema is not JSON: {error}", code="BAD_SCHEMA") from None
    if not isinstance(schema, dict) or "fields" not in schema:
        raise RuleFault(
            "the schema of the payload is not a record, so it has no columns",
            hint="FORMAT raw reads the bytes",
            code="BAD_SCHEMA",
        )
    names = [f["name"] for f in schema["fields"]]
    for column in columns:
        if column.name.casefold() not in {n.casefold() for n in names}:
            raise NameFault(
                f"the schema of the payload has no field {column.name}",
                hint=did_you_mean(column.name, names) or f"fields: {', '.join(names)}",
                span=column.span,
                code="UNKNOWN_COLUMN",
            )
