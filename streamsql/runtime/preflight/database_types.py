"""Checks that a database has types for the columns that a sink writes, and its table these columns."""

from __future__ import annotations

from typing import Any

from streamsql.connectors.jdbc import spark_url
from streamsql.definitions import Sink
from streamsql.errors import RuleFault, Span
from streamsql.language.struct_types import in_capitals
from streamsql.language.tokens import quote_name
from streamsql.runtime.embedded.jdbc_writer import JdbcTable
from streamsql.runtime.preflight.column_names import check_names


def check_database_types(spark: Any, sink: Sink, schema: Any) -> None:
    """Raise RuleFault for a column of a type that Spark writes into no column of this database, and for two
    of one name; Spark would say that only when rows come. schema: of the rows.
    """
    if sink.connector != "jdbc":
        return
    check_names(spark, schema.names)
    for field in schema.fields:
        try:
            _column_definition(spark, sink, field)
        except Exception as error:
            name, kind = quote_name(field.name), field.dataType.typeName()
            text = "to_json" if kind in ("struct", "map", "array", "variant") else "string"
            raise RuleFault(
                f"the column {field.name} is {in_capitals(field.dataType.simpleString())}, which this"
                " database has no type for",
                hint=f"{text}({name}) AS {name}",
                code="WRONG_TYPE",
            ) from error


def check_database_table(
    spark: Any, sink: Sink, table: Any, before: Any, after: Any, change: str, span: Span
) -> None:
    """Raise RuleFault where the table of a sink lacks a column that a changed query writes, or has it with a
    type that does not hold its values. table, before, after: the schemas of the table, and of the rows that
    the query writes now and once it is changed: a column that stays as it is has been written before. change:
    the name of the query; span: where it is named.
    """
    written = {field.name.casefold(): field.dataType for field in before.fields}
    columns = {_folded(sink, field.name): field for field in table.fields}
    lacks, wrong, hints = list[str](), list[str](), list[str]()
    keys = {key.casefold() for key in sink.key}
    for field in after.fields:
        there = columns.get(_folded(sink, field.name))
        if there is None:
            lacks.append(field.name)
            hints.append(f"{_alter(sink)} ADD COLUMN {_column_definition(spark, sink, field)};")
        elif written.get(field.name.casefold()) != field.dataType and not _holds(
            spark, there.dataType, field.dataType, exactly=field.name.casefold() in keys
        ):
            types = [in_capitals(f.dataType.simpleString()) for f in (field, there)]
            wrong.append("{} is {}, and {} in the table".format(field.name, *types))
            name, kind = quote_name(field.name), types[1]
            if field.name.casefold() in keys or sink.option("url").startswith("jdbc:duckdb:"):
                # DuckDB alters no column of a table with an index.
                hints.append(f"{field.name} keeps its type: CAST({name} AS {kind}) AS {name} in the change")
            else:
                hints += _altered(spark, sink, field)
    if lacks or wrong:
        missing = [f"it has no column {', '.join(lacks)}"] if lacks else []
        raise RuleFault(
            f"the table {sink.option('table')} does not take the rows of the change of {change}",
            detail="; ".join((*missing, *wrong)),
            hint="\n".join((*(["in the database:"] if any("ALTER" in h for h in hints) else []), *hints)),
            span=span,
            code="WRONG_COLUMNS" if lacks else "WRONG_TYPE",
        )


def _folded(sink: Sink, column: str) -> str:
    """A name of a column as the database compares it with others."""
    return column if sink.option("url").startswith("jdbc:postgresql:") else column.casefold()


def _dialect(spark: Any, sink: Sink) -> Any:
    return spark._jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(spark_url(sink.option("url")))


def _column_definition(spark: Any, sink: Sink, field: Any) -> str:
    """The name and the type of a column, as CREATE TABLE of the database takes them. Raises exceptions of
    Spark for a type that the database does not have.
    """
    from pyspark.sql.types import StructField, StructType

    jvm, dialect = spark._jvm, _dialect(spark, sink)
    alone = StructType([StructField(field.name, field.dataType)])
    written = jvm.org.apache.spark.sql.execution.datasources.jdbc.JdbcUtils.schemaString(
        dialect, spark._jsparkSession.parseDataType(alone.json()), False, jvm.scala.Option.empty()
    )
    others = JdbcTable.TYPES.get(sink.option("url").split(":")[1].replace("mariadb", "mysql"), {})
    kind = others.get(field.dataType.simpleString())
    return f"{dialect.quoteIdentifier(field.name)} {kind}" if kind else str(written).strip()


def _alter(sink: Sink) -> str:
    return f"ALTER TABLE {sink.option('table')}"


def _altered(spark: Any, sink: Sink, field: Any) -> list[str]:
    """The statements that give a column of the table the type of a field."""
    head, definition = _alter(sink), _column_definition(spark, sink, field)
    database, name = sink.option("url").split(":")[1], _dialect(spark, sink).quoteIdentifier(field.name)
    if database in ("mysql", "mariadb"):
        return [f"{head} MODIFY COLUMN {definition};"]
    if database == "sqlite":  # its columns keep their types
        return [f"{head} DROP COLUMN {name};", f"{head} ADD COLUMN {definition};"]
    kind = definition.removeprefix(name).strip()
    return [f"{head} ALTER COLUMN {name} TYPE {kind} USING CAST({name} AS {kind});"]


def _holds(spark: Any, column: Any, values: Any, *, exactly: bool) -> bool:
    """Whether a column of a type of Spark takes all values of another type as they are. exactly: the types
    must be one, as those of keys are compared.
    """
    from pyspark.sql import types as t

    whole = (t.ByteType, t.ShortType)
    if column == values or exactly:
        return bool(column == values)
    if isinstance(column, (t.FloatType, t.DoubleType)):  # Spark would let it lose digits
        exact = whole if isinstance(column, t.FloatType) else (*whole, t.IntegerType, t.FloatType)
        return isinstance(values, exact)
    up = spark._jvm.org.apache.spark.sql.catalyst.expressions.Cast.canUpCast
    return bool(up(*(spark._jsparkSession.parseDataType(kind.json()) for kind in (values, column))))
