"""The parameters of prepared statements, in MySQL's binary form, as values of Python."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from mysql_mimic import types
from mysql_mimic.errors import ErrorCode, MysqlError
from mysql_mimic.prepared import PreparedStatement
from mysql_mimic.results import NullBitmap
from mysql_mimic.types import ColumnType


@dataclass
class Prepared(PreparedStatement):
    """A prepared statement. kinds: (type, flags) of its parameters, which the first execution tells."""

    kinds: list[tuple[int, int]] = field(default_factory=list)


def parameters(statement: Prepared, reader: io.BytesIO, codec: str) -> Sequence[Any]:
    """The values of the parameters of a prepared statement. Their types are sent with the first execution."""
    count, sent = statement.num_params, statement.param_buffers or {}
    statement.param_buffers = None
    if not count:
        return ()
    nulls = NullBitmap.from_buffer(reader, count)
    if types.read_uint_1(reader):
        statement.kinds = [(types.read_uint_1(reader), types.read_uint_1(reader)) for _ in range(count)]
    if len(statement.kinds) != count:
        raise MysqlError("the types of the parameters are missing", ErrorCode.MALFORMED_PACKET)
    values = []
    for at, (kind, flags) in enumerate(statement.kinds):
        if at in sent:
            values.append(_of_bytes(bytes(sent[at]), kind, codec))
        else:
            values.append(None if nulls.is_flipped(at) else _value(reader, kind, flags & 0x80 > 0, codec))
    return values


_INTEGERS = {
    ColumnType.TINY: 1, ColumnType.BOOL: 1, ColumnType.SHORT: 2, ColumnType.YEAR: 2, ColumnType.LONG: 4,
    ColumnType.INT24: 4, ColumnType.LONGLONG: 8,
}  # fmt: skip
_MOMENTS = (ColumnType.DATE, ColumnType.DATETIME, ColumnType.TIMESTAMP)
_BYTES = (ColumnType.BLOB, ColumnType.TINY_BLOB, ColumnType.MEDIUM_BLOB, ColumnType.LONG_BLOB)


def _value(reader: io.BytesIO, kind: int, unsigned: bool, codec: str) -> Any:
    if kind in _INTEGERS:
        return int.from_bytes(reader.read(_INTEGERS[ColumnType(kind)]), "little", signed=not unsigned)
    if kind == ColumnType.FLOAT:
        return types.read_float(reader)
    if kind == ColumnType.DOUBLE:
        return types.read_double(reader)
    if kind == ColumnType.NULL:
        return None
    if kind in _MOMENTS or kind == ColumnType.TIME:
        parts = reader.read(types.read_uint_1(reader))
        return _span(parts) if kind == ColumnType.TIME else _moment(parts, kind)
    return _of_bytes(types.read_str_len(reader), kind, codec)


def _of_bytes(value: bytes, kind: int, codec: str) -> Any:
    """A value that was sent as bytes: a text, unless it is none."""
    try:
        written = value.decode(codec)
    except UnicodeDecodeError:
        return value
    if kind in (ColumnType.DECIMAL, ColumnType.NEWDECIMAL):
        return Decimal(written)
    return value if kind in _BYTES else written


def _moment(parts: bytes, kind: int) -> dt.date | dt.datetime:
    if len(parts) < 4:
        raise MysqlError("the date 0000-00-00 does not exist", ErrorCode.WRONG_VALUE_FOR_VAR)
    day = dt.date(int.from_bytes(parts[:2], "little"), parts[2], parts[3])
    if kind == ColumnType.DATE:
        return day
    hour, minute, second = parts[4:7] or (0, 0, 0)
    return dt.datetime(
        day.year, day.month, day.day, hour, minute, second, int.from_bytes(parts[7:], "little")
    )


def _span(parts: bytes) -> dt.time | dt.timedelta:
    """A TIME: of the day, if it can be one."""
    if not parts:
        return dt.time()
    days, (hours, minutes, seconds) = int.from_bytes(parts[1:5], "little"), parts[5:8]
    micros = int.from_bytes(parts[8:], "little")
    if not (parts[0] or days):
        return dt.time(hours, minutes, seconds, micros)
    span = dt.timedelta(days, seconds, micros, minutes=minutes, hours=hours)
    return -span if parts[0] else span
