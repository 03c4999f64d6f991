"""PIVOT without IN: the values of its column become columns. Printed into stand-alone programs."""

from __future__ import annotations

from typing import Any


def pivoted(frame: Any, column: str, used: list[str], *aggregates: Any) -> Any:
    """A DataFrame with a column for each value that a column has now, grouped by the columns that are not
    used: neither in the aggregates, which are Columns, nor as that column.
    """
    keys = ["`" + name.replace("`", "``") + "`" for name in frame.columns if name.casefold() not in used]
    return frame.groupBy(*keys).pivot(column).agg(*aggregates)
