"""The changes between two results, written into a sink. EXPLAIN PYSPARK prints this code, so it is
self-contained.
"""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamsql.runtime.embedded.carried_values import key_text, to_frame


def identified(rows: Any, keys: Sequence[str] = ()) -> Any:
    """A DataFrame with two more columns: __row tells its rows apart, __key the values of its keys."""

    whole = f"unhex(md5({key_text(rows.schema)}))"
    of_keys = f"unhex(md5({key_text(rows.schema, keys)}))" if keys else whole
    return rows.selectExpr("*", f"{whole} AS __row", f"{of_keys} AS __key")


def columns_of_changes(schema: Any) -> Any:
    """The columns of changes, for the schema of the result of `identified`. A row that was written before a
    column came has NULL there.
    """
    columns = type(schema)().add("_op", "string", False)
    for field in schema.fields[:-2]:
        columns = columns.add(field.name, field.dataType, True, field.metadata)
    return columns


class Changes:
    """Keeps a sink in step with a result that is computed again and again: writes what has changed since it
    was written last. table: the rows of that time, None before; last_batch: their version.

    schema: of the result of `identified`. write: a function (DataFrame of changes, version); a version that
    is repeated has the same changes. A column _op says what each row is: +I new, -U and +U before and after a
    change, -D gone. Rows that have the same keys are one row that changes; without keys, or where several
    rows have the same ones, there is only +I and -D. envelope: a change is one row in Debezium's envelope
    instead: before, after, op (c, u, d) and ts_ms. unique: rows with the same keys are an error instead.
    query: names the writer to sinks that note the versions that they have. begin and keep, if they are set,
    are called with (version, rows) before and after these are written; silent: the first rows are taken as
    written. empty_fault: as of LiveRows.
    """

    ROW = "__row"
    BY = "__key"

    def __init__(
        self,
        spark: Any,
        schema: Any,
        write: Callable[[Any, int], object],
        keys: Sequence[str] = (),
        unique: bool = False,
        query: str = "",
        envelope: bool = False,
    ) -> None:
        self.spark = spark
        self.schema = schema
        self.write = write
        self.by = list(keys)
        self.unique = unique
        self.envelope = envelope
        self.query = query or str(uuid.uuid4())
        self.begin: Any = None
        self.keep: Any = None
        self.silent = False
        self.empty_fault: Any = None
        self.table: Any = None
        self.last_batch = -1

    def now(self) -> Any:
        """In place of RowsAt: the rows of such a query are in its sink only."""
        return self

    def take(self, new: Any, version: int) -> None:
        """Write what is different in new rows, then keep them."""
        if self.begin:
            self.begin(version, new)
        if not self.silent or self.table is not None:
            self.send(self.table, new, version)
        self.set_written(new, version)

    def set_written(self, rows: Any, version: int) -> None:
        """Note that the sink has the rows of a version: the next changes are those since then."""
        if self.keep:
            self.keep(version, rows)
        self.table, self.last_batch = rows, version

    def send(self, before: Any, after: Any, version: int) -> None:
        """Write the changes from rows (None for none) to others."""
        # Without NOT NULL: rows that were written before need not have it.
        parts = [pa.Table.from_arrays(t.columns, t.column_names) for t in self.between(before, after)]
        if not any(rows.num_rows for rows in parts):
            return
        changes = self._envelopes(*parts) if self.envelope else self._flat(*parts)
        context = self.spark.sparkContext
        context.setLocalProperty("sql.streaming.queryId", self.query)
        try:
            # In one task: the changes of a key stay in their order.
            self.write(changes.coalesce(1), version)
        finally:
            context.setLocalProperty("sql.streaming.queryId", None)

    def between(self, before: Any, after: Any) -> tuple[Any, Any, Any, Any]:
        """(rows that are gone, rows before a change, the same rows after it, new rows)."""
        before = after.slice(0, 0) if before is None else before
        if not self.by or not (self._has_unique_keys(before) and self._has_unique_keys(after)):
            was, now = (Counter(rows[self.ROW].to_pylist()) for rows in (before, after))
            none = after.slice(0, 0)
            return self._some(before, was - now), none, none, self._some(after, now - was)
        keys_before, keys_after = before[self.BY].combine_chunks(), after[self.BY].combine_chunks()
        gone = before.filter(pc.invert(pc.is_in(before[self.BY], keys_after)))
        at = pc.index_in(keys_after, keys_before)
        came = after.filter(pc.invert(pc.is_valid(at)))
        was, now = before.take(pc.drop_null(at)), after.filter(pc.is_valid(at))
        differ = pc.not_equal(was[self.ROW], now[self.ROW])
        return gone, was.filter(differ), now.filter(differ), came

    def _has_unique_keys(self, rows: Any) -> bool:
        """Whether no two rows have the same key. Raises ValueError if they must not."""
        once = len(pc.unique(rows[self.BY])) == rows.num_rows
        if not once and self.unique:
            raise ValueError(f"the result has several rows with the same KEY ({', '.join(self.by)})")
        return once

    def _some(self, rows: Any, counts: Counter[Any]) -> Any:
        """As many rows of each content as `counts` has."""
        left, places = dict(counts), []
        if left:
            for place, value in enumerate(rows[self.ROW].to_pylist()):
                if left.get(value, 0) > 0:
                    left[value] -= 1
                    places.append(place)
        return rows.take(pa.array(places, pa.int64()))

    def _envelopes(self, gone: Any, was: Any, now: Any, came: Any) -> Any:
        """A DataFrame of the rows before and after each change."""
        from pyspark.sql import functions as F

        ops = ["d"] * gone.num_rows + ["u"] * was.num_rows + ["c"] * came.num_rows
        fields, columns = self.schema.fields[:-2], [pa.array(ops, pa.string())]
        schema = type(self.schema)().add("op", "string")
        for side, (first, second, third) in (("b", (gone, was, None)), ("a", (None, now, came))):
            for n, field in enumerate(fields):
                kind = gone.column(n).type
                nulls = pa.chunked_array([pa.nulls((gone if first is None else came).num_rows, kind)])
                sides = (t.column(n) if t is not None else nulls for t in (first, second, third))
                columns.append(pa.chunked_array([chunk for part in sides for chunk in part.chunks], kind))
                schema = schema.add(f"{side}{n}", field.dataType)
        flat = pa.table(columns, names=schema.names).combine_chunks()
        rows = to_frame(self.spark, flat, schema)

        def row(side: str) -> Any:
            return F.struct(*(F.col(f"{side}{n}").alias(field.name) for n, field in enumerate(fields)))

        before, after = F.when(F.col("op") != "c", row("b")), F.when(F.col("op") != "d", row("a"))
        now_ms = F.lit(int(time.time() * 1000))
        return rows.select(before.alias("before"), after.alias("after"), "op", now_ms.alias("ts_ms"))

    def _flat(self, gone: Any, was: Any, now: Any, came: Any) -> Any:
        """A DataFrame of rows with a column _op."""
        pairs = [at for n in range(was.num_rows) for at in (n, n + was.num_rows)]
        rows = pa.concat_tables([gone, pa.concat_tables([was, now]).take(pa.array(pairs, pa.int64())), came])
        ops = ["-D"] * gone.num_rows + ["-U", "+U"] * was.num_rows + ["+I"] * came.num_rows
        rows = rows.drop_columns([self.ROW, self.BY]).add_column(0, "_op", pa.array(ops, pa.string()))
        # In one chunk: Spark ends a partition of an Arrow table at an empty one.
        return to_frame(self.spark, rows.combine_chunks(), columns_of_changes(self.schema))
