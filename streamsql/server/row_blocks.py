"""Rows in a frame: a few as JSON in the header, many as a record batch of Arrow in the body."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from typing import Any

INLINE = 2_000
"""The number of values up to which rows are sent in the header: importing Arrow takes longer than these."""

Values = tuple[Any, ...]
_INT64 = 1 << 63


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


def _column(values: Sequence[Any], encode: Callable[[Any], Any]) -> tuple[Any, bool]:
    """(an Arrow array, whether its values are those of the column; else they are JSON texts)."""
    import pyarrow as pa

    kinds = {type(v) for v in values} - {type(None)}
    plain: Any = None
    if kinds == {int} and all(v is None or -_INT64 <= v < _INT64 for v in values):
        plain = pa.int64()
    elif kinds == {dt.datetime} and all(v is None or v.tzinfo is None for v in values):
        plain = pa.timestamp("us")
    elif len(kinds) == 1:
        simple = {float: pa.float64(), bool: pa.bool_(), bytes: pa.binary(), dt.date: pa.date32(),
                  str: pa.string()}  # fmt: skip
        plain = simple.get(next(iter(kinds)))
    if plain is not None:
        try:
            return pa.array(values, plain, from_pandas=False), True
        except (pa.ArrowInvalid, UnicodeEncodeError, OverflowError):
            pass  # a text that is not valid Unicode
    texts = [None if v is None else json.dumps(encode(v)) for v in values]
    return pa.array(texts, pa.string()), False
