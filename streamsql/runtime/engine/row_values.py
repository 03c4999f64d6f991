"""Rows of Spark as Python values, with timestamps in the session time zone."""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
import time
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

from streamsql.results import Rows, unique_names
from streamsql.runtime.engine.interval_texts import interval_text, is_unreadable, with_texts


def collect(frame: Any) -> Rows:
    """The rows of a DataFrame as Python values, timestamps in the session time zone."""
    began = time.monotonic()
    fields = frame.schema.fields
    to_zone = in_zone(frame.schema, frame.sparkSession.conf.get("spark.sql.session.timeZone"))
    rows = [tuple(to_zone(row)) for row in with_texts(frame).collect()]
    numeric = tuple(is_numeric(f.dataType) for f in fields)
    return Rows((), tuple(f.name for f in fields), rows, numeric, time.monotonic() - began)


def in_zone(kind: Any, zone: str) -> Callable[[Any], Any]:
    """A function that converts collected values of a Spark type (with timestamps in this process's zone)
    to a session time zone, structs to dicts, and a row to a list.
    """
    from pyspark.sql import types

    if isinstance(kind, types.StructType):
        inner = [_nested(f.dataType, zone) for f in kind.fields]
        return lambda row: row if row is None else [f(v) for f, v in zip(inner, row, strict=True)]
    return _nested(kind, zone)


def columns_in_zone(kind: Any, zone: str) -> list[Callable[[list[Any]], list[Any]]]:
    """The same for the columns of rows: for each a function that converts its values."""
    return [_each(_nested(field.dataType, zone)) for field in kind.fields]


def _each(convert: Callable[[Any], Any]) -> Callable[[list[Any]], list[Any]]:
    return _as_it_is if convert is _as_it_is else lambda values: list(map(convert, values))


def _as_it_is(value: Any) -> Any:
    return value


def _nested(kind: Any, zone: str) -> Callable[[Any], Any]:
    from pyspark.sql import types

    if isinstance(kind, types.TimestampType):
        there = zone_of(zone)
        return lambda v: v if v is None else v.astimezone(there).replace(tzinfo=None)
    if isinstance(kind, types.StructType):
        names = unique_names(f.name for f in kind.fields)
        fields = [(name, _nested(f.dataType, zone)) for name, f in zip(names, kind.fields, strict=True)]

        def struct(v: Any) -> Any:
            if v is None:
                return None
            inside = v.values() if isinstance(v, dict) else v  # Arrow gives a dict
            return {name: f(x) for (name, f), x in zip(fields, inside, strict=True)}

        return struct
    if isinstance(kind, types.ArrayType):
        element = _nested(kind.elementType, zone)
        return lambda v: v if v is None else [element(x) for x in v]
    if isinstance(kind, types.MapType):
        key, value = _nested(kind.keyType, zone), _nested(kind.valueType, zone)
        # Arrow gives a map as a list of pairs.
        return lambda v: (
            v if v is None else {key(k): value(x) for k, x in (v.items() if isinstance(v, dict) else v)}
        )
    if isinstance(kind, types.FloatType):
        return lambda v: v if v is None else shortest(v)
    return interval_text if is_unreadable(kind) else _as_it_is


def python_values(column: Any) -> list[Any]:
    """The values of an Arrow column. Bytes of a STRING that are no UTF-8 (a CAST of BINARY) become �."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_decoded(v, column.type) for v in column.cast(_with_bytes(column.type)).to_pylist()]


def _with_bytes(kind: Any) -> Any:
    """An Arrow type with BINARY in place of STRING."""
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.binary() if pa.types.is_string(kind) else pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _with_bytes(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_with_bytes(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_with_bytes(kind.key_type), _with_bytes(kind.item_type))
    return kind


def _decoded(value: Any, kind: Any) -> Any:
    """A value of a type of `_with_bytes`, as one of the Arrow type itself."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return value.decode(errors="replace")
    if pa.types.is_struct(kind):
        return {field.name: _decoded(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_decoded(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return [(_decoded(k, kind.key_type), _decoded(v, kind.item_type)) for k, v in value]
    return value


def shortest(number: float) -> float:
    """A number of 32 bits as the double with the fewest digits that mean it: 0.1, not 0.10000000149011612."""
    if not math.isfinite(number):
        return number
    texts = (f"{number:.{digits}g}" for digits in range(6, 10))
    return next((float(t) for t in texts if _of_32_bits(float(t)) == number), number)


def _of_32_bits(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.inf


def zone_of(name: str) -> dt.tzinfo:
    """A session time zone of Spark: a region, or an offset such as +02:00."""
    offset = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?", name)
    if offset:
        minutes = int(offset.group(2)) * 60 + int(offset.group(3) or 0)
        return dt.timezone(dt.timedelta(minutes=-minutes if offset.group(1) == "-" else minutes))
    return ZoneInfo(name)


def is_numeric(kind: Any) -> bool:
    """Whether values of a Spark type are aligned to the right."""
    from pyspark.sql.types import NumericType

    return isinstance(kind, NumericType)
