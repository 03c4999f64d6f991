"""Values of which Python has none, as texts of Spark."""

from __future__ import annotations

import re
from typing import Any

from streamsql.runtime.embedded.carried_values import columns_rebuilt, touched


def with_texts(frame: Any) -> Any:
    """A DataFrame in which values that Python may have no object for (times of any year, times of day,
    intervals of months, VARIANT) are texts of Spark, also inside structs, arrays and maps. Such a map is an
    array of its entries.
    """
    schema = frame.schema
    return columns_rebuilt(frame, schema, _of_no_object) if touched(schema, _of_no_object) else frame


def as_text(kind: Any) -> Any:
    """The function that makes a text of a Column of a Spark type; None for a type that Arrow has."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as t

    if isinstance(kind, t.VariantType):
        return F.to_json
    return _cast if isinstance(kind, (t.YearMonthIntervalType, t.CalendarIntervalType)) else None


def _of_no_object(kind: Any) -> Any:
    """As `as_text`, and for times; None where PySpark reads all values."""
    from pyspark.sql import types as t

    times = (t.DateType, t.TimestampType, t.TimestampNTZType, t.TimeType)
    return _cast if isinstance(kind, times) else as_text(kind)


def _cast(value: Any) -> Any:
    return value.cast("string")


def interval_text(text: str | None) -> str | None:
    """A text of Spark, INTERVAL '1-3' YEAR TO MONTH, as DuckDB writes it: 1 year 3 months."""
    if text is None:
        return None
    months = _MONTHS.fullmatch(text)
    if not months:
        return _ONE.sub(r"\1 \2", text)
    sign, number, rest, unit = months.groups()
    years, left = (number, rest) if rest else (number, "0") if unit == "YEAR" else ("0", number)
    total = int(years) * 12 + int(left)
    parts = [(total // 12, "year"), (total % 12, "month")]
    amounts = [f"{sign}{count} {name}{'s' * (count != 1)}" for count, name in parts if count]
    return " ".join(amounts) or "0 months"


_MONTHS = re.compile(r"INTERVAL '(-?)(\d+)(?:-(\d+))?' (YEAR|MONTH|YEAR TO MONTH)")
_ONE = re.compile(r"(?<![\d.])(-?1) (\w+)s\b")
