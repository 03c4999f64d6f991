"""The types of PEP 249: a type_code is Spark's name of a type, and equals the object of its kind."""

from __future__ import annotations

import datetime as dt
import re
import time

Date, Time, Timestamp, Binary = dt.date, dt.time, dt.datetime, bytes


class TypeObject:
    """Equals the type codes whose first words it has."""

    def __init__(self, *words: str) -> None:
        self.words = frozenset(words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and re.split(r"[ (<]", other, maxsplit=1)[0] in self.words

    def __hash__(self) -> int:
        return hash(self.words)


STRING = TypeObject("STRING", "CHAR", "VARCHAR", "VARIANT", "INTERVAL", "ARRAY", "MAP", "STRUCT")
BINARY = TypeObject("BINARY")
NUMBER = TypeObject("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
DATETIME = TypeObject("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
ROWID = TypeObject()


def DateFromTicks(ticks: float) -> dt.date:
    """The local date of a number of seconds since 1970."""
    return dt.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:
    """The local time of day of a number of seconds since 1970."""
    return dt.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:
    """The local date and time of a number of seconds since 1970."""
    return dt.datetime(*time.localtime(ticks)[:6])
