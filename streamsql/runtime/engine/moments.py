"""Moments and lengths of time in verdicts. A moment is in milliseconds since 1970: event times that are wrong
may lie beyond what Python's datetime holds.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from streamsql.runtime.engine.far_times import local_time
from streamsql.runtime.engine.row_values import zone_of

_REPORTED = re.compile(r"([+-]?\d{4,})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,3}))?\d*Z\Z")
_CYCLE = 146_097
"""Days of 400 years, after which the calendar repeats."""
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def millis(text: Any) -> int | None:
    """A time of Spark's progress reports, such as 2024-05-01T12:00:00.000Z; None for another text."""
    parts = _REPORTED.match(text) if isinstance(text, str) else None
    if parts is None:
        return None
    year, month, day, hour, minute, second = (int(p) for p in parts.groups()[:6])
    cycles, year = divmod(year - 2000, 400)
    days = dt.date(year + 2000, month, day).toordinal() - dt.date(1970, 1, 1).toordinal()
    seconds = (days + cycles * _CYCLE) * 86_400 + hour * 3_600 + minute * 60 + second
    return seconds * 1_000 + int((parts[7] or "0").ljust(3, "0"))


def watermark_of(report: dict[str, Any]) -> int | None:
    """The watermark of a progress report; None while there is none."""
    watermark = millis(report.get("eventTime", {}).get("watermark"))
    return watermark or None


def shown(moment: int, zone: str) -> str:
    """A moment in a session time zone ("": that of the machine), as Spark reads it: 2024-05-01 12:20:00."""
    local = local_time(moment // 1_000 * 1_000_000, zone_of(zone) if zone else None)
    return f"{local}.{moment % 1_000:03}" if moment % 1_000 else str(local)


def to_second(moment: int, zone: str) -> str:
    """The same without the fraction of a second, for a table or a line of status."""
    return shown(moment // 1_000 * 1_000, zone)


def length(seconds: float) -> str:
    """A length of time for a person, in its two largest units: 1 hour 5 minutes."""
    seconds = abs(seconds)
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    left, parts = round(seconds), list[str]()
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count:,} {unit}{'' if count == 1 else 's'}")
    return " ".join(parts[:2])


def brief(seconds: float) -> str:
    """A length of time in a table: 480 ms, 48 s, 26 min, 3.5 h, 12 days."""
    if seconds < 1:
        return f"{max(0.0, seconds) * 1_000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    hours = f"{seconds / 3_600:.1f}".removesuffix(".0")
    return f"{hours} h" if seconds < 172_800 else f"{seconds / 86_400:,.0f} days"


def interval(seconds: float) -> str:
    """At least that length, as people choose it: INTERVAL 4 DAYS rather than 304342 SECONDS."""
    whole = max(1, -int(-seconds // 1))
    unit, size = next((u, s) for u, s in _UNITS if whole % s == 0 or whole >= 2 * s)
    number = -(-whole // size)
    return f"INTERVAL {number} {unit.upper()}{'' if number == 1 else 'S'}"
