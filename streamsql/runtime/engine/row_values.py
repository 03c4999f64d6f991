"""Rows of Spark as Python values, with timestamps in the session time zone.

A value that Python has no object for is its text: a date or time before the year 1 or after 9999 as Spark
casts it to a STRING, a TIME with nanoseconds, an interval of months, a VARIANT as JSON. A GEOMETRY or
GEOGRAPHY is the number of its reference system, and its bytes, as st_asbinary gives them.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from streamsql.language.python_values import Struct, map_of
from streamsql.results import Rows, unique_names
from streamsql.runtime.engine.far_times import day, local_time, time_of_day, written_time
from streamsql.runtime.engine.spark_texts import interval_text, with_texts

Values = Sequence[Any]


def collect(frame: Any) -> Rows:
    """The rows of a DataFrame as Python values, timestamps in the session time zone."""
    began = time.monotonic()
    fields = frame.schema.fields
    values = row_values(frame.schema)
    rows = [values(row) for row in with_texts(frame).collect()]
    numeric = tuple(is_numeric(f.dataType) for f in fields)
    return Rows((), tuple(f.name for f in fields), rows, numeric, time.monotonic() - began)


# ---- rows that PySpark has collected ------------------------------------------------------------


def row_values(schema: Any) -> Callable[[Iterable[Any]], tuple[Any, ...]]:
    """A function that converts a collected row of `with_texts`. schema: of the DataFrame without texts."""
    inner = [_collected(f.dataType) for f in schema.fields]
    return lambda row: tuple(f(v) for f, v in zip(inner, row, strict=True))


def _collected(kind: Any) -> Callable[[Any], Any]:
    """A function that converts collected values of a Spark type."""
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        names = unique_names(f.name for f in kind.fields)
        inner = [_collected(f.dataType) for f in kind.fields]
        return _unless_null(lambda row: Struct({n: f(v) for n, f, v in zip(names, inner, row, strict=True)}))
    if isinstance(kind, t.ArrayType):
        element = _collected(kind.elementType)
        return _unless_null(lambda items: [element(item) for item in items])
    if isinstance(kind, t.MapType):
        key, value = _collected(kind.keyType), _collected(kind.valueType)

        def pairs(entries: Any) -> Any:
            entries = entries.items() if isinstance(entries, dict) else entries
            return map_of((key(k), value(v)) for k, v in entries)

        return _unless_null(pairs)
    convert: Callable[[Any], Any] | None = next(
        (function for kinds, function in _of_texts() if isinstance(kind, kinds)), None
    )
    return _as_it_is if convert is None else _unless_null(convert)


def _of_texts() -> tuple[tuple[Any, Callable[[Any], Any]], ...]:
    from pyspark.sql import types as t

    return (
        ((t.TimestampType, t.TimestampNTZType), lambda text: _read(text, dt.datetime.fromisoformat)),
        (t.DateType, lambda text: _read(text, dt.date.fromisoformat)),
        (t.TimeType, written_time),
        ((t.YearMonthIntervalType, t.CalendarIntervalType), interval_text),
        (t.FloatType, shortest),
        ((t.GeometryType, t.GeographyType), lambda shape: _shape(shape.getSrid(), bytes(shape.getBytes()))),
    )


def _read(text: str, read: Callable[[str], Any]) -> Any:
    """A date or time; the text where Python has no such year."""
    try:
        return read(text)
    except ValueError:
        return text


def _shape(srid: int, wkb: bytes) -> dict[str, int | bytes]:
    """A GEOMETRY or GEOGRAPHY."""
    return {"srid": srid, "wkb": wkb}


def _unless_null(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def _as_it_is(value: Any) -> Any:
    return value


# ---- columns of Arrow ---------------------------------------------------------------------------


def column_values(column: Any, kind: Any, zone: dt.tzinfo) -> list[Any]:
    """The values of an Arrow column of `to_arrow`. kind: its Spark type; zone: for timestamps. Bytes of a
    STRING that are no UTF-8 (a CAST of BINARY) become �.
    """
    import pyarrow as pa
    from pyspark.sql import types as t

    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in column_values(chunk, kind, zone)]
    if isinstance(kind, t.VariantType):
        return list(column.field("json").to_pylist())
    if isinstance(kind, (t.GeometryType, t.GeographyType)):
        shapes = zip(column.field("srid").to_pylist(), column.field("wkb").to_pylist(), strict=True)
        return [None if wkb is None else _shape(srid, wkb) for srid, wkb in shapes]
    if isinstance(kind, t.StructType):
        names = unique_names(f.name for f in kind.fields)
        parts = [
            column_values(c, f.dataType, zone) for c, f in zip(column.flatten(), kind.fields, strict=True)
        ]
        rows = zip(*parts, strict=True) if parts else [()] * len(column)
        values = [Struct(zip(names, row, strict=True)) for row in rows]
        return _with_nulls(column, values)
    if isinstance(kind, t.ArrayType):
        return _in_lists(column, lambda items: column_values(items, kind.elementType, zone))
    if isinstance(kind, t.MapType):

        def entries(items: Any) -> Iterable[Any]:
            keys, values = items.flatten()
            return zip(
                column_values(keys, kind.keyType, zone),
                column_values(values, kind.valueType, zone),
                strict=True,
            )

        return [None if pairs is None else map_of(pairs) for pairs in _in_lists(column, entries)]
    return _simple_values(column, kind, zone)


def _with_nulls(column: Any, values: list[Any]) -> list[Any]:
    if not column.null_count:
        return values
    return [v if valid else None for v, valid in zip(values, column.is_valid().to_pylist(), strict=True)]


def _in_lists(column: Any, convert: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """Lists of the converted items of a list or map column."""
    offsets = column.offsets.to_pylist()
    items = list(convert(column.values.slice(offsets[0], offsets[-1] - offsets[0])))
    starts = [offset - offsets[0] for offset in offsets]
    return _with_nulls(column, [items[a:b] for a, b in zip(starts, starts[1:], strict=False)])


def _simple_values(column: Any, kind: Any, zone: dt.tzinfo) -> list[Any]:
    import pyarrow as pa
    from pyspark.sql import types as t

    if isinstance(kind, (t.TimestampType, t.TimestampNTZType)):
        own = zone if isinstance(kind, t.TimestampType) else dt.UTC
        return [None if v is None else local_time(v, own) for v in column.cast(pa.int64()).to_pylist()]
    if isinstance(kind, t.DateType):
        return [None if v is None else day(v) for v in column.cast(pa.int32()).to_pylist()]
    if isinstance(kind, t.TimeType):
        return [None if v is None else time_of_day(v) for v in column.cast(pa.int64()).to_pylist()]
    if isinstance(kind, t.FloatType):
        return [None if v is None else shortest(v) for v in column.to_pylist()]
    if isinstance(kind, (t.YearMonthIntervalType, t.CalendarIntervalType)):
        return [interval_text(v) for v in column.to_pylist()]
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        large = pa.types.is_large_string(column.type)
        bytes_of = column.cast(pa.large_binary() if large else pa.binary()).to_pylist()
        return [None if v is None else v.decode(errors="replace") for v in bytes_of]


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
