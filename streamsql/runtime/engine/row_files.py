"""Few rows as a Parquet file, without a Spark job that writes it: a test gives rows many times."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamsql.calls import Attr, Call, Node, Program, evaluate, run


def write_rows(program: Program, env: dict[str, Any], folder: str) -> None:
    """Run a program whose last step writes rows into a folder of Parquet files. Types that Arrow's writer
    does not know are written by Spark. Raises what Spark raises.
    """
    *steps, last = program
    run(tuple(steps), env)
    rows = _rows(last.node, env)
    if rows is None or not _plain(rows.schema):
        run((last,), env)
        return
    import pyarrow.parquet as parquet

    # Spark reads dates before 1582 by the version of the writer.
    table = rows.toArrow().replace_schema_metadata({"org.apache.spark.version": "4.3.0"})
    Path(folder).mkdir(parents=True, exist_ok=True)
    unfinished = Path(folder) / f"_{uuid.uuid4()}"  # which Spark does not read
    parquet.write_table(table, unfinished)
    os.rename(unfinished, Path(folder) / f"part{unfinished.name}.parquet")


def _rows(node: Node, env: Mapping[str, Any]) -> Any:
    """The DataFrame that is written; None if this is no write."""
    while isinstance(node, (Attr, Call)):
        if isinstance(node, Attr) and node.name == "write":
            return evaluate(node.target, env)
        node = node.target if isinstance(node, Attr) else node.function
    return None


def _plain(kind: Any) -> bool:
    """Whether Arrow's Parquet files hold a type as Spark's do."""
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        return all(_plain(f.dataType) for f in kind.fields) and len(kind.fields) > 0
    if isinstance(kind, t.ArrayType):
        return _plain(kind.elementType)
    if isinstance(kind, t.MapType):
        return _plain(kind.keyType) and _plain(kind.valueType)
    known = (t.BooleanType, t.IntegralType, t.FloatType, t.DoubleType, t.DecimalType, t.StringType)
    times = (t.BinaryType, t.DateType, t.TimestampType, t.TimestampNTZType)
    return isinstance(kind, (*known, *times))
