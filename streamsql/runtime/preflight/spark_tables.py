"""Whether the table of Spark that a query writes into exists."""

from __future__ import annotations

from typing import Any

from streamsql.catalog import Catalog
from streamsql.definitions import Sink
from streamsql.errors import NameFault, did_you_mean
from streamsql.language.statements.base import Statement
from streamsql.language.statements.insert import Insert
from streamsql.language.tokens import quote_name


def check_table(spark: Any, catalog: Catalog, sink: Sink, statement: Statement) -> None:
    """Raise NameFault if a sink is a table of Spark that does not exist: `DataStreamWriter.toTable` would
    create it, so that a misspelt sink would take the rows in silence. statement: for the place of the error.
    """
    if sink.connector != "table" or spark.catalog.tableExists(sink.name):
        return
    name = quote_name(sink.name)
    known = [s.name for s in catalog.sinks.values()]
    raise NameFault(
        f"there is no sink or table {sink.name}",
        hint=did_you_mean(sink.name, known) or f"CREATE SINK {name} USING … or CREATE TABLE {name} (…) first",
        span=statement.targets[0].span if isinstance(statement, Insert) else statement.span,
        code="UNKNOWN_SINK",
    )
