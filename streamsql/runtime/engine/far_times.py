"""Dates and times of any year, and of any digits. Python's datetime has the years 1 to 9999, and
microseconds; others are texts.
"""

from __future__ import annotations

import datetime as dt

_CYCLE = 146_097
"""The days of 400 years, after which the calendar, its weekdays and the rules of a time zone repeat."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
# Far times are computed in years near the end that they are beyond: there a time zone has its first offset,
# or its last rules.
_EARLY, _LATE = dt.date(401, 1, 1).toordinal(), dt.date(9_201, 1, 1).toordinal()


def local_time(micros: int, zone: dt.tzinfo | None) -> dt.datetime | str:
    """A moment, in microseconds since 1970, in a time zone (None: the machine's); where Python has no such
    year, the text that Spark casts it to: +10000-01-01 00:00:00.
    """
    try:
        return (_EPOCH + dt.timedelta(microseconds=micros)).astimezone(zone).replace(tzinfo=None)
    except (OverflowError, ValueError):
        days, rest = divmod(micros, 86_400_000_000)
        cycles = _cycles(days)
        near = _EPOCH + dt.timedelta(days=days - cycles * _CYCLE, microseconds=rest)
        local = near.astimezone(zone).replace(tzinfo=None)
    year = local.year + 400 * cycles
    if dt.MINYEAR <= year <= dt.MAXYEAR:
        return local.replace(year=year)
    fraction = f".{local.microsecond:06}".rstrip("0").rstrip(".")
    return f"{_year(year)}-{local:%m-%d %H:%M:%S}{fraction}"


def day(days: int) -> dt.date | str:
    """A date, in days since 1970; its text where Python has no such year."""
    try:
        return dt.date.fromordinal(_EPOCH_DAY + days)
    except (OverflowError, ValueError):
        cycles = _cycles(days)
        near = dt.date.fromordinal(_EPOCH_DAY + days - cycles * _CYCLE)
        return f"{_year(near.year + 400 * cycles)}-{near:%m-%d}"


def _cycles(days: int) -> int:
    """The number of 400 years by which a day is beyond the years that Python has."""
    return (days + _EPOCH_DAY - (_LATE if days > 0 else _EARLY)) // _CYCLE


def _year(year: int) -> str:
    return f"{'+' if year > dt.MAXYEAR else '-' if year < 0 else ''}{abs(year):04}"


def time_of_day(nanos: int) -> dt.time | str:
    """A TIME, in nanoseconds since midnight; the text that Spark casts it to where it has nanoseconds, which
    Python has not: 12:30:00.000000001.
    """
    seconds, rest = divmod(nanos, 1_000_000_000)
    if rest % 1_000 == 0:
        return dt.time(seconds // 3_600, seconds // 60 % 60, seconds % 60, rest // 1_000)
    return f"{seconds // 3_600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:09}".rstrip("0")


def written_time(text: str) -> dt.time | str:
    """The same for a text of Spark."""
    return dt.time.fromisoformat(text) if len(text) <= len("12:30:00.000001") else text
