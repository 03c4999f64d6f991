"""The rows of a live table. EXPLAIN PYSPARK prints this code, so it is self-contained."""

import threading
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamsql.runtime.embedded.carried_values import key_text, to_arrow, to_frame


class RowsAt:
    """The rows of a live table after one of its micro-batches: an immutable Arrow table, None before the
    first micro-batch.
    """

    def __init__(self, schema, table, batch):
        self.schema = schema
        self.table = table
        self.batch = batch
        self._frame = (None, None)

    @property
    def count(self):
        return 0 if self.table is None else self.table.num_rows

    def frame(self, spark, limit=None):
        """A DataFrame of the rows, of at most `limit` of them if it is given."""
        if self.table is None:
            return to_frame(spark, None, self.schema)
        if limit is not None:
            return self.handed(spark, self.table.slice(0, limit), self.schema)
        if self._frame[0] is not spark:
            self._frame = (spark, self.handed(spark, self.table, self.schema))
        return self._frame[1]

    def handed(self, spark, table, schema):
        """A DataFrame of an Arrow table."""
        if not table.num_rows:
            return to_frame(spark, None, schema)
        if table.column(0).num_chunks > 1 + table.num_rows // 5_000:
            # Each chunk would be a task.
            table = table.combine_chunks()
        # Without empty chunks: Spark leaves out what stands behind one of them.
        batches = [batch for batch in table.to_batches() if batch.num_rows]
        frame = to_frame(spark, pa.Table.from_batches(batches, table.schema), schema)
        # A partition has 10,000 rows, which are few for a task.
        tasks = max(spark.sparkContext.defaultParallelism, table.num_rows // 100_000)
        return frame.coalesce(tasks) if table.num_rows > 100_000 else frame


class LiveRows:
    """Rows that a streaming query updates with every micro-batch.

    mode "append" keeps the last `retain` rows, "complete" the newest result, "update" the newest rows for
    each value of `keys` (a list of columns; None keeps all rows, as in append). A micro-batch holds all
    rows of an updated group (a join after the aggregation may produce several); with `one`, only the last
    row of each key is kept. hidden: columns that are only keys; kept: a column that says whether a row is
    in the result: a group without such rows is removed. Neither is shown. strict: more than `retain` rows
    in mode append are an error. query: the id of the query (in its checkpoint) whose micro-batches these
    are, None before the first. keep, if it is set, is called before the rows change: (batch_id, the table
    after the micro-batch, its rows); watchers are called afterwards: (the table before, after, its rows).
    empty_fault: the error of the query over no rows, until it has a result; None if that has one, too.
    """

    KEY = "__live_key"
    # Rows of a chunk, on average, below which chunks are combined.
    CHUNK = 1000

    def __init__(self, schema, mode, keys, retain, one=False, hidden=(), kept=None, strict=False):
        self.schema = type(schema)([f for f in schema.fields if f.name not in (*hidden, kept)])
        self.hidden = list(hidden)
        self.kept = kept
        self.mode = mode
        self.keys = keys if mode == "update" else None
        self.retain = retain
        self.strict = strict
        self.one = one
        self.query: Any = None
        self.last_batch = -1
        self.version = 0
        self.dropped = 0
        self.table: Any = None
        self.keep: Any = None
        self.empty_fault: Any = None
        self.watchers: list = []
        self._lock = threading.Lock()
        self._now: Any = (None, None, None)

    def feed(self, batch, batch_id, keyed=False):
        """Apply one micro-batch; one that was applied before is skipped (exactly once). keyed: its rows have
        the text of their keys. Raises ValueError for a micro-batch of another checkpoint.
        """
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        if self.query not in (None, query):
            raise ValueError(
                "[ROWS_NOT_OF_CHECKPOINT] the rows are of another checkpoint than the micro-batches that come"
            )
        self.query = query
        if batch_id <= self.last_batch:
            # It is computed nevertheless: the state of the query may not have been saved then.
            batch.write.format("noop").mode("append").save()
            return
        self.take(self._newest(to_arrow(batch if keyed else self.keyed(batch))), batch_id)

    def take(self, new, batch_id, whole=False):
        """Apply the rows of one micro-batch; whole: they replace all rows."""
        if self.table is not None and self.table.num_rows > 100 * self.CHUNK:
            # What older versions took, which Arrow would keep for itself.
            pa.default_memory_pool().release_unused()
        with self._lock:
            before = after = self.table
            rows = self.in_result(new)
            if whole or self.mode == "complete" or before is None:
                after = rows
            elif self.keys is not None:
                after = self._replace(new, rows)
            elif new.num_rows:
                after = self._joined(before, rows)
            after, over = self._trimmed(after)
            if self.keep:
                self.keep(batch_id, after, new)
            self.table = after
            self.dropped += over
            self.last_batch = batch_id
            self.empty_fault = None
            self.version += 1
            watchers = list(self.watchers)
        for tell in watchers:
            tell(before, after, new)

    def keyed(self, frame):
        """The rows with the text of their keys, without the columns that are only keys."""
        if self.keys is None:
            return frame
        key = key_text(frame.schema, self.keys) if self.keys else "''"
        return frame.selectExpr("*", f"{key} AS {self.KEY}").drop(*self.hidden)

    def _newest(self, new):
        """The rows of a batch; with `one`, only the last of those with equal keys."""
        if not (self.one and self.keys) or new.num_rows == len(pc.unique(new[self.KEY])):
            return new
        last = {key: row for row, key in enumerate(new[self.KEY].to_pylist())}
        return new.take(sorted(last.values()))

    def in_result(self, table):
        """The rows that are in the result."""
        return table if self.kept is None else table.filter(table[self.kept])

    def shown(self, table):
        """The columns of rows that are shown."""
        if self.keys is None:
            return table
        return table.drop_columns([self.KEY] if self.kept is None else [self.KEY, self.kept])

    def _replace(self, new, rows):
        """The table with the rows of the groups in new replaced by those that are in the result."""
        if not new.num_rows:
            return self.table
        replaced = pc.is_in(self.table[self.KEY], new[self.KEY].combine_chunks())
        return self._joined(self._without(self.table, replaced), rows)

    def _without(self, table, mask):
        """The table without the rows where mask is true. A few rows of many are left out without a copy of
        the others.
        """
        places = pc.indices_nonzero(mask)
        if not len(places):
            return table
        if len(places) > table.num_rows // self.CHUNK:
            return table.filter(pc.invert(mask))
        places = places.to_pylist()
        edges = zip([-1, *places], [*places, table.num_rows], strict=True)
        slices = [table.slice(start + 1, end - start - 1) for start, end in edges if end - start > 1]
        return pa.concat_tables(slices)

    def _joined(self, before, rows):
        """Both in one. A column may have NULL in one of them only; names may come twice."""
        if before.schema != rows.schema:
            both = zip(before.schema, rows.schema, strict=True)
            schema = pa.schema([old.with_nullable(old.nullable or new.nullable) for old, new in both])
            before, rows = (pa.Table.from_arrays(t.columns, schema=schema) for t in (before, rows))
        return pa.concat_tables([before, rows])

    def _trimmed(self, table):
        """(the table cut to the rows that are kept, the number of rows dropped)."""
        over = 0
        if self.mode != "complete" and self.keys is None and table.num_rows > self.retain:
            over = table.num_rows - self.retain
            if self.strict:
                rows = "1 row of a stream has" if self.retain == 1 else f"{self.retain} rows of a stream have"
                raise ValueError(f"[LIMIT_REACHED] more than {rows} to be kept")
            table = table.slice(over)
        if table.num_columns and table.column(0).num_chunks > max(64, table.num_rows // self.CHUNK):
            table = table.combine_chunks()
        return table, over

    def held(self):
        """A context manager; no micro-batch is applied inside."""
        return self._lock

    def watch(self, tell):
        """Call `tell` after each later micro-batch. Returns the current table."""
        with self._lock:
            self.watchers.append(tell)
            return self.table

    def unwatch(self, tell):
        """Call `tell` no longer."""
        with self._lock:
            self.watchers = [watcher for watcher in self.watchers if watcher != tell]

    def rows(self):
        """(an Arrow table of the current rows, or None before the first batch; its version)."""
        with self._lock:
            table = self.table
            return table if table is None else self.shown(table), self.version

    def now(self):
        """The current rows as a RowsAt: the same object until the next micro-batch, and with the same table
        until rows arrive.
        """
        with self._lock:
            version, of, at = self._now
            if version != self.version:
                if of is not self.table:
                    of, at = self.table, RowsAt(self.schema, self.shown(self.table), self.last_batch)
                else:
                    at = RowsAt(self.schema, at and at.table, self.last_batch)
                self._now = (self.version, of, at)
            return at

    def frame(self, spark, limit=None):
        """A DataFrame of the current rows, of at most `limit` of them if it is given."""
        return self.now().frame(spark, limit)
