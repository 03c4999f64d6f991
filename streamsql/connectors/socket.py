"""socket: lines of a TCP server, for trying things out. Options: Spark guide, "Socket source"."""

from streamsql.calls import Node, expr
from streamsql.catalog import Stream
from streamsql.connectors.base import (
    MICRO_BATCH,
    Connector,
    OptionSpec,
    Places,
    read_stream,
    schema_text,
    with_options,
)
from streamsql.language.statements.base import Column
from streamsql.language.tokens import quote

PARSERS = {"json": "from_json", "csv": "from_csv"}


class Socket(Connector):
    name = "socket"
    help = "lines of a TCP server; lost after a restart, so for trying out only"
    formats = ("text", "raw", "json", "csv")
    triggers = MICRO_BATCH | {"continuous"}
    reads = (
        OptionSpec("host", "name or address of the server", required=True),
        OptionSpec("port", "its TCP port", "number", required=True),
        OptionSpec("includeTimestamp", "add the time of arrival", "boolean", default="false"),
    )

    def columns(self, stream: Stream) -> tuple[Column, ...]:
        stamp = stream.option("includeTimestamp").casefold() == "true"
        line = (Column("value", "STRING"),)
        return line + ((Column("timestamp", "TIMESTAMP"),) if stamp else ())

    def source(self, stream: Stream, places: Places) -> Node:
        frame = with_options(read_stream(self.name), stream.options).call("load")
        parser = PARSERS.get(stream.format)
        if parser is None:
            return frame
        parsed = f"{parser}(value, {quote(schema_text(stream.columns))}) AS _parsed"
        stamp = stream.option("includeTimestamp").casefold() == "true"
        fields = [expr("_parsed.*"), expr("value AS _value")]
        if stamp:
            fields.append(expr("timestamp AS _timestamp"))
        return frame.call("select", expr("*"), expr(parsed)).call("select", *fields)
