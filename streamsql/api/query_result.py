"""The result of a statement for Python: rows as Arrow, pandas or tuples, and the notes."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from streamsql.config.preferences import Preferences
from streamsql.errors import InputFault, Note
from streamsql.output.printer import Printer
from streamsql.output.terminal import window
from streamsql.results import ArrowRows, Done, Result, Rows, Started, counted, in_rows
from streamsql.runtime.engine.arrow_rows import spark_type, tuples_of

if TYPE_CHECKING:
    import pandas as pd
    from pyarrow import RecordBatch, Table

Row = tuple[Any, ...]
FEW = 40
"""The rows that `show` prints, unless told otherwise."""


class QueryResult:
    """What a statement gave. Rows are fetched from Spark as they are read, each once: iteration, fetchone,
    fetchmany and fetchall go on where the one before ended. `arrow` and `df` take the rows that are left and
    keep them, so that they can be called again; `show` leaves all rows to be read.

    columns, types: the names and Spark's types of the columns, [] for a statement without rows. notes: what
    is to be known beside the result. message: what was done, for a statement without rows. version, batch: of
    the live table of Connection.table, 0 and -1 otherwise.
    """

    def __init__(
        self,
        result: Result,
        notes: tuple[Note, ...],
        more: Callable[[Iterator[Any]], Any],
        close: Callable[[], None],
    ) -> None:
        """more: fetches the next batches, None behind the last ones; close: ends that."""
        self.notes = [str(note) for note in notes]
        self.message = result.message if isinstance(result, (Done, Started)) else ""
        self._table: Table | None = None
        self._rows: Iterator[Row] = iter(())
        self._close = close
        rows = _arrow_of(result)
        self.version, self.batch, self._zone = rows.version, rows.batch, rows.zone
        self._ahead: deque[RecordBatch] = deque(rows.first)
        self._schema = self._ahead[0].schema if self._ahead else None
        self._rest = iter(lambda: more(rows.rest), None)
        self.columns: list[str] = list(rows.columns)
        self.types: list[str] = list(rows.types)
        if not isinstance(result, ArrowRows):
            self._end()

    # ---- Arrow ----------------------------------------------------------------------------

    def __iter__(self) -> Iterator[RecordBatch]:
        """The rows as record batches of Arrow, of at most 10,000 rows. Raises Error when the query fails."""
        while (batch := self._next()) is not None:
            if batch.num_rows:
                yield batch

    def _next(self) -> RecordBatch | None:
        """The next batch, None behind the last one."""
        if self._table is not None:
            self._ahead.extend(self._table.to_batches())
            self._table = None
        return self._ahead.popleft() if self._ahead or self._fetch() else None

    def arrow(self) -> Table:
        """The rows as a table of Arrow, in memory. A TIMESTAMP has the session time zone; VARIANT and
        intervals of months are texts. Raises Error when the query fails.
        """
        import pyarrow as pa

        if self._table is None:
            table = pa.Table.from_batches(list(self), self._schema or pa.schema([]))
            self._table, self._rows = table, iter(())
        return self._table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for other libraries, such as polars and DuckDB: `polars.DataFrame(result)`."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def df(self) -> pd.DataFrame:
        """The rows as a DataFrame of pandas. Raises Error when the query fails, or without pandas."""
        if find_spec("pandas") is None:
            raise InputFault(
                "pandas is not installed",
                hint="pip install 'streamsql-console[pandas]', or .arrow()",
                code="MISSING_MODULE",
            )
        return self.arrow().to_pandas()

    # ---- tuples ---------------------------------------------------------------------------

    def fetchone(self) -> Row | None:
        """The next row, None behind the last one. A TIMESTAMP is a datetime in the session time zone, a
        STRUCT a dict. What Python has no object for, such as a year behind 9999 or a TIME, is a text of
        Spark.
        """
        row = next(self._rows, None)
        while row is None:
            batch = self._next()
            if batch is None:
                return None
            self._rows = tuples_of(batch, self._zone)
            row = next(self._rows, None)
        return row

    def fetchmany(self, size: int = 1) -> list[Row]:
        """At most so many of the next rows."""
        return list(islice(iter(self.fetchone, None), size))

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return list(iter(self.fetchone, None))

    # ---- text -----------------------------------------------------------------------------

    def show(self, rows: int = FEW) -> None:
        """Print the first rows, or what was done, and the notes, as the console does. rows: their number."""
        printer = Printer(Preferences(), sys.stdout, sys.stdout, width=_width)
        if not self.columns:
            printer.show(Done(message=self.message))
        else:
            shown, more = self.head(rows)
            printer.write(printer.lines(shown))
            number = counted(len(shown.rows), "row")
            printer.say(f"(the first {number})" if more else f"({number})")
        for note in self.notes:
            printer.remark(f"note: {note}")

    def head(self, count: int) -> tuple[Rows, bool]:
        """(the first rows, which stay to be read; whether there are more)."""
        while sum(batch.num_rows for batch in self._ahead) <= count and self._table is None and self._fetch():
            pass
        batches = self._table.to_batches() if self._table is not None else self._ahead
        taken = list(islice((row for batch in batches for row in tuples_of(batch, self._zone)), count + 1))
        numeric = tuple(spark_type(field.type)[1] for field in self._schema or ())
        return Rows((), tuple(self.columns), taken[:count], numeric), len(taken) > count

    def __repr__(self) -> str:
        columns = zip(self.columns, self.types, strict=True)
        said = ", ".join(f"{name} {kind}" for name, kind in columns) or self.message
        return f"<streamsql result: {said or 'done'}>"

    # ---- the end --------------------------------------------------------------------------

    def _fetch(self) -> bool:
        """Fetch further batches; whether there were some."""
        batches = next(self._rest, None)
        if batches is None:
            self._end()
            return False
        self._ahead.extend(batches)
        return True

    def close(self) -> None:
        """Fetch no more rows. Queries in the background go on."""
        self._ahead.clear()
        self._end()

    def _end(self) -> None:
        self._rest = iter(())
        self._close()

    def __enter__(self) -> QueryResult:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _width() -> int:
    """The width of the terminal; 0, for no limit, in a notebook or file."""
    return window().columns if sys.stdout.isatty() else 0


def _arrow_of(result: Result) -> ArrowRows:
    """The rows of any result. Those that the console itself makes have only texts and numbers."""
    result = in_rows(result)
    if isinstance(result, ArrowRows):
        return result
    if not isinstance(result, Rows):
        return ArrowRows()
    import pyarrow as pa

    columns = list(zip(*result.rows, strict=True)) or [()] * len(result.columns)
    arrays = [_array(values) for values in columns]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(result.columns))
    types = tuple(spark_type(array.type)[0] for array in arrays)
    return ArrowRows((), result.columns, first=[batch], types=types)


def _array(values: tuple[Any, ...]) -> Any:
    """A column of Arrow; of texts where its values are of several types, or there are none."""
    import pyarrow as pa

    try:
        array = pa.array(values)
    except (pa.ArrowException, OverflowError):
        array = pa.nulls(len(values))
    if not pa.types.is_null(array.type):
        return array
    return pa.array([None if value is None else str(value) for value in values], pa.string())
