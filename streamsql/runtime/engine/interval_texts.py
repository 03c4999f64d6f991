"""Intervals of months, which PySpark cannot read, as texts."""

from __future__ import annotations

import re
from typing import Any


def with_texts(frame: Any) -> Any:
    """A DataFrame whose values of types that PySpark cannot read are texts of Spark, also inside structs,
    arrays and maps.
    """
    from pyspark.sql import functions as F

    kinds = [(field.dataType, _readable(field.dataType)) for field in frame.schema.fields]
    if all(kind == readable for kind, readable in kinds):
        return frame
    names = [f"c{at}" for at in range(len(kinds))]  # a name may occur twice
    columns = [
        F.col(name) if kind == readable else F.col(name).cast(readable)
        for name, (kind, readable) in zip(names, kinds, strict=True)
    ]
    return frame.toDF(*names).select(*columns).toDF(*frame.columns)


def is_unreadable(kind: Any) -> bool:
    """Whether PySpark has no values of a Spark type."""
    from pyspark.sql import types as t

    return isinstance(kind, (t.YearMonthIntervalType, t.CalendarIntervalType))


def _readable(kind: Any) -> Any:
    from pyspark.sql import types as t

    if is_unreadable(kind):
        return t.StringType()
    if isinstance(kind, t.StructType):
        return t.StructType([t.StructField(f.name, _readable(f.dataType), f.nullable) for f in kind.fields])
    if isinstance(kind, t.ArrayType):
        return t.ArrayType(_readable(kind.elementType), kind.containsNull)
    if isinstance(kind, t.MapType):
        return t.MapType(_readable(kind.keyType), _readable(kind.valueType), kind.valueContainsNull)
    return kind


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
    told = [f"{sign}{count} {name}{'s' * (count != 1)}" for count, name in parts if count]
    return " ".join(told) or "0 months"


_MONTHS = re.compile(r"INTERVAL '(-?)(\d+)(?:-(\d+))?' (YEAR|MONTH|YEAR TO MONTH)")
_ONE = re.compile(r"(?<![\d.])(-?1) (\w+)s\b")
