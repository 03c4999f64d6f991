"""The helpers that programs call beside PySpark: as objects to run, as source text to print."""

from __future__ import annotations

import ast
import importlib
import inspect
from typing import Any

# Name in a program → its module in embedded/. These modules import only one another, since EXPLAIN PYSPARK
# prints their definitions into stand-alone programs.
HELPERS = {
    "remove_other": "python_code",
    "load_module": "python_code",
    "find": "python_code",
    "load": "python_code",
    "data_source": "python_code",
    "JdbcTable": "jdbc_writer",
    "only_owner": "durable_files",
    "write_file": "durable_files",
    "make_folder": "durable_files",
    "remove_file": "durable_files",
    "sync_folder": "durable_files",
    "LiveFiles": "live_files",
    "persist_rows": "live_files",
    "touched": "carried_values",
    "carried": "carried_values",
    "given_back": "carried_values",
    "carried_type": "carried_values",
    "carried_schema": "carried_values",
    "rebuilt": "carried_values",
    "columns_rebuilt": "carried_values",
    "key_text": "carried_values",
    "to_arrow": "carried_values",
    "to_frame": "carried_values",
    "RowsAt": "live_rows",
    "LiveRows": "live_rows",
    "Snapshots": "snapshots",
    "Refreshing": "snapshots",
    "identified": "changes",
    "columns_of_changes": "changes",
    "Changes": "changes",
    "BatchFiles": "fan_out",
    "EachSink": "fan_out",
    "throw_away": "fan_out",
    "filled": "secret_references",
    "to_messages": "message_codecs",
    "envelopes": "message_codecs",
    "envelope_messages": "message_codecs",
    "avro_writer": "message_codecs",
    "ProtobufKind": "message_codecs",
    "protobuf_reader": "message_codecs",
    "protobuf_writer": "message_codecs",
    "LogFiles": "late_rows_reader",
    "LateRows": "late_rows_reader",
    "LateRowsWriter": "late_rows_writer",
    "read_state": "state_reader",
    "flattened": "state_reader",
    "pivoted": "pivots",
    "SchemaRegistry": "registry_codecs",
    "as_written": "registry_codecs",
    "avro_schema": "registry_codecs",
    "avro_type": "registry_codecs",
}


def helper(name: str) -> Any:
    """The function or class of that name."""
    return getattr(importlib.import_module(f"streamsql.runtime.embedded.{HELPERS[name]}"), name)


def sources(names: frozenset[str]) -> tuple[str, str]:
    """(import lines, definitions) of the helpers among the names that a program reads, including the
    helpers that those need.
    """
    wanted = [name for name in HELPERS if name in names]
    for name in wanted:
        tree = ast.parse(inspect.getsource(helper(name)))
        inner = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        wanted += [h for h in HELPERS if h in inner and h not in wanted]
    imports: dict[str, None] = {}
    for module in dict.fromkeys(HELPERS[name] for name in wanted):
        tree = ast.parse(inspect.getsource(importlib.import_module(f"streamsql.runtime.embedded.{module}")))
        outside = (n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) and not _of_helpers(n))
        imports |= {ast.unparse(n): None for n in outside}
    order = [name for name in HELPERS if name in wanted]
    return (
        "".join(f"{line}\n" for line in sorted(imports)),
        "".join("\n" + inspect.getsource(helper(name)) + "\n" for name in order),
    )


def _of_helpers(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether an import gets other helpers, whose definitions are in the program itself."""
    return isinstance(node, ast.ImportFrom) and str(node.module).startswith("streamsql.runtime.embedded.")
