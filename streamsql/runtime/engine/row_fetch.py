"""Fetches the rows of a DataFrame as they are read: in Arrow, a few partitions at a time."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import Any

from streamsql.results import Rows, RowStream
from streamsql.runtime.embedded.carried_values import carried_schema, in_carried_form, touched
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.java_classes import java_class
from streamsql.runtime.engine.row_values import collect, column_values, is_numeric, row_values, zone_of
from streamsql.runtime.engine.spark_classes import ROW_SPOOL
from streamsql.runtime.engine.spark_texts import with_texts

AT_ONCE = 10_000
"""A result of which Spark knows that it has at most so many rows is fetched whole."""
FIRST = 2_000
"""The rows that are fetched before the others."""
BLOCK = 1_000
"""The rows that are converted at a time."""

Block = list[tuple[Any, ...]]


def fetch(frame: Any, cancel: CancelToken, failed: Callable[[Exception], Exception]) -> Rows | RowStream:
    """The rows of a DataFrame: all of them if they are few, otherwise the first, and the others as they are
    read. failed: makes of an exception of Spark what is raised while they are read. Raises Cancelled.
    """
    if few(frame):
        return collect(frame)
    if not _repeatable(frame):
        return _begun(frame, _blocks(frame, cancel), cancel, failed)
    # LIMIT ends its tasks early; otherwise the first partition is computed to its end.
    rows = collect(frame.limit(FIRST + 1))
    if len(rows.rows) <= FIRST:
        return rows
    rest = translated(_without(FIRST, _blocks(frame, cancel)), cancel, failed)
    return RowStream((), rows.columns, rows.numeric, rows.rows[:FIRST], rest, rows.seconds or 0.0)


def fetch_rows(frame: Any, cancel: CancelToken, failed: Callable[[Exception], Exception]) -> Rows | RowStream:
    """The same without a call of the JVM: each row as Spark hands it over."""
    return _begun(frame, _of_rows(frame, cancel), cancel, failed)


def _begun(
    frame: Any, blocks: Iterator[Block], cancel: CancelToken, failed: Callable[[Exception], Exception]
) -> Rows | RowStream:
    """The first of the blocks of a DataFrame, and the others as they are read."""
    began, first = time.monotonic(), list[tuple[Any, ...]]()
    for block in blocks:
        first += block
        if len(first) > FIRST:
            names, first, numeric = _columns(frame, first)
            seconds = time.monotonic() - began
            return RowStream((), names, numeric, first, translated(blocks, cancel, failed), seconds)
    return Rows((), *_columns(frame, first), time.monotonic() - began)


def live_table_rows(live: Any, spark: Any, cancel: CancelToken) -> Rows:
    """The rows of a live table (LiveRows) as those of its DataFrame, mostly without a job of Spark, and
    without pandas, which PySpark imports to make one.
    """
    now, began = live.now(), time.monotonic()
    batches = [] if now.table is None else now.table.to_batches()
    blocks = _of_batches(iter(batches), now.schema, _zone(spark), cancel)
    rows = [row for block in blocks for row in block]
    return Rows((), *_columns(now, rows), time.monotonic() - began)


def _columns(frame: Any, rows: Block) -> tuple[tuple[str, ...], Block, tuple[bool, ...]]:
    """(names, rows, whether each is numeric)."""
    fields = frame.schema.fields
    return tuple(f.name for f in fields), rows, tuple(is_numeric(f.dataType) for f in fields)


def _without(count: int, blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks without the first rows, which have been fetched already."""
    for block in blocks:
        if count < len(block):
            yield block[count:]
        count = max(0, count - len(block))


def _repeatable(frame: Any) -> bool:
    """Whether a second run of the query gives the same rows in the same order: rows behind a shuffle come in
    any order.
    """
    execution = frame._jdf.queryExecution()
    return execution.optimizedPlan().deterministic() and "Exchange" not in execution.executedPlan().toString()


def few(frame: Any) -> bool:
    """Whether Spark knows before it runs the query that its rows are few."""
    most = frame._jdf.queryExecution().optimizedPlan().maxRows()
    return bool(most.isDefined() and most.get() <= AT_ONCE)


def translated(
    blocks: Iterator[list[Any]], cancel: CancelToken, failed: Callable[[Exception], Exception]
) -> Iterator[list[Any]]:
    """The same blocks; an exception of Spark is raised as `failed` makes it. Raises Cancelled."""
    try:
        yield from blocks
    except Exception as error:
        cancel.check()
        raise failed(error) from error


