"""What programs that read the state of a query call beside PySpark."""

from itertools import count
from typing import Any


def read_state(spark: Any, folder: str, raw: bool = False, **options: str) -> Any:
    """The state in a checkpoint folder as Spark's state reader gives it; each field of key and value as a
    column, unless raw.
    """
    if spark.read.text(f"{folder}/commits").filter("value = 'v2'").head(1):
        # State of format 2 is found by what this setting says when it is read.
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
        # Two fields of a struct may have one name (sum(a), sum(b)): they are told apart by their place.
        kinds = [StructField(n, f.dataType) for n, f in zip(names, field.dataType, strict=True)]
        renamed = F.col(field.name).cast(StructType(kinds))
        columns += [renamed.getField(n).alias(n) for n in names if n != "__dummy__"]
    return state.select(columns)
