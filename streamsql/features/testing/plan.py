"""Plans for GIVEN: rows for a stream of a test, as one micro-batch."""

from __future__ import annotations

import os
from dataclasses import replace

from streamsql.calls import Assign, Node, Var, expr
from streamsql.connectors import rows as rows_of_files
from streamsql.connectors.given import PAYLOAD, file_rows, message_rows, takes_messages
from streamsql.connectors.registry import connector
from streamsql.connectors.values import Values
from streamsql.definitions import Stream
from streamsql.errors import NameFault, RuleFault
from streamsql.features.testing.statement import Advance, Given
from streamsql.language.query import read_query
from streamsql.language.statements.base import Name
from streamsql.language.statements.insert import Insert
from streamsql.language.tokens import quote_name
from streamsql.language.values_rows import rows_of_values
from streamsql.plan.context import Context
from streamsql.plan.plans import Plan, Write
from streamsql.plan.statements.advances import advance_stream
from streamsql.plan.statements.inserts import insert


def given(statement: Given, context: Context) -> Plan:
    """GIVEN: an INSERT into the stream, or the rows of a file. Raises NameFault or RuleFault."""
    stream = context.catalog.stream(statement.name)
    if not stream.connector:
        raise RuleFault(
            f"{stream.name} is a query over other streams, which has no rows of its own",
            hint=_instead(stream, context),
            span=statement.name.span,
            code="WRONG_KIND",
        )
    if statement.query is None:
        return _rows_of_file(statement, stream, context)
    if stream.is_of_changes and PAYLOAD not in {c.value.casefold() for c in statement.columns}:
        raise RuleFault(
            f"the rows of {stream.name} are changes of rows, which messages tell",
            hint=f'GIVEN {quote_name(stream.name)} ({PAYLOAD}) VALUES (\'{{"op": "c", "after": {{…}}}}\');',
            span=statement.query.span,
            code="WRONG_COLUMNS",
        )
    _check_width(statement, stream)
    rows = Insert(targets=(statement.name,), query=statement.query, columns=statement.columns)
    return insert(replace(rows, text=statement.text, span=statement.span, origin=statement.origin), context)


def _instead(stream: Stream, context: Context) -> str:
    """What to type for a stream over a query."""
    for relation in read_query(stream.query).relations:
        base = context.catalog.streams.get(relation.name.casefold())
        if base is not None:
            return f"GIVEN {quote_name(base.name)} VALUES (…);"
    return "GIVEN is for a stream USING a connector"


def _check_width(statement: Given, stream: Stream) -> None:
    """Raise RuleFault for VALUES with another number of columns."""
    assert statement.query
    columns = [c.value for c in statement.columns] or [c.name for c in stream.columns]
    name = quote_name(stream.name)
    for width, span in rows_of_values(statement.query.text):
        if width != len(columns):
            raise RuleFault(
                f"this row has {width} value{'' if width == 1 else 's'}, "
                f"and {stream.name} takes {len(columns)}",
                hint=f"columns: {', '.join(columns)}; GIVEN {name} (column, …) VALUES names some",
                span=statement.query.origin.span(span),
                code="WRONG_COLUMNS",
            )


def _rows_of_file(statement: Given, stream: Stream, context: Context) -> Plan:
    """The rows of a file, read by the connector and with the options of the stream."""
    assert statement.file
    if not isinstance(connector(Name(stream.connector)), Values):
        raise RuleFault(
            f"{stream.name} reads {stream.connector}: GIVEN is for the streams of a test",
            hint="TEST 'name' BEGIN GIVEN … END TEST; HELP testing;",
            span=statement.name.span,
            code="WRONG_KIND",
        )
    original = stream.stands_for or stream
    path = os.path.join(context.here, statement.file.value)
    if takes_messages(original):
        return _write(stream, _written(stream, message_rows(stream, path), (PAYLOAD,)), context)
    using = connector(Name(original.connector))
    if not using.path_option:
        raise RuleFault(
            f"GIVEN {stream.name} FROM a file needs a stream of files: this one reads {original.connector}",
            hint=f"GIVEN {quote_name(stream.name)} VALUES (…);",
            span=statement.file.span,
            code="CONNECTOR_NOT_SUPPORTED",
        )
    lines = file_rows(stream, path)
    if lines is not None:
        return _write(stream, _written(stream, lines, _names_of(stream)), context)
    options = [(k, v) for k, v in original.options if k.casefold() != using.path_option.casefold()]
    file = (using.path_option, path)
    frame = using.at_rest(replace(original, columns=stream.columns, options=(*options, file)), context.places)
    if frame is None:
        raise NameFault(
            f"{original.connector} cannot read a file",
            span=statement.file.span,
            code="CONNECTOR_NOT_SUPPORTED",
        )
    names = tuple(c.name for c in stream.columns)
    rows = frame.call("select", *(expr(quote_name(name)) for name in names))
    return _write(stream, _written(stream, rows, names), context)


def _names_of(stream: Stream) -> tuple[str, ...]:
    """The columns of the rows of a file that may be malformed."""
    return (*(c.name for c in stream.columns), rows_of_files.PAYLOAD, rows_of_files.FILE)


def _written(stream: Stream, rows: Node, names: tuple[str, ...]) -> Node:
    using = connector(Name(stream.connector))
    assert isinstance(using, Values)
    return using.written(stream, rows, names)


def _write(stream: Stream, rows: Node, context: Context) -> Plan:
    folder = context.places.values(stream.name)
    write = Var("result").call("coalesce", 1).attr("write").call("mode", "append").call("parquet", folder)
    program = (Assign("result", rows), Assign("", write))
    return Write(program, f"one micro-batch for {stream.name}", folder=folder)


PLANNERS = {Given: given, Advance: advance_stream}
