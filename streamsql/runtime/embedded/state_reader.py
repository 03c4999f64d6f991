"""Reads the state of a query. EXPLAIN PYSPARK prints this code, so it is self-contained."""

from itertools import count
from typing import Any


def read_state(spark: Any, folder: str, raw: bool = False, **options: str) -> Any:
    """The state in a checkpoint folder, read with Spark's state reader. Each field of the key and the
    value is a column, unless raw.
    """
    if spark.read.text(f"{folder}/commits").filter("value = 'v2'").head(1):
        # Spark reads state of format 2 only with this setting.
        spark.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", "2")
    state = spark.read.format("statestore").options(**options).load(folder)
    return state if raw else flattened(state)


def flattened(state: Any) -> Any:
    """The fields of structs as columns. A name that already exists gets a number: sum, sum_2."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructField, StructType

    taken = {f.name.casefold() for f in state.schema if not isinstance(f.dataType, StructType)}
    columns = []
    for field in state.schema:
        if not isinstance(field.dataType, StructType):
            columns.append(F.col(field.name))
            continue
        names = []
        for inner in field.dataType:
            numbered = (inner.name if n == 1 else f"{inner.name}_{n}" for n in count(1))
            names.append(next(n for n in numbered if n.casefold() not in taken))
            taken.add(names[-1].casefold())
        # Two fields of a struct may have one name (sum(a), sum(b)): a cast renames them by position.
        kinds = [StructField(n, f.dataType) for n, f in zip(names, field.dataType, strict=True)]
        renamed = F.col(field.name).cast(StructType(kinds))
        columns += [renamed.getField(n).alias(n) for n in names if n != "__dummy__"]
    return state.select(columns)
