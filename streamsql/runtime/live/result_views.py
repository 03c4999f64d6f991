"""Views of a refreshing result: its current rows, or its changes. They run no Spark job."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from streamsql.results import Snapshot
from streamsql.runtime.engine.row_values import column_values, is_numeric, zone_of

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import LiveRows, RowsAt

RETAINED_CHANGES = 1_000
"""The number of changes kept for a reader; older ones are only counted."""
RETAINED_FOR_PROGRAM = 1_000_000
"""The same for a program, which reads all of them."""

SORTED_ROWS = 200_000
"""A keyed table of at most this many rows is shown in the order of its keys, a larger one in the order
of arrival.
"""

COMPARED_ROWS = 20_000
"""Two complete results of at most this many rows are compared row by row for their changes."""


class TableView:
    """The current rows of a live table, in a stable order. zone: the session time zone; newest: gives the
    rows that are there now, where a live table may begin anew with others.
    """

    def __init__(
        self, rows: LiveRows, zone: str, newest: Callable[[], LiveRows | None] = lambda: None
    ) -> None:
        self.rows = rows
        self._newest = newest
        self._zone = zone
        self._sorted: tuple[Any, Any] = (None, None)
        self._frozen: tuple[RowsAt, int] | None = None
        self._taken: tuple[Any, Snapshot] = (None, Snapshot())

    def freeze(self, still: bool) -> None:
        """Freeze the rows as they are now, so that the reader can scroll in them; still=False: thaw."""
        self._frozen = (self.rows.now(), self.rows.version) if still else None

    def take(self, count: int, first: int | None, order: tuple[str, bool] | None) -> Snapshot:
        """See results.Live. The newest rows of an appended or keyed table are at its end.

        Returns the same Snapshot while the table has not changed.
        """
        if self._frozen is None:
            self.rows = self._newest() or self.rows
        at, version = self._frozen or (self.rows.now(), self.rows.version)
        asked = (at, count, first, order)
        if self._taken[0] != asked:
            self._taken = asked, self._take(at, version, count, first, order)
        return self._taken[1]

    def _take(
        self, at: RowsAt, version: int, count: int, first: int | None, order: tuple[str, bool] | None
    ) -> Snapshot:
        columns = tuple(field.name for field in at.schema.fields)
        numeric = tuple(is_numeric(field.dataType) for field in at.schema.fields)
        if at.table is None:
            return Snapshot(columns, numeric)
        table = self._in_order(at, order)
        total = table.num_rows
        if first is None:
            first = 0 if self.rows.mode == "complete" or order else max(0, total - count)
        first = max(0, min(first, total - 1))
        rows = values(table.slice(first, count), at.schema, self._zone)
        return Snapshot(
            columns, numeric, rows, total, first, self.rows.dropped, version, self.rows.last_batch
        )

    def _in_order(self, at: RowsAt, order: tuple[str, bool] | None) -> Any:
        names = at.schema.names
        keys = [k for k in self.rows.keys or () if k in names] if order is None else []
        if not (keys or order) or at.table.num_rows > SORTED_ROWS:
            return at.table
        if self._sorted[0] != (at, order):
            by = [(k, False) for k in keys] if order is None else [order]
            self._sorted = ((at, order), _sort(at.table, by))
        return self._sorted[1]


def values(table: Any, schema: Any, zone: str) -> list[tuple[Any, ...]]:
    """The rows of a small Arrow table as Python values. schema: of the columns; zone: of the session."""
    columns = zip(table.columns, schema.fields, strict=True)
    own = zone_of(zone)
    return list(zip(*(column_values(c, f.dataType, own) for c, f in columns), strict=True))


def _sort(table: Any, by: Sequence[tuple[str, bool]]) -> Any:
    """A table sorted by columns; a struct (a window) sorts by its fields in turn."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrays, directions = list[Any](), list[str]()
    for name, down in by:
        leaves = pa.table([table[name]], names=[name])
        while any(map(pa.types.is_struct, leaves.schema.types)):
            leaves = leaves.flatten()
        arrays += leaves.columns
        directions += ["descending" if down else "ascending"] * leaves.num_columns
    names = [str(i) for i in range(len(arrays))]
    try:
        keys = pa.table(arrays, names=names)
        return table.take(pc.sort_indices(keys, sort_keys=list(zip(names, directions, strict=True))))
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return table  # arrays and maps have no order


