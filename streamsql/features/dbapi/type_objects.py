"""The types of PEP 249: a type_code is Spark's name of a type, and equals the object of its kind."""

from __future__ import annotations

import datetime as dt
import re
import time

Date, Time, Timestamp, Binary = dt.date, dt.time, dt.datetime, bytes


class TypeObject:
    """Equals the type codes that begin with one of its names."""

    def __init__(self, names: str) -> None:
        self.names = frozenset(names.split(", "))

    def __eq__(self, other: object) -> bool:
        first = re.match(r"INTERVAL \w+|\w+", other) if isinstance(other, str) else None
        return first is not None and first[0] in self.names

    def __hash__(self) -> int:
        return hash(self.names)


STRING = TypeObject(
    "STRING, CHAR, VARCHAR, VARIANT, INTERVAL, INTERVAL YEAR, INTERVAL MONTH, ARRAY, MAP, STRUCT, GEOMETRY,"
    " GEOGRAPHY, VOID"
)
"""Texts, and what PEP 249 has no other for: each type code has to equal one of these objects."""
BINARY = TypeObject("BINARY")
NUMBER = TypeObject("BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL")
DATETIME = TypeObject(
    "DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ, TIMESTAMP_LTZ, INTERVAL DAY, INTERVAL HOUR, INTERVAL MINUTE,"
    " INTERVAL SECOND"
)
ROWID = TypeObject("")
"""Equals none: Spark's rows have no numbers."""


def DateFromTicks(ticks: float) -> dt.date:
    """The local date of a number of seconds since 1970."""
    return dt.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:
    """The local time of day of a number of seconds since 1970."""
    return dt.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:
    """The local date and time of a number of seconds since 1970."""
    return dt.datetime(*time.localtime(ticks)[:6])
