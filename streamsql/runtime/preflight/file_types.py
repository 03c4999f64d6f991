"""Checks that the format of a file sink takes the columns that a query writes."""

from __future__ import annotations

import re
from typing import Any

from streamsql.connectors.files import FileConnector
from streamsql.connectors.registry import connectors
from streamsql.definitions import Sink
from streamsql.errors import RuleFault, Span
from streamsql.language.struct_types import in_capitals
from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.java_classes import java_class

_AS_JSON = ("array", "map", "struct", "variant")


def check_file_types(spark: Any, sink: Sink, schema: Any, span: Span) -> None:
    """Raise RuleFault for a column of a type that the format of a file sink does not take, and for several
    columns in files of text; Spark would say that only when rows come. schema: of the rows; span: of the
    query.
    """
    files = connectors().get(sink.connector)
    if not isinstance(files, FileConnector) or not files.file_format:
        return
    takes = java_class(spark, files.file_format)().supportDataType
    partitions = {name.casefold() for name in sink.partitioned_by}
    fields = [field for field in schema.fields if field.name.casefold() not in partitions]
    for field in fields:
        kind = field.dataType.simpleString()
        refused = files.not_written and re.search(files.not_written, kind)
        if refused or not takes(spark._jsparkSession.parseDataType(field.dataType.json())):
            name = quote_name(field.name)
            text = f"to_json({name})" if kind.startswith(_AS_JSON) else f"CAST({name} AS STRING)"
            raise RuleFault(
                f"{sink.connector} does not take the column {field.name}, which is {in_capitals(kind)}",
                hint=f"{text} AS {name}",
                span=span,
                code="WRONG_TYPE",
            )
    if files.fixed_columns and len(fields) > len(files.fixed_columns):
        names = ", ".join(quote_name(field.name) for field in fields)
        raise RuleFault(
            f"{sink.connector} takes one column, and the query has {len(fields)}",
            hint=f"concat_ws(' ', {names}) AS value",
            span=span,
            code="WRONG_COLUMNS",
        )
