"""socket: lines of a TCP server, for trying things out. Options: Spark guide, "Socket source"."""

from streamsql.calls import Node
from streamsql.connectors import messages
from streamsql.connectors.base import (
    MICRO_BATCH,
    Connector,
    OptionSpec,
    Places,
    read_stream,
    with_options,
)
from streamsql.connectors.event_metrics import measured
from streamsql.connectors.messages import Payload
from streamsql.definitions import PAYLOAD_FORMATS, Stream
from streamsql.language.statements.base import Column, Name, Option

_OWN = (
    OptionSpec("host", "name or address of the server", required=True),
    OptionSpec("port", "its TCP port", "number from 1 to 65535", required=True),
    OptionSpec("includeTimestamp", "add a column with the time of arrival", "boolean", default="false"),
)
_FIELDS = {"_value": "value", "_timestamp": "timestamp"}
_PLACE = "'the lines of the socket'"


class Socket(Connector):
    name = "socket"
    help = "lines from a TCP server; not replayed after a restart, so for tests only"
    formats = ("text", "raw", "json", "csv")
    triggers = MICRO_BATCH | {"continuous"}
    reads = (*_OWN, *dict.fromkeys(s for f in formats for s in messages.FORMAT_OPTIONS[f]))

    def _stamped(self, stream: Stream) -> bool:
        return stream.option("includeTimestamp").casefold() == "true"

    def columns(self, stream: Stream) -> tuple[Column, ...]:
        if stream.rejected:
            return messages.rejected_columns(self._fields(stream))
        if self.format_of(stream) in PAYLOAD_FORMATS:
            return ()
        stamp = (Column("timestamp", "TIMESTAMP"),) if self._stamped(stream) else ()
        return (Column("value", "STRING"), *stamp)

    def _fields(self, stream: Stream) -> tuple[Column, ...]:
        stamp = (Column("_timestamp", "TIMESTAMP"),) if self._stamped(stream) else ()
        return (Column("_value", "STRING"), *stamp)

    def metadata(self, stream: Stream) -> tuple[Column, ...]:
        parsed = self.format_of(stream) in PAYLOAD_FORMATS and not stream.rejected
        return self._fields(stream) if parsed else ()

    def source(self, stream: Stream, places: Places) -> Node:
        own = {s.name.casefold() for s in _OWN}
        options = [(k, v) for k, v in stream.options if k.casefold() in own]
        frame = with_options(read_stream(self.name), options).call("load")
        form = self.format_of(stream)
        if form not in PAYLOAD_FORMATS:
            return frame
        fields = {c.name: _FIELDS[c.name] for c in self._fields(stream)}
        return messages.read(frame, stream, Payload("value", fields, _PLACE), form)

    def before_watermark(self, stream: Stream, frame: Node) -> Node:
        return measured(frame, stream)

    def check_stream(self, stream: Stream, options: dict[str, Option], at: Name) -> None:
        messages.check_format(self.format_of(stream), options, at, reads=True)
