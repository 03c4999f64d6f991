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
from streamsql.plan.changes_plan import Changes
from streamsql.plan.plans import Reads, Run
from streamsql.runtime.embedded.carried_values import to_arrow
from streamsql.runtime.embedded.changes import identified
from streamsql.runtime.embedded.durable_files import make_folder, remove_file, sync_folder, write_file
from streamsql.runtime.live.change_log import read_rows, write_rows
from streamsql.runtime.queries.program_parts import QueryParts

FOLDER = "to_write"
"""The folder in a generation."""
_KIND, _GONE, _ROWS = "kind.json", "gone.arrow", "rows.arrow"


def keep_promoted_rows(generation: Path, before: Any, after: Any, keys: Sequence[str]) -> None:
    """Keep the rows of a DataFrame, and those of another one whose keys it does not have, as files. Of
    several rows with the same key the last one counts. Raises OSError, exceptions of Spark.
    """
    import pyarrow.compute as pc
    from pyspark.sql import functions as F

    names = {name.casefold(): name for name in before.columns}
    columns = []
    for field in after.schema.fields:
        name = names.get(field.name.casefold())
        value = F.col("`" + name.replace("`", "``") + "`") if name else F.lit(None)
        columns.append(value.cast(field.dataType).alias(field.name))
    whole = identified(after, list(keys))
    rows, gone = (
        _newest(to_arrow(frame)) for frame in (whole, identified(before.select(*columns), list(keys)))
    )
    gone = gone.filter(pc.invert(pc.is_in(gone["__key"], value_set=rows["__key"].combine_chunks())))
    schema = whole.schema.jsonValue()
    for field in schema["fields"]:
        field["nullable"] = True  # a row that is gone may have NULL there
    folder = generation / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder)
    write_rows(folder / _GONE, gone)
    write_rows(folder / _ROWS, rows)
    kind = {"schema": schema, "query": str(uuid.uuid4())}
    write_file(folder / _KIND, lambda file: file.write(json.dumps(kind).encode()))


def write_promoted_rows(parts: QueryParts, plan: Run, generation: Path) -> None:
    """Write the rows that are kept in a generation into its sink, if there are any. Raises faults, OSError,
    and exceptions of Spark: then the next start writes them.
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
    evaluate(call, env).send(read_rows(folder / _GONE), read_rows(folder / _ROWS), 0)
    remove_file(folder / _KIND)
    sync_folder(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _newest(rows: Any) -> Any:
    """The last row of each key, in columns that may be NULL."""
    import pyarrow as pa

    last = {key: place for place, key in enumerate(rows["__key"].to_pylist())}
    plain = pa.Table.from_arrays(rows.columns, names=rows.column_names)
    return plain.take(pa.array(sorted(last.values()), pa.int64()))
