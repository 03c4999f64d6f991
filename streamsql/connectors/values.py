"""values: rows given by INSERT INTO stream VALUES; each INSERT is one micro-batch.

ADVANCE STREAM writes a row, too: all its columns are NULL but the event time and a hidden column, ADVANCED.
It moves the watermark on and is then filtered out. Spark would filter before the watermark, and push filters
of the query below it: the metrics between them prevent that, and count these rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from streamsql.calls import Node, Var, expr
from streamsql.connectors.base import Connector, Places, read, read_stream, schema_text
from streamsql.connectors.event_metrics import ADVANCES, MEASURED, ROWS
from streamsql.definitions import Stream
from streamsql.language.statements.base import Column, Fragment, Watermark
from streamsql.language.tokens import quote, quote_name

ADVANCED = "_advanced_to"
"""The hidden column: NULL in rows of INSERT, a time in rows of ADVANCE STREAM."""


class Values(Connector):
    name = "values"
    help = "rows given by INSERT INTO stream VALUES (…); each INSERT is one micro-batch"
    needs_columns = True
    reads = ()

    def source(self, stream: Stream, places: Places) -> Node:
        # A file for each INSERT, taken one at a time in the order written; no age limit, so that
        # what was inserted is read whenever the query starts.
        columns = (*stream.columns, hidden_column(stream)) if stream.watermark else stream.columns
        return (
            read_stream("parquet")
            .call("schema", schema_text(columns))
            .call("option", "maxFilesPerTrigger", "1")
            .call("option", "maxFileAge", "36500d")
            .call("load", places.values(stream.name))
        )

    def event_time(self, stream: Stream) -> Watermark | None:
        watermark = stream.watermark
        if watermark is None or watermark.computed is None:
            return watermark
        text = f"coalesce({hidden_column(stream).name}, {watermark.computed.text})"
        return replace(watermark, computed=Fragment(text, watermark.computed.span, watermark.computed.origin))

    def after_watermark(self, stream: Stream, frame: Node) -> Node:
        if stream.watermark is None:
            return frame
        hidden = hidden_column(stream).name
        counts = (expr(f"count(1) AS {ROWS}"), expr(f"count({hidden}) AS {ADVANCES}"))
        frame = frame.call("observe", f"{MEASURED} {stream.name}", *counts)
        return inserted(stream, frame)

    def at_rest(self, stream: Stream, places: Places) -> Node:
        frame = (
            read("parquet")
            .call("schema", schema_text((*stream.columns, hidden_column(stream))))
            .call("load", places.values(stream.name))
        )
        return inserted(stream, frame)

    def given_columns(self, stream: Stream) -> tuple[Column, ...]:
        """The columns that INSERT may name."""
        return stream.columns

    def written(self, stream: Stream, rows: Node, given: Sequence[str]) -> Node:
        """The calls that make rows what the files of the stream hold. given: the columns of the rows."""
        given_names = {name.casefold() for name in given}

        def value(column: Column) -> str:
            return quote_name(column.name) if column.name.casefold() in given_names else "NULL"

        return rows.call("toDF", *given).call("select", *map(expr, self.row(stream, value)))

    def advance(self, stream: Stream, moment: str, places: Places) -> Node:
        """The calls that write the row of ADVANCE STREAM. moment: a timestamp as text."""
        assert stream.watermark
        time, at = stream.watermark.column.value.casefold(), moment_text(moment)
        row = self.row(stream, lambda column: at if column.name.casefold() == time else "NULL")
        hidden = f"{at} AS {hidden_column(stream).name}"
        frame = Var("spark").call("range", 1).call("select", *map(expr, (*row, hidden)))
        write = frame.call("coalesce", 1).attr("write").call("mode", "append")
        return write.call("parquet", places.values((stream.stands_for or stream).name))

    def row(self, stream: Stream, value: Callable[[Column], str]) -> list[str]:
        """The columns of a row as the files of the stream hold it, without the hidden one. value: gives the
        value of a column as SQL.
        """
        return [f"CAST({value(c)} AS {c.type}) AS {quote_name(c.name)}" for c in stream.columns]


def moment_text(text: str) -> str:
    """A moment, as shown, as SQL."""
    return f"TIMESTAMP {quote(text)}"


def inserted(stream: Stream, frame: Node) -> Node:
    """The rows of INSERT, without the hidden column."""
    hidden = hidden_column(stream).name
    return frame.call("where", expr(f"{hidden} IS NULL")).call("drop", hidden)


def hidden_column(stream: Stream) -> Column:
    """The hidden column, under a name that no column of the stream has."""
    taken = {c.name.casefold() for c in stream.columns}
    if stream.watermark:
        taken.add(stream.watermark.column.value.casefold())
    name = ADVANCED
    while name in taken:
        name += "_"
    return Column(name, "TIMESTAMP")
