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
from streamsql.runtime.preflight.column_names import check_names

_AS_JSON = ("array", "map", "struct", "variant")


def check_file_columns(spark: Any, sink: Sink, schema: Any, span: Span) -> None:
    """Raise RuleFault for columns that the format of a file sink does not take, by their types or names, for
    two of one name, and for several in files of text. Spark would say that only when rows come, or, of two
    columns of one name, when the files are read. schema: of the rows; span: of the query.
    """
    files = connectors().get(sink.connector)
    if not isinstance(files, FileConnector) or not files.file_format:
        return
    partitions = {name.casefold() for name in sink.partitioned_by}
    fields = [field for field in schema.fields if field.name.casefold() not in partitions]
    writer = java_class(spark, files.file_format)()
    for field in fields:
        kind, name = field.dataType.simpleString(), quote_name(field.name)
        refused = files.not_written and re.search(files.not_written, kind)
        if refused or not writer.supportDataType(spark._jsparkSession.parseDataType(field.dataType.json())):
            text = f"to_json({name})" if kind.startswith(_AS_JSON) else f"CAST({name} AS STRING)"
            fact = f"{sink.connector} does not take the column {field.name}, which is {in_capitals(kind)}"
            raise RuleFault(fact, hint=f"{text} AS {name}", span=span, code="WRONG_TYPE")
        if not (re.fullmatch(files.column_name, field.name) and writer.supportFieldName(field.name)):
            fact = f"{sink.connector} does not take the name of the column {field.name}"
            raise RuleFault(fact, hint=f"{name} AS {_plain(field.name)}", span=span, code="WRONG_COLUMNS")
    if files.fixed_columns and len(fields) > len(files.fixed_columns):
        fact = f"{sink.connector} takes one column, and the query has {len(fields)}"
        names = ", ".join(quote_name(field.name) for field in fields)
        raise RuleFault(fact, hint=f"concat_ws(' ', {names}) AS value", span=span, code="WRONG_COLUMNS")
    if not files.same_names:
        check_names(spark, schema.names, span)


def _plain(name: str) -> str:
    """A name of letters, digits and underscores."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    return plain if re.match("[A-Za-z]", plain) else f"c_{plain}".rstrip("_")
