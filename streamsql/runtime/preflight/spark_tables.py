"""Whether the table of Spark that a query writes into exists."""

from __future__ import annotations

from typing import Any

from streamsql.catalog import Catalog
from streamsql.definitions import Sink
from streamsql.errors import NameFault, Span
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.insert import Insert
from streamsql.language.tokens import quote_name
from streamsql.plan.statements.inserts import no_target


def check_table(spark: Any, catalog: Catalog, sink: Sink, statement: Statement) -> None:
    """Raise NameFault if a sink is a table of Spark that does not exist: `DataStreamWriter.toTable` would
    create it, so that a misspelt sink would take the rows in silence. statement: for the place of the error.
    """
    if sink.connector != "table" or spark.catalog.tableExists(sink.name):
        return
    span = statement.targets[0].span if isinstance(statement, Insert) else statement.span
    raise no_target(Name(sink.name, span), catalog, streams=False)


def check_table_of_query(spark: Any, query: str, sink: Sink, span: Span | None) -> None:
    """Raise NameFault if a query that is started again writes into a table that was dropped: Spark would
    create a new one in silence, without the rows that the query has written.
    """
    if sink.connector == "table" and not spark.catalog.tableExists(sink.name):
        raise NameFault(
            f"the query {query} writes into the table {sink.name}, which does not exist",
            hint=f"CREATE TABLE {quote_name(sink.name)} (…) first, or DROP QUERY {quote_name(query)};",
            span=span,
            code="UNKNOWN_SINK",
        )
