"""Values, definitions, results and errors in frames: JSON with marked objects, and rows in bulk as Arrow."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from streamsql import definitions, errors, query_facts, results
from streamsql.catalog import Catalog
from streamsql.errors import StreamsqlError
from streamsql.language.origin import Origin
from streamsql.language.python_values import Pairs, map_of
from streamsql.language.statements import base
from streamsql.runtime import console_session
from streamsql.runtime.engine import cancel

TYPE_KEY = "~"
"""The key of an encoded object that holds the name of its type."""
_MODULES = (definitions, results, query_facts, base, console_session, cancel)
KINDS: dict[str, type] = {
    kind.__name__: kind
    for module in _MODULES
    for kind in vars(module).values()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
} | {"Note": errors.Note, "Span": errors.Span, "Source": errors.Source, "Origin": Origin, "Catalog": Catalog}
ERRORS: dict[str, type[StreamsqlError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, StreamsqlError)
}
_ROWS_OF = {
    **dict.fromkeys(("Rows", "InfoRows", "Compared", "Preview", "Why", "Snapshot"), "rows"),
    **dict.fromkeys(("RowStream", "ArrowRows"), "first"),
}
"""The classes with rows, and the field that holds them."""
LIVE_CALLS = (
    "take",
    "changes",
    "freeze",
    "arrow",
    "status",
    "close",
    "fault",
    "said",
    "keep",
    "why",
    "proposal",
)
"""The fields of a Live that are functions: they become calls of the server."""


class Message:
    """An encoded value. body: the rows of it, if they are many."""

    def __init__(self, value: Any) -> None:
        self.body = b""
        self.value = self._encoded(value)

    def _encoded(self, value: Any) -> Any:
        if isinstance(value, StreamsqlError):
            return {TYPE_KEY: "error", "v": encode_error(value)}
        if is_dataclass(value) and not isinstance(value, type):
            return self._object(value)
        if isinstance(value, (list, tuple)) and not hasattr(value, "asDict"):
            parts = [self._encoded(v) for v in value]
            return parts if isinstance(value, list) else {TYPE_KEY: "tuple", "v": parts}
        if isinstance(value, Mapping):
            return {TYPE_KEY: "dict", "v": [[self._encoded(k), self._encoded(v)] for k, v in value.items()]}
        return encode_value(value)

    def _object(self, value: Any) -> Any:
        name = type(value).__name__
        parts: dict[str, Any] = {}
        for field in fields(value):
            part = getattr(value, field.name)
            if name in ("RowStream", "ArrowRows", "Live") and field.name in ("rest", *LIVE_CALLS):
                continue
            if name == "ArrowRows" and field.name == "first":
                self.body, parts[field.name] = pack_batches(part), {}
            elif field.name == _ROWS_OF.get(name):
                inline, self.body = pack_rows(part, encode_value)
                parts[field.name] = inline
            else:
                parts[field.name] = self._encoded(part)
        return {TYPE_KEY: name, "f": parts}


def decode(value: Any, body: bytes = b"") -> Any:
    """The value of a message. Raises KeyError, TypeError or ValueError for what is none."""
    if isinstance(value, list):
        return [decode(v, body) for v in value]
    if not isinstance(value, dict):
        return value
    kind = value[TYPE_KEY]
    if kind == "tuple":
        return tuple(decode(v, body) for v in value["v"])
    if kind == "error":
        return decode_error(value["v"])
    if kind in _DECODED:
        return _DECODED[kind](value["v"])
    parts = {}
    for name, part in value["f"].items():
        is_rows = name == _ROWS_OF.get(kind)
        unpack = unpack_batches if kind == "ArrowRows" else unpack_rows
        parts[name] = unpack(part, body, decode) if is_rows else decode(part, body)
    return KINDS[kind](**parts)


def encode_value(value: Any) -> Any:
    """A value of a row. What Python has no type for is sent as its text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {TYPE_KEY: "float", "v": str(value)}
    if isinstance(value, (dict, Pairs)):
        return {TYPE_KEY: "dict", "v": [[encode_value(k), encode_value(v)] for k, v in value.items()]}
    if hasattr(value, "asDict"):  # a row of Spark
        names = results.unique_names(value.__fields__)
        return encode_value(dict(zip(names, value, strict=True)))
    if isinstance(value, (list, tuple)):
        return [encode_value(v) for v in value]
    for kind, (name, text) in _ENCODED.items():
        if isinstance(value, kind):
            return {TYPE_KEY: name, "v": text(value)}
    return str(value)


_ENCODED: dict[type, tuple[str, Callable[[Any], Any]]] = {
    Decimal: ("decimal", str),
    dt.datetime: ("datetime", lambda v: v.isoformat()),  # before date, which it is too
    dt.date: ("date", lambda v: v.isoformat()),
    dt.time: ("time", lambda v: v.isoformat()),
    dt.timedelta: ("timedelta", lambda v: [v.days, v.seconds, v.microseconds]),
    bytes: ("bytes", lambda v: base64.b64encode(v).decode()),
    bytearray: ("bytes", lambda v: base64.b64encode(v).decode()),
}
_DECODED: dict[str, Callable[[Any], Any]] = {
    "dict": lambda v: map_of((decode(k), decode(x)) for k, x in v),
    "float": float,
    "decimal": Decimal,
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timedelta": lambda v: dt.timedelta(*v),
    "bytes": base64.b64decode,
}


