"""The difference between the rows that a test expects and those that are there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any

from streamsql.language.python_values import Pairs

Row = tuple[Any, ...]
DOUBLE, FLOAT = 9, 6
"""The digits that count in floating-point numbers of 64 and of 32 bits."""


def differences(
    expected: Sequence[Row],
    actual: Sequence[Row],
    tolerance: float | None = None,
    digits: Sequence[int] = (),
) -> tuple[list[Row], list[Row]]:
    """(rows that are missing, rows that are too many), in any order; each row counts as often as it is there.

    tolerance: the largest difference of two numbers with a fraction that are equal; None for a difference of
    floating-point numbers in the last digits. digits: how many digits of each column count then.
    """
    found, wanted = Counter(map(_key, actual)), Counter(map(_key, expected))
    missing, extra = _more(expected, wanted - found), _more(actual, found - wanted)
    if any(map(_has_fraction, missing)):
        for row in list(missing):
            near = next((other for other in extra if same_row(row, other, tolerance, digits)), None)
            if near is not None:
                missing.remove(row)
                extra.remove(near)
    return missing, extra


def with_counts(first: Any, second: Any) -> Any:
    """A DataFrame of all rows of two DataFrames with the same columns, each once: in c0, c1, … its values, in
    in_first and in_second how often they have it.
    """
    from pyspark.sql import functions as F

    names = [f"c{n}" for n in range(len(first.columns))]
    rows = first.toDF(*names).select("*", F.lit(1).alias("in_first"), F.lit(0).alias("in_second"))
    others = second.toDF(*names).select("*", F.lit(0).alias("in_first"), F.lit(1).alias("in_second"))
    sums = (F.sum("in_first").alias("in_first"), F.sum("in_second").alias("in_second"))
    return rows.unionAll(others).groupBy(*names).agg(*sums)


def same_row(one: Row, other: Row, tolerance: float | None = None, digits: Sequence[int] = ()) -> bool:
    """Whether two rows are equal, within a tolerance: see `differences`."""
    counts = digits or [DOUBLE] * len(one)
    return all(same(a, b, tolerance, n) for a, b, n in zip(one, other, counts, strict=True))


def same(one: Any, other: Any, tolerance: float | None = None, digits: int = DOUBLE) -> bool:
    """Whether two values are equal, within a tolerance."""
    if isinstance(one, Decimal) and isinstance(other, Decimal) and tolerance is not None:
        return abs(one - other) <= Decimal(str(tolerance))
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        if tolerance is None:
            return math.isclose(one, other, rel_tol=10**-digits, abs_tol=1e-12)
        return one == other or abs(one - other) <= tolerance
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(
            same(a, b, tolerance, digits) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k], tolerance, digits) for k in one)
    return _key(one) == _key(other)


def _more(rows: Sequence[Row], counts: Counter[Hashable]) -> list[Row]:
    """So many of the rows of each kind, in their order."""
    left, chosen = dict(counts), list[Row]()
    for row in rows:
        if left.get(_key(row), 0) > 0:
            left[_key(row)] -= 1
            chosen.append(row)
    return chosen


def _key(value: Any) -> Hashable:
    """Equal values have equal keys."""
    if isinstance(value, (tuple, list)):
        return tuple(map(_key, value))
    if isinstance(value, (dict, Pairs)):
        return frozenset((_key(k), _key(v)) for k, v in value.items())
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, bool):
        return ("boolean", value)  # True is 1 for Python
    return value if isinstance(value, Hashable) else repr(value)


def _has_fraction(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_has_fraction, value))
    if isinstance(value, dict):
        return any(map(_has_fraction, value.values()))
    return isinstance(value, (float, Decimal))
