"""What programs call beside PySpark: by name for running them, as text for printing them."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from typing import Any

# Name in a program → the module that holds it. A module here imports nothing of the console's,
# since EXPLAIN PYSPARK prints what it needs of it into programs that run by themselves.
HELPERS = {
    "load_module": "code",
    "find": "code",
    "load": "code",
    "data_source": "code",
    "JdbcTable": "jdbc",
    "LiveRows": "live",
    "BatchFiles": "several",
    "EachSink": "several",
    "throw_away": "several",
    "filled": "secrets",
    "to_messages": "messages",
    "avro_writer": "messages",
    "ProtobufKind": "messages",
    "protobuf_reader": "messages",
    "protobuf_writer": "messages",
    "read_state": "state",
    "flattened": "state",
    "SchemaRegistry": "schema_registry",
    "as_written": "schema_registry",
    "avro_schema": "schema_registry",
}


def helper(name: str) -> Any:
    """The object that a program means by that name."""
    return getattr(importlib.import_module(f"streamsql.runtime.{HELPERS[name]}"), name)


def sources(body: str) -> tuple[str, str]:
    """(import lines, definitions) of the helpers that a program's text calls."""
    wanted: list[str] = []
    texts = [body]
    for text in texts:
        for name in HELPERS:
            if name not in wanted and re.search(rf"(?<![.\w]){name}\b", text):
                wanted.append(name)
                texts.append(inspect.getsource(helper(name)))
    imports: dict[str, None] = {}
    for module in dict.fromkeys(HELPERS[name] for name in wanted):
        tree = ast.parse(inspect.getsource(importlib.import_module(f"streamsql.runtime.{module}")))
        imports |= {ast.unparse(n): None for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))}
    order = [name for name in HELPERS if name in wanted]
    return (
        "".join(f"{line}\n" for line in sorted(imports)),
        "".join("\n" + inspect.getsource(helper(name)) + "\n" for name in order),
    )
