"""Rows for programs: record batches of Arrow. A timestamp has the session time zone; a value that Arrow has
no type for (VARIANT, an interval of months) is a text of Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from streamsql.language.struct_types import in_capitals
from streamsql.results import ArrowRows
from streamsql.runtime.embedded.carried_values import columns_rebuilt, to_frame, touched
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.row_fetch import few, record_batches, translated
from streamsql.runtime.engine.row_values import column_values, is_numeric, zone_of
from streamsql.runtime.engine.spark_texts import as_text

ZONE = "spark.sql.session.timeZone"


def fetch_arrow(frame: Any, cancel: CancelToken, failed: Callable[[Exception], Exception]) -> ArrowRows:
    """The rows of a DataFrame: all of them if they are few, otherwise the first batch, and the others as they
    are read. failed: as for row_fetch.fetch. Raises Cancelled.
    """
    if few(frame):
        return collect_arrow(frame, cancel)
    began = time.monotonic()
    batches = _batches(frame, cancel)
    first = next(batches)
    rest = translated(([batch] for batch in batches), cancel, failed)
    return replace(_rows_of(frame, [first], began), rest=rest, complete=False)


def collect_arrow(frame: Any, cancel: CancelToken) -> ArrowRows:
    """All rows of a DataFrame, in memory."""
    began = time.monotonic()
    return in_parts(_rows_of(frame, list(_batches(frame, cancel)), began))


def live_table_arrow(rows: Any, spark: Any, cancel: CancelToken) -> ArrowRows:
    """All rows of a live table (LiveRows), as of one micro-batch. Runs a job of Spark only for values that
    are carried in another form.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    began = time.monotonic()
    with rows.held():
        table, version, batch = rows.table, rows.version, rows.last_batch
    table = None if table is None else rows.shown(table)
    zone = spark.conf.get(ZONE)
    if table is None or touched(rows.schema, as_text):
        batches = list(_batches(to_frame(spark, table, rows.schema), cancel))
    else:
        zoned = table.cast(to_arrow_schema(rows.schema, timezone=zone))  # the same moments
        batches = zoned.to_batches() or [_empty(zoned.schema)]
    return replace(_rows_of(rows, batches, began, zone), version=version, batch=batch)


def tuples_of(batch: Any, zone: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a record batch as Python values, timestamps in a time zone, as row_values has them."""
    from pyspark.sql.pandas.types import from_arrow_type

    own = zone_of(zone)
    columns = [column_values(column, from_arrow_type(column.type), own) for column in batch.columns]
    return zip(*columns, strict=True)


def spark_type(kind: Any) -> tuple[str, bool]:
    """(Spark's name of an Arrow type, whether it is a number)."""
    from pyspark.sql.pandas.types import from_arrow_type

    of_spark = from_arrow_type(kind)
    return in_capitals(of_spark.simpleString()), is_numeric(of_spark)


def in_parts(rows: ArrowRows) -> ArrowRows:
    """Complete rows, of which a client fetches one batch after the other."""
    first, *others = rows.first
    return replace(rows, first=[first], rest=([batch] for batch in others), complete=not others)


def _rows_of(frame: Any, first: list[Any], began: float, zone: str = "") -> ArrowRows:
    """Complete rows. frame: a DataFrame, or what else has their schema; began: when they were asked for."""
    types = tuple(in_capitals(field.dataType.simpleString()) for field in frame.schema.fields)
    names = tuple(field.name for field in frame.schema.fields)
    zone = zone or frame.sparkSession.conf.get(ZONE)
    seconds = time.monotonic() - began
    return ArrowRows(columns=names, first=first, seconds=seconds, types=types, zone=zone, complete=True)


def _batches(frame: Any, cancel: CancelToken) -> Iterator[Any]:
    """At least one batch, which may be empty."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if touched(frame.schema, _as_text):
        frame = columns_rebuilt(frame, frame.schema, _as_text, maps=True)
    schema = to_arrow_schema(frame.schema, timezone=frame.sparkSession.conf.get(ZONE))
    batches = record_batches(frame, schema, cancel)
    first = next(batches, None)
    return chain([_empty(schema) if first is None else first], batches)


def _empty(schema: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pylist([], schema)


def _as_text(kind: Any) -> Any:
    """As `as_text`, and for NULL: Arrow takes it only where a type allows it, and that of the elements of
    array() does not.
    """
    from pyspark.sql.types import NullType

    return (lambda value: value.cast("string")) if isinstance(kind, NullType) else as_text(kind)
