"""PIVOT without IN: the values of its column become columns. Printed into stand-alone programs."""

from __future__ import annotations

from typing import Any


def pivoted(frame: Any, column: str, used: list[str], aggregates: list[str]) -> Any:
    """A DataFrame with a column for each value that a column has now, grouped by the columns that are not
    used: neither in the aggregates nor as that column.
    """
    from pyspark.sql import functions as F

    keys = ["`" + name.replace("`", "``") + "`" for name in frame.columns if name.casefold() not in used]
    return frame.groupBy(*keys).pivot(column).agg(*map(F.expr, aggregates))
