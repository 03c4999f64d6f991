"""Checks that a database has types for the columns that a sink writes into it."""

from __future__ import annotations

from typing import Any

from streamsql.connectors.jdbc import spark_url
from streamsql.definitions import Sink
from streamsql.errors import RuleFault
from streamsql.language.struct_types import in_capitals
from streamsql.language.tokens import quote_name


def check_database_types(spark: Any, sink: Sink, schema: Any) -> None:
    """Raise RuleFault for a column of a type that Spark writes into no column of this database; Spark would
    say that only when rows come. schema: of the rows.
    """
    if sink.connector != "jdbc":
        return
    jvm = spark._jvm
    jdbc = jvm.org.apache.spark.sql
    dialect = jdbc.jdbc.JdbcDialects.get(spark_url(sink.option("url")))
    write = jdbc.execution.datasources.jdbc.JdbcUtils.schemaString
    for field in schema.fields:
        alone = spark._jsparkSession.parseDataType(type(schema)([field]).json())
        try:
            write(dialect, alone, False, jvm.scala.Option.empty())
        except Exception as error:
            name, kind = quote_name(field.name), field.dataType.typeName()
            text = "to_json" if kind in ("struct", "map", "array", "variant") else "string"
            raise RuleFault(
                f"the column {field.name} is {in_capitals(field.dataType.simpleString())}, which this"
                " database has no type for",
                hint=f"{text}({name}) AS {name}",
                code="WRONG_TYPE",
            ) from error
