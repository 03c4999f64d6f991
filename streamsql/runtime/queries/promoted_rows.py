"""The rows that a promoted query gives its keyed sink before it goes on: those of the staged change, and the
keys that these do not have any more. They are files of its generation from before it is in use until they
are written; after a crash in between they are written again, by key.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamsql.calls import Assign, Var, evaluate
from streamsql.errors import RuleFault, Span
from streamsql.language.tokens import quote_name
from streamsql.plan.changes_plan import Changes
from streamsql.plan.plans import Reads, Run
from streamsql.runtime.embedded.carried_values import to_arrow, to_frame
from streamsql.runtime.embedded.changes import identified
from streamsql.runtime.embedded.durable_files import make_folder, remove_file, sync_folder, write_file
from streamsql.runtime.engine.spark_errors import query_fault
from streamsql.runtime.live.change_log import read_rows, write_rows
from streamsql.runtime.queries.program_parts import QueryParts

FOLDER = "to_write"
"""The folder in a generation."""
_KIND, _GONE, _ROWS = "kind.json", "gone.arrow", "rows.arrow"


def keep_promoted_rows(generation: Path, before: Any, after: Any, keys: Sequence[str], old: Path) -> None:
    """Keep the rows of a DataFrame, and the keys that it does not have of another one, as files. Of several
    rows with the same key the last one counts. old: the generation in use, whose sink may not have lost yet
    what it was to lose. Raises OSError, exceptions of Spark.
    """
    import pyarrow.compute as pc

    whole, gone_before = identified(after, list(keys)), _keys_alone(before, after, keys)
    for still in _still_to_go(after.sparkSession, old):
        gone_before = gone_before.union(_keys_alone(still, after, keys))
    rows, gone = (_newest(to_arrow(frame)) for frame in (whole, gone_before))
    gone = gone.filter(pc.invert(pc.is_in(gone["__key"], value_set=rows["__key"].combine_chunks())))
    schema = whole.schema.jsonValue()
    for field in schema["fields"]:
        field["nullable"] = True  # of a row that is gone, only the key is there
    folder = generation / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder)
    write_rows(folder / _GONE, gone)
    write_rows(folder / _ROWS, rows)
    kind = {"schema": schema, "query": str(uuid.uuid4())}
    write_file(folder / _KIND, lambda file: file.write(json.dumps(kind).encode()))


def _keys_alone(rows: Any, like: Any, keys: Sequence[str]) -> Any:
    """A DataFrame of the keys of rows, with the columns and types of another one, in which the others are
    NULL. A key that has no value of its type is left out: the sink cannot have it.
    """
    from pyspark.sql import functions as F

    names = {name.casefold(): name for name in rows.columns}
    columns, folded = [], {key.casefold() for key in keys}
    for field in like.schema.fields:
        value = F.lit(None)
        if field.name.casefold() in folded:
            value = F.col(quote_name(names[field.name.casefold()]))
            rows = rows.where(value.isNull() | value.try_cast(field.dataType).isNotNull())
        columns.append(value.try_cast(field.dataType).alias(field.name))
    return identified(rows.select(*columns), list(keys))


def _still_to_go(spark: Any, old: Path) -> list[Any]:
    """DataFrames of the rows that the sink of a generation is still to lose. Raises OSError."""
    from pyspark.sql.types import StructType

    folder = old / FOLDER
    if not (folder / _KIND).exists():
        return []
    schema = StructType.fromJson(json.loads((folder / _KIND).read_text("utf-8"))["schema"])
    return [to_frame(spark, read_rows(folder / _GONE), schema)]


def write_promoted_rows(parts: QueryParts, plan: Run, generation: Path) -> None:
    """Write the rows that are kept in a generation into its sink, if there are any. Raises faults,
    Cancelled, OSError: then the next start writes them.
    """
    folder = generation / FOLDER
    if not (folder / _KIND).exists():
        return
    from pyspark.sql.types import StructType

    kind = json.loads((folder / _KIND).read_text("utf-8"))
    keys = plan.sink.key
    writer = Changes(plan.query, plan.targets, (), plan.choices, plan.shape, "", keys=keys)
    call = writer.changes(Var("schema"), query=kind["query"])
    env = parts.env((Assign("", call),), Reads()) | {"schema": StructType.fromJson(kind["schema"])}
    gone, rows = read_rows(folder / _GONE), read_rows(folder / _ROWS)
    try:
        evaluate(call, env).send(gone, rows, 0)
    except Exception as error:
        parts.cancel.check()
        raise query_fault(error, plan.query.name) from error
    remove_file(folder / _KIND)
    sync_folder(folder)
    shutil.rmtree(folder, ignore_errors=True)


def check_written(name: str, sink: str, generation: Path, span: Span) -> None:
    """Raise RuleFault for a query that is to be dropped, whose sink would keep rows that a promoted change
    does not have. generation: the one in use; span: of the statement.
    """
    if (generation / FOLDER / _KIND).exists():
        raise RuleFault(
            f"{sink} has not got the difference of the promoted change of {name} yet",
            detail="it would keep rows that the change does not have",
            hint=f"START QUERY {quote_name(name)}; gives it the difference, then DROP QUERY",
            span=span,
            code="QUERY_NOT_RUNNING",
        )


def _newest(rows: Any) -> Any:
    """The last row of each key, in columns that may be NULL."""
    import pyarrow as pa

    last = {key: place for place, key in enumerate(rows["__key"].to_pylist())}
    plain = pa.Table.from_arrays(rows.columns, names=rows.column_names)
    return plain.take(pa.array(sorted(last.values()), pa.int64()))