class RemoteCause(Exception):
    """The exception behind an error of the server, as text. state: its SQLSTATE."""

    def __init__(self, text: str, state: str) -> None:
        super().__init__(text)
        self.getSqlState = lambda: state


_PARTS = ("message", "detail", "hint", "condition", "code", "proposal")
_WIRE = [(name, [field.name for field in fields(kind)]) for name, kind in sorted(KINDS.items())]
PROTOCOL = hashlib.sha256(repr((_WIRE, sorted(ERRORS), _PARTS, LIVE_CALLS)).encode()).hexdigest()[:16]
"""Tells the classes and fields of the frames apart: a client and its server must have the same."""


def encode_error(error: StreamsqlError) -> dict[str, Any]:
    """An error with its place. A class that only the server knows is sent as the one it is derived from."""
    kind = next(k.__name__ for k in type(error).__mro__ if k.__name__ in ERRORS)
    encoded: dict[str, Any] = {"kind": kind} | {name: getattr(error, name) for name in _PARTS}
    encoded["span"] = [error.span.start, error.span.end] if error.span else None
    encoded["source"] = [error.source.name, error.source.text] if error.source else None
    encoded["fact"] = error.fact
    cause = error.__cause__ or error.__context__
    if cause is not None:
        state = getattr(cause, "getSqlState", lambda: None)() or ""
        encoded["cause"] = [f"{type(cause).__name__}: {cause}", state]
    return encoded


def decode_error(encoded: Mapping[str, Any]) -> StreamsqlError:
    """The error of a frame."""
    parts = {name: encoded[name] for name in _PARTS if name != "message"}
    error = ERRORS[encoded["kind"]](encoded["message"], **parts)
    error.span = errors.Span(*encoded["span"]) if encoded["span"] else None
    error.source = errors.Source(*encoded["source"]) if encoded["source"] else None
    error.fact = encoded["fact"]
    if encoded.get("cause"):
        error.__cause__ = RemoteCause(*encoded["cause"])
    return error


INLINE = 2_000
"""The number of values up to which rows are sent in the header: importing Arrow takes longer than these."""

Values = tuple[Any, ...]
_PLAIN = {int, float, bool, bytes, str, dt.date, dt.datetime}
"""The types whose values come out of an array of Arrow as they were, but for moments of a time zone."""


def pack_rows(rows: Sequence[Values], encode: Callable[[Any], Any]) -> tuple[Any, bytes]:
    """(what the header has of rows, the body). encode: a value as JSON."""
    width = len(rows[0]) if rows else 0
    if len(rows) * max(width, 1) <= INLINE:
        return [[encode(v) for v in row] for row in rows], b""
    import pyarrow as pa

    columns, kinds = [], []
    for values in zip(*rows, strict=True):
        column, plain = _column(values, encode)
        columns.append(column)
        kinds.append("plain" if plain else "json")
    batch = pa.record_batch(columns, names=[str(n) for n in range(len(columns))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return {"kinds": kinds, "count": len(rows)}, sink.getvalue().to_pybytes()


def unpack_rows(inline: Any, body: bytes, decode: Callable[[Any], Any]) -> list[Values]:
    """The rows again."""
    if isinstance(inline, list):
        return [tuple(decode(v) for v in row) for row in inline]
    import pyarrow as pa

    with pa.ipc.open_stream(body) as reader:
        table = reader.read_all()
    columns: list[list[Any]] = []
    for kind, column in zip(inline["kinds"], table.columns, strict=True):
        values = column.to_pylist()
        if kind == "json":
            values = [None if v is None else decode(json.loads(v)) for v in values]
        columns.append(values)
    return list(zip(*columns, strict=True)) if columns else [()] * inline["count"]


def pack_batches(batches: Sequence[Any]) -> bytes:
    """The body for record batches."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpack_batches(inline: Any, body: bytes, decode: Callable[[Any], Any]) -> list[Any]:
    """The record batches again."""
    import pyarrow as pa

    with pa.ipc.open_stream(body) as reader:
        return list(reader)


def _column(values: Sequence[Any], encode: Callable[[Any], Any]) -> tuple[Any, bool]:
    """(an Arrow array, whether its values are those of the column; else they are JSON texts)."""
    import pyarrow as pa

    kinds = {type(v) for v in values} - {type(None)}
    has_zones = kinds == {dt.datetime} and any(v is not None and v.tzinfo is not None for v in values)
    if len(kinds) == 1 and kinds <= _PLAIN and not has_zones:
        try:
            return pa.array(values), True
        except (pa.ArrowInvalid, UnicodeEncodeError, OverflowError):
            pass  # a text that is not valid Unicode, or a number that needs more than 64 bits
    texts = [None if v is None else json.dumps(encode(v)) for v in values]
    return pa.array(texts, pa.string()), False