def _blocks(frame: Any, cancel: CancelToken) -> Iterator[Block]:
    """The rows in blocks; nothing is computed before the first is asked for."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import UserDefinedType

    if touched(frame.schema, lambda kind: True if isinstance(kind, UserDefinedType) else None):
        return _of_rows(frame, cancel)  # its values are objects of Python, such as vectors
    schema = to_arrow_schema(carried_schema(frame.schema), timezone="UTC")
    batches = record_batches(in_carried_form(frame), schema, cancel)
    return _of_batches(batches, frame.schema, _zone(frame.sparkSession), cancel)


def _zone(session: Any) -> dt.tzinfo:
    """The session time zone."""
    return zone_of(session.conf.get("spark.sql.session.timeZone"))


def _of_rows(frame: Any, cancel: CancelToken) -> Iterator[Block]:
    rows, values = with_texts(frame).toLocalIterator(), row_values(frame.schema)
    while block := [values(row) for row in islice(rows, BLOCK)]:
        cancel.check()
        yield block


def _of_batches(batches: Iterator[Any], schema: Any, zone: dt.tzinfo, cancel: CancelToken) -> Iterator[Block]:
    for batch in batches:
        for start in range(0, batch.num_rows, BLOCK):
            cancel.check()
            columns = zip(batch.slice(start, BLOCK).columns, schema.fields, strict=True)
            values = [column_values(column, field.dataType, zone) for column, field in columns]
            yield list(zip(*values, strict=True))


def record_batches(frame: Any, schema: Any, cancel: CancelToken) -> Iterator[Any]:
    """The rows as record batches of an Arrow schema, in order. The first partition is computed alone, the
    others as many at a time as there are processors: a reader who leaves early has not waited for all of
    them.
    """
    import pyarrow as pa

    context = frame.sparkSession.sparkContext
    with _settings_of(frame.sparkSession):
        encoded = frame._jdf.toArrowBatchRdd(10 * BLOCK, "UTC", False, False)
        count = encoded.getNumPartitions()
    parallel = max(2, context.defaultParallelism)
    handed_over = _by_files if context._jsc.isLocal() else _by_memory
    with handed_over(frame.sparkSession, encoded) as computed:
        for start in [0, *range(1, count, parallel)] if count else []:
            cancel.check()
            partitions = list(range(start, min(start + parallel, count) if start else 1))
            for message in computed(partitions):
                cancel.check()
                yield pa.ipc.read_record_batch(pa.py_buffer(message), schema)


Computed = Callable[[list[int]], Iterator[bytes]]
"""Computes partitions of byte arrays, and gives their arrays in order."""


@contextmanager
def _by_files(session: Any, encoded: Any) -> Iterator[Computed]:
    """Partitions by files, so that the memory does not hold them."""
    from pyspark.serializers import NoOpSerializer

    context, spool = session.sparkContext._jsc.sc(), java_class(session, ROW_SPOOL)
    folder = Path(spool.folder(context))

    def computed(partitions: list[int]) -> Iterator[bytes]:
        with _settings_of(session):
            spool.write(context, encoded, partitions, str(folder))
        for partition in partitions:
            with open(folder / str(partition), "rb") as file:
                yield from NoOpSerializer().load_stream(file)
            (folder / str(partition)).unlink()

    try:
        yield computed
    finally:
        rmtree(folder, ignore_errors=True)


@contextmanager
def _by_memory(session: Any, encoded: Any) -> Iterator[Computed]:
    """Partitions by the memory of the driver: executors write no files that it can read."""
    from pyspark.serializers import NoOpSerializer
    from pyspark.util import _load_from_socket

    context = session.sparkContext

    def computed(partitions: list[int]) -> Iterator[bytes]:
        with _settings_of(session):
            served = context._jvm.PythonRDD.runJob(context._jsc.sc(), encoded.toJavaRDD(), partitions)
        with _load_from_socket(served, NoOpSerializer()) as messages:
            yield from messages

    yield computed


@contextmanager
def _settings_of(session: Any) -> Iterator[None]:
    """A context in which jobs have the settings of a session. Spark gives them only to jobs of its own
    actions; others would run with the defaults.
    """
    context = session._jsparkSession.sparkContext()
    properties = context.getLocalProperties()
    before = properties.clone()
    as_java = java_class(session, "scala.jdk.javaapi.CollectionConverters").asJava
    properties.putAll(as_java(session._jsparkSession.sessionState().conf().getAllConfs()))
    try:
        yield
    finally:
        context.setLocalProperties(before)


def rows_written(frame: Any) -> int | None:
    """The number of rows that a statement of Spark, of which this is the result, has written; None where
    Spark does not count them.
    """
    executed = frame._jdf.queryExecution().commandExecuted()
    if executed.getClass().getSimpleName() != "CommandResult":
        return None
    count = executed.commandPhysicalPlan().metrics().get("numOutputRows")
    return count.get().value() if count.isDefined() else None
