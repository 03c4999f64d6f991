"""The part of a live table that a SELECT needs: its other rows and columns are not handed to Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from streamsql.plan.plans import LivePart
from streamsql.runtime.embedded.carried_values import to_frame

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import LiveRows, RowsAt

FEW = 5_000
"""A table of at most so many rows is handed to Spark as a whole, and read again from there."""

_last_frames: WeakKeyDictionary[RowsAt, tuple[Any, list[str], Any]] = WeakKeyDictionary()
"""The last DataFrame of some of the columns of a snapshot: Spark, the columns, the DataFrame."""


class PartOfRows:
    """In place of the LiveRows of a program that reads a part of them."""

    def __init__(self, rows: LiveRows, part: LivePart) -> None:
        self.rows = rows
        self.part = part

    def frame(self, spark: Any, limit: int | None = None) -> Any:
        """A DataFrame with all rows and columns of the current rows that the query may need."""
        at = self.rows.now()
        if limit is not None or at.count <= FEW:
            return self.rows.frame(spark, limit)
        table = _where(at, self.part)
        names = [n for n in table.column_names if self.part.words is None or n.casefold() in self.part.words]
        if table is at.table and len(names) == table.num_columns:
            return at.frame(spark)
        if not names:  # count(*)
            return spark.range(table.num_rows).select()
        if table is at.table:
            return _of_columns(at, names, spark)
        return _frame(at, table, names, spark)


def _of_columns(at: RowsAt, names: list[str], spark: Any) -> Any:
    """The DataFrame of some of the columns, kept until the rows change."""
    entry = _last_frames.get(at)
    if entry is None or entry[0] is not spark or entry[1] != names:
        entry = _last_frames[at] = (spark, names, _frame(at, at.table, names, spark))
    return entry[2]


def _frame(at: RowsAt, table: Any, names: list[str], spark: Any) -> Any:
    fields = {field.name: field for field in at.schema.fields}
    schema = type(at.schema)([fields[name] for name in names])
    if not table.num_rows:
        return to_frame(spark, None, schema)
    return at.handed(spark, table.select(names), schema)


def _where(at: RowsAt, part: LivePart) -> Any:
    """The rows for which the conditions hold, up to the first that Arrow may compare otherwise than Spark."""
    import pyarrow.compute as pc

    compare = {"=": pc.equal, "<=": pc.less_equal, ">=": pc.greater_equal}
    table = at.table
    for name, sign, value in part.conditions:
        fields = [f for f in at.schema.fields if f.name.casefold() == name]
        if len(fields) != 1 or not _same_in_arrow(fields[0].dataType, sign, value):
            break
        table = table.filter(compare[sign](table[fields[0].name], value))
    return table


def _same_in_arrow(kind: Any, sign: str, value: int | str) -> bool:
    """Whether Arrow compares values of a Spark type with a literal as Spark does: whole numbers, and equality
    of strings of the default collation. (A NaN is the largest number of Spark; a string is cast to a number.)
    """
    from pyspark.sql import types as t

    if isinstance(value, int):
        return isinstance(kind, (t.ByteType, t.ShortType, t.IntegerType, t.LongType))
    return kind == t.StringType() and sign == "="
