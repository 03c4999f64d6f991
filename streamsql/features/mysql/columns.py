"""Types and values of Spark as those of MySQL."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mysql_mimic.charset import CharacterSet
from mysql_mimic.packets import make_column_definition_41
from mysql_mimic.results import ResultColumn
from mysql_mimic.types import ColumnDefinition, ColumnType, str_len

from streamsql.errors import InputFault
from streamsql.output.cells import json_text, plain, text

Encoder = Callable[[Any], bytes]
LONGEST = 2**32 - 1
"""What MySQL says of the length of a text or of bytes without a limit, in bytes."""


@dataclass(frozen=True)
class Kind:
    """A type of MySQL. name: as information_schema writes it; length: in characters; in_text, in_binary: the
    value in rows of statements that are text, and of prepared ones.
    """

    name: str
    type: ColumnType
    length: int
    in_text: Encoder
    in_binary: Encoder
    decimals: int = 0
    charset: CharacterSet = CharacterSet.binary
    flags: ColumnDefinition = ColumnDefinition(0)


@dataclass(frozen=True)
class Column:
    """A column of a result. definition: the packet that describes it; encoder: of its values."""

    definition: bytes
    encoder: ResultColumn


def column(name: str, kind: Kind) -> Column:
    """A column of a type."""
    definition = make_column_definition_41(
        server_charset=CharacterSet.utf8mb4,
        name=name,
        character_set=kind.charset,
        column_length=kind.length,
        column_type=kind.type,
        flags=kind.flags,
        decimals=kind.decimals,
    )
    encoder = ResultColumn(
        name,
        kind.type,
        text_encoder=lambda _, value: kind.in_text(value),
        binary_encoder=lambda _, value: kind.in_binary(value),
    )
    return Column(definition, encoder)


def _written(value: Any) -> bytes:
    return text(value).encode(errors="replace")


def _with_length(in_text: Encoder) -> Encoder:
    return lambda value: str_len(in_text(value))


def _packed(form: str) -> Encoder:
    return struct.Struct(form).pack


def _number(name: str, kind: ColumnType, length: int, form: str) -> Kind:
    return Kind(name, kind, length, lambda value: b"%d" % value, _packed(form))


def _float(value: float) -> bytes:
    """The shortest digits that mean a number; also NaN and Infinity, which MySQL itself does not have."""
    if value != value:
        return b"NaN"
    return repr(value).replace("inf", "Infinity").encode()


def _moment(value: Any) -> bytes:
    return (value if isinstance(value, str) else value.isoformat(" ", "microseconds")).encode()


def _as_time(kind: ColumnType, before: Callable[[Any], Any] = lambda value: value) -> Encoder:
    """MySQL's binary form of dates and times. Raises InputFault for a year that Python does not have."""
    encoder = ResultColumn("", kind)

    def encode(value: Any) -> bytes:
        try:
            return bytes(encoder.binary_encode(before(value)))
        except (AttributeError, ValueError):
            raise InputFault(
                f"the value {value} has no form in a result of a prepared statement",
                hint="CAST(… AS STRING)",
                code="BAD_OPTION_VALUE",
            ) from None

    return encode


def _since_midnight(value: dt.time) -> dt.timedelta:
    parts = {"hours": value.hour, "minutes": value.minute, "seconds": value.second}
    return dt.timedelta(**parts, microseconds=value.microsecond)


def _of_text(name: str, kind: ColumnType, in_text: Encoder = _written) -> Kind:
    in_binary = _with_length(in_text)
    return Kind(name, kind, LONGEST, in_text, in_binary, charset=CharacterSet.utf8mb4)


_JSON = _of_text("json", ColumnType.JSON, lambda value: json_text(plain(value)).encode(errors="replace"))
_TEXT = _of_text("text", ColumnType.VAR_STRING)
_KINDS = {
    "boolean": Kind("tinyint(1)", ColumnType.TINY, 1, lambda value: b"%d" % value, _packed("<b")),
    "tinyint": _number("tinyint", ColumnType.TINY, 4, "<b"),
    "smallint": _number("smallint", ColumnType.SHORT, 6, "<h"),
    "int": _number("int", ColumnType.LONG, 11, "<i"),
    "bigint": _number("bigint", ColumnType.LONGLONG, 20, "<q"),
    "float": Kind("float", ColumnType.FLOAT, 12, _float, _packed("<f"), 31),
    "double": Kind("double", ColumnType.DOUBLE, 22, _float, _packed("<d"), 31),
    "binary": Kind(
        "longblob", ColumnType.BLOB, LONGEST, bytes, _with_length(bytes),
        flags=ColumnDefinition.BINARY_FLAG | ColumnDefinition.BLOB_FLAG,
    ),
    "date": Kind("date", ColumnType.DATE, 10, _written, _as_time(ColumnType.DATE)),
    "timestamp": Kind("timestamp(6)", ColumnType.TIMESTAMP, 26, _moment, _as_time(ColumnType.TIMESTAMP), 6),
    "timestamp_ntz": Kind("datetime(6)", ColumnType.DATETIME, 26, _moment, _as_time(ColumnType.DATETIME), 6),
    "time": Kind("time(6)", ColumnType.TIME, 15, _written, _as_time(ColumnType.TIME, _since_midnight), 6),
    "array": _JSON, "map": _JSON, "struct": _JSON,
}  # fmt: skip


def kind_of(spark_type: Any) -> Kind:
    """MySQL's type for a type of Spark: text where it has none (intervals, VARIANT)."""
    name = spark_type.simpleString().partition("(")[0].partition("<")[0]
    if name != "decimal":
        return _KINDS.get(name, _TEXT)
    digits, scale = spark_type.precision, spark_type.scale
    written = f"decimal({digits},{scale})"
    return Kind(
        written, ColumnType.NEWDECIMAL, digits + 2, _written, _with_length(_written), decimals=scale
    )  # a sign and a point besides the digits


def columns_of(names: Iterable[str], rows: Sequence[Sequence[Any]]) -> list[Column]:
    """The columns of rows that are values of Python without types: numbers, and texts."""
    return [column(name, _kind_of_values([row[at] for row in rows])) for at, name in enumerate(names)]


def _kind_of_values(values: list[Any]) -> Kind:
    types = {type(value) for value in values} - {type(None)}
    if types and types <= {int, bool}:
        return _KINDS["bigint"]
    if types and types <= {int, float}:
        return _KINDS["double"]
    return _KINDS["binary"] if types == {bytes} else _TEXT
