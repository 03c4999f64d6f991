"""Spark's own tables in a workspace: their files last, and their definitions are kept and run again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from streamsql.errors import Source
from streamsql.language.parser import parse
from streamsql.language.script import Written, split_script
from streamsql.language.spark_definitions import Definition, definition_of
from streamsql.language.statements.base import Statement
from streamsql.language.tokens import quote_name

_CATALOG = "spark_catalog.default."
COLLATION = " collate UTF8_BINARY"
"""What Spark names where a table has no collation of its own; SHOW CREATE has it in capitals."""


def is_table(statement: Statement | Written) -> bool:
    """Whether a statement creates a table, rather than a view."""
    definition = definition_of(statement.text)
    return bool(definition.creates and definition.kind == "table")


def exists_before(spark: Any, defines: Definition) -> bool:
    """Whether what is created or dropped only if that is possible exists already."""
    is_function = defines.kind == "function"
    exists = spark.catalog.functionExists if is_function else spark.catalog.tableExists
    return defines.if_possible and bool(exists(defines.written))


def definition_now(spark: Any, name: str) -> Statement | None:
    """The statement that creates a table as it is now; None if it does not exist."""
    if not spark.catalog.tableExists(quote_name(name)):
        return None
    (row,) = spark.sql(f"SHOW CREATE TABLE {quote_name(name)}").collect()
    text = row[0].replace(_CATALOG, "", 1).strip().rstrip(";")
    (written,) = split_script(Source("catalog.sql", text + ";"))
    return parse(written, {}, literal=True)


def create_again(spark: Any, name: str, create: Callable[[], None]) -> None:
    """Create a table whose files may be there already, which Spark refuses: they are set aside meanwhile.

    create: runs its statement. Raises what it raises.
    """
    written = quote_name(name)
    if spark.catalog.tableExists(written):
        return
    place = Path(unquote(urlparse(spark.conf.get("spark.sql.warehouse.dir")).path)) / name.casefold()
    aside = place.with_name(f".{place.name}.kept")
    if place.is_dir() and not aside.exists():
        place.rename(aside)
    try:
        create()
    finally:
        if aside.exists():
            shutil.rmtree(place, ignore_errors=True)  # what was created anew is empty
            aside.rename(place)
    if any(column.isPartition for column in spark.catalog.listColumns(written)):
        spark.sql(f"ALTER TABLE {written} RECOVER PARTITIONS")
    spark.catalog.refreshTable(written)
