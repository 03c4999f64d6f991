"""socket: lines of a TCP server, for trying things out. Options: Spark guide, "Socket source"."""

from dataclasses import replace

from streamsql.calls import Node
from streamsql.connectors import messages
from streamsql.connectors.base import MICRO_BATCH, Places, option_table, read_stream, with_options
from streamsql.definitions import PAYLOAD_FORMATS, Stream
from streamsql.language.statements.base import Column

_OWN = option_table("""
    host: required -- name or address of the server
    port: required, number from 1 to 65535 -- its TCP port
    includeTimestamp: boolean = false -- add a column with the time of arrival
""")


class Socket(messages.MessageConnector):
    name = "socket"
    help = "lines from a TCP server; not replayed after a restart, so for tests only"
    formats = ("text", "raw", "json", "csv")
    place = "'the lines of the socket'"
    triggers = MICRO_BATCH | {"continuous"}
    reads = (*_OWN, *dict.fromkeys(s for f in formats for s in messages.FORMAT_OPTIONS[f]))

    def format_of(self, stream: Stream) -> str:
        """text, unless another one is given."""
        return stream.format or "text"

    def columns(self, stream: Stream) -> tuple[Column, ...]:
        if stream.rejected:
            return messages.rejected_columns(self._fields(stream))
        if self.format_of(stream) in PAYLOAD_FORMATS:
            return ()
        return tuple(replace(c, name=c.name.removeprefix("_")) for c in self._fields(stream))

    def _fields(self, stream: Stream) -> tuple[Column, ...]:
        stamped = stream.option("includeTimestamp").casefold() == "true"
        stamp = (Column("_timestamp", "TIMESTAMP"),) if stamped else ()
        return (Column("_value", "STRING"), *stamp)

    def metadata(self, stream: Stream) -> tuple[Column, ...]:
        parsed = self.format_of(stream) in PAYLOAD_FORMATS and not stream.rejected
        return self._fields(stream) if parsed else ()

    def source(self, stream: Stream, places: Places) -> Node:
        own = {s.name.casefold() for s in _OWN}
        options = [(k, v) for k, v in stream.options if k.casefold() in own]
        frame = with_options(read_stream(self.name), options).call("load")
        return self.decoded(frame, stream) if self.format_of(stream) in PAYLOAD_FORMATS else frame

    def payload(self, stream: Stream) -> messages.Payload:
        fields = {c.name: c.name.removeprefix("_") for c in self._fields(stream)}
        return messages.Payload(fields, self.place)
