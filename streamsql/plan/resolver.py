"""The columns of relations by name, from the catalog; see language/query_columns.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from streamsql.catalog import Catalog
from streamsql.connectors.registry import connectors
from streamsql.definitions import Sink, Stream
from streamsql.errors import EngineFault, Span, StreamsqlError, did_you_mean
from streamsql.language.query import ConsoleRelation, Query, read_query
from streamsql.language.query_columns import UNKNOWN, Columns, NameAndType, QueryColumns
from streamsql.language.spark_syntax import queries_of
from streamsql.language.statements.base import Statement
from streamsql.plan.lowering.window_tables import COLUMNS as OF_WINDOW_TABLE

__all__ = ["Columns", "NameAndType", "Resolver", "Tables", "hint_of_columns", "list_columns"]

Resolved = TypeVar("Resolved", bound=QueryColumns)
Tables = Callable[[str], Sequence[NameAndType]]
"""Returns the columns of a live table or a table of Spark by its name; () when they are not known."""
MOST_LEVELS = 20
"""A stream can read another and, after changes, itself; two queries of WITH can name each other."""


class Resolver:
    """The columns of the relations of a catalog; `tables` knows live tables and tables of Spark."""

    def __init__(self, catalog: Catalog, tables: Tables | None = None) -> None:
        self.catalog = catalog
        self.tables = tables
        self._level = 0
        self._columns_by_name: dict[str, Columns] = {}

    def of_name(self, name: str) -> Columns:
        """The columns of a stream, live table, sink or table."""
        if name not in self._columns_by_name:
            self._columns_by_name[name] = UNKNOWN  # of a stream that reads itself, inside of its own query
            self._columns_by_name[name] = self._of_name(name)
        return self._columns_by_name[name]

    def _of_name(self, name: str) -> Columns:
        entry = self.catalog.relation(name)
        if isinstance(entry, Stream):
            return self.of_stream(entry)
        if isinstance(entry, Sink) and entry.columns:
            return Columns(tuple((column.name, column.type) for column in entry.columns), True)
        if self.tables and (typed_columns := self.tables(name)):
            return Columns(
                tuple((column, kind if "<" in kind else kind.upper()) for column, kind in typed_columns), True
            )
        feeding = self.catalog.queries_into(name) if entry is not None else []
        columns = self.of_text(feeding[0].text) if feeding else UNKNOWN
        certain = len(feeding) == 1 and feeding[0].live_table
        return columns if certain else Columns(columns.named)

    def of_stream(self, stream: Stream) -> Columns:
        """The columns of a stream; of CREATE STREAM … AS, those of its query."""
        declared = stream.columns
        connector = connectors().get(stream.connector)
        if not declared and connector is not None:
            declared = connector.columns(stream)
        columns = Columns(tuple((column.name, column.type) for column in declared), bool(declared))
        if not declared and stream.query:
            columns = self.of_text(stream.query)
        watermark = stream.watermark
        if watermark and watermark.computed:
            columns = Columns((*columns.named, (watermark.column.value, "TIMESTAMP")), columns.complete)
        return Columns(columns.named) if stream.rejected or stream.stands_for else columns

    def of_text(self, text: str) -> Columns:
        """The columns of the result of a query."""
        if self._level > MOST_LEVELS:
            return UNKNOWN
        self._level += 1
        try:
            return self.query_columns(self._read(text), QueryColumns).outputs()
        except StreamsqlError:
            return UNKNOWN
        finally:
            self._level -= 1

    def _read(self, text: str) -> Query:
        return read_query(text)

    def missing(self, query: Query) -> list[tuple[Span, list[str]]]:
        """For each name of a query that no relation has: its place, and the columns that there are."""
        return self.query_columns(query, QueryColumns).missing()

    def query_columns(self, query: Query, kind: type[Resolved]) -> Resolved:
        """The resolver of one query. kind: QueryColumns, or a class that can tell more of it."""
        return kind(query, self.of_name, lambda own: self._of_window_table(own, query))

    def _of_window_table(self, own: ConsoleRelation, query: Query) -> Columns:
        call = own.node.get("WindowCall") if own.kind == "WindowTable" else None
        data = call.get("Data") if call else None
        named = data.get("RelationName") if data else None
        if named is None or named.value.casefold() in query.named_queries:
            return UNKNOWN
        columns = self.of_name(named.value)
        added = tuple((name, "TIMESTAMP") for name in OF_WINDOW_TABLE)
        return Columns((*columns.named, *added), columns.complete)


_SHOWN = 12
"""The number of columns that a hint lists."""


def hint_of_columns(name: str, columns: Sequence[str]) -> str:
    """What to write instead of a column that does not exist: the nearest of those that do, else a list of
    them. name: as it is written.
    """
    listed = ", ".join(columns[:_SHOWN]) + (", …" if len(columns) > _SHOWN else "")
    return did_you_mean(name.rpartition(".")[2], columns) or f"columns: {listed}"


def list_columns(fault: StreamsqlError, statement: Statement, catalog: Catalog) -> None:
    """Let the hint of an error about a column, which lists the few that Spark suggests, list those of the
    relation.
    """
    if not isinstance(fault, EngineFault) or not fault.suggests:
        return
    for query in queries_of(statement):
        for span, columns in Resolver(catalog).missing(read_query(query.text)):
            if fault.span is not None and query.origin.span(span) == fault.span and columns:
                fault.hint = hint_of_columns(query.text[span.start : span.end], columns)