class ChangesView:
    """The current rows of a live table, then the changes to them, micro-batch by micro-batch.

    +I a new row, -U and +U a row before and after a change, -D a deleted row. retain: the number of changes
    that are kept.
    """

    def __init__(self, rows: LiveRows, zone: str, retain: int = RETAINED_CHANGES) -> None:
        self.rows = rows
        self.retain = retain
        self.columns = ("op", *(f.name for f in rows.schema.fields))
        self.numeric = (False, *(is_numeric(f.dataType) for f in rows.schema.fields))
        self._zone = zone
        self._lock = threading.Lock()
        self._changes: deque[tuple[int, int, tuple[Any, ...]]] = deque(maxlen=retain)
        """The changes, each with the number of its micro-batch and the version that it leads to."""
        self._count = 0
        self._version = 0
        self._still: deque[tuple[int, int, tuple[Any, ...]]] | None = None
        with self._lock:  # a micro-batch that comes at this moment is added after the current rows
            current = rows.watch(self._batch)
            if current is not None:
                self._add(self._differences(None, current, current))

    def freeze(self, still: bool) -> None:
        with self._lock:
            self._still = self._changes.copy() if still else None

    def close(self) -> None:
        self.rows.unwatch(self._batch)

    def take(self, count: int, first: int | None, order: tuple[str, bool] | None) -> Snapshot:
        """See results.Live; changes are always in the order of arrival."""
        with self._lock:
            changes = self._changes if self._still is None else self._still
            total = len(changes)
            first = max(0, total - count) if first is None else max(0, min(first, total - 1))
            taken = list(islice(changes, first, first + count))
            dropped, version = self._count - total, self._version
        return Snapshot(
            self.columns,
            self.numeric,
            [row for *_, row in taken],
            total,
            first,
            dropped,
            version,
            self.rows.last_batch,
            changes=True,
            batches=[batch for batch, *_ in taken],
            versions=[version for _, version, _ in taken],
        )

    def _batch(self, before: Any, after: Any, new: Any) -> None:
        """Called after each micro-batch, with the table before and after it, and its rows."""
        try:
            changes = self._differences(before, after, new)
        except Exception:
            changes = []  # an error of a reader must never fail the query
        with self._lock:
            self._add(changes)

    def _add(self, changes: list[tuple[Any, ...]]) -> None:
        self._version = max(self._version + 1, self.rows.rows()[1])
        self._changes.extend((self.rows.last_batch, self._version, change) for change in changes)
        self._count += len(changes)

    def _differences(self, before: Any, after: Any, new: Any) -> list[tuple[Any, ...]]:
        if self.rows.mode == "complete":
            return self._whole(before, after)
        if self.rows.keys is None or before is None:
            new = self.rows.in_result(new)
            self._count += max(0, new.num_rows - self.retain)
            return [("+I", *row) for row in self._rows(new.slice(max(0, new.num_rows - self.retain)))]
        return self._keyed(before, new)

    def _rows(self, table: Any) -> list[tuple[Any, ...]]:
        return values(self.rows.shown(table), self.rows.schema, self._zone)

    def _keyed(self, before: Any, new: Any) -> list[tuple[Any, ...]]:
        import pyarrow.compute as pc

        touched = before.filter(pc.is_in(before[self.rows.KEY], new[self.rows.KEY].combine_chunks()))
        old: dict[str, list[tuple[Any, ...]]] = {}
        for key, row in zip(touched[self.rows.KEY].to_pylist(), self._rows(touched), strict=True):
            old.setdefault(key, []).append(row)
        changes: list[tuple[Any, ...]] = []
        stays = new[self.rows.kept].to_pylist() if self.rows.kept else [True] * new.num_rows
        for key, row, in_result in zip(new[self.rows.KEY].to_pylist(), self._rows(new), stays, strict=True):
            earlier = old.pop(key, [])
            if in_result and repr(row) in map(repr, earlier):  # NaN is not equal to itself
                continue
            if not in_result:
                changes += [("-D", *r) for r in earlier]
                continue
            changes += [("-U", *r) for r in earlier] + [("+U" if earlier else "+I", *row)]
        return changes

    def _whole(self, before: Any, after: Any) -> list[tuple[Any, ...]]:
        if after.num_rows > max(COMPARED_ROWS, self.retain):
            self._count += after.num_rows - self.retain
            return [("+I", *row) for row in self._rows(after.slice(0, self.retain))]
        now = self._rows(after)
        was = self._rows(before) if before is not None else []
        gone, come = Counter(map(repr, was)), Counter(map(repr, now))
        both = gone & come
        changes = []
        for op, rows, count in (("-D", was, gone - both), ("+I", now, come - both)):
            for row in rows:
                if count[repr(row)] > 0:
                    count[repr(row)] -= 1
                    changes.append((op, *row))
        return changes
