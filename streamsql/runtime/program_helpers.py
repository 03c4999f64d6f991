"""The helpers that programs call beside PySpark: as objects to run, as source text to print."""

from __future__ import annotations

import ast
import importlib
import inspect
from typing import Any

# Module in embedded/ → its names in programs. These modules import only one another, since EXPLAIN PYSPARK
# prints their definitions into stand-alone programs, in this order.
_MODULES = {
    "python_code": "remove_other load_module find load data_source",
    "jdbc_writer": "JdbcTable",
    "durable_files": "only_owner write_file make_folder remove_file sync_folder",
    "live_files": "LiveFiles persist_rows",
    "carried_values": (
        "touched carried given_back carried_type carried_schema rebuilt columns_rebuilt "
        "key_text in_carried_form to_arrow to_frame"
    ),
    "live_rows": "RowsAt LiveRows",
    "snapshots": "Snapshots Refreshing",
    "changes": "identified columns_of_changes Changes",
    "fan_out": "BatchFiles EachSink throw_away",
    "secret_references": "filled",
    "message_codecs": (
        "to_messages envelopes envelope_messages avro_writer ProtobufKind protobuf_reader protobuf_writer"
    ),
    "late_rows_reader": "LogFiles LateRows",
    "late_rows_writer": "LateRowsWriter",
    "state_reader": "read_state flattened",
    "pivots": "pivoted",
    "registry_codecs": "SchemaRegistry as_written avro_schema avro_type",
}
HELPERS = {name: module for module, names in _MODULES.items() for name in names.split()}
"""Name in a program → its module."""


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
