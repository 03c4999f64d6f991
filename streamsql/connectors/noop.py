"""noop: results are computed and discarded, to measure or to fill state."""

from streamsql.calls import Node, Var
from streamsql.connectors.base import MICRO_BATCH, PROGRESS_OPTIONS, Connector, with_options
from streamsql.definitions import Sink


class Noop(Connector):
    name = "noop"
    not_read_back = "its rows are discarded"
    help = "computes and discards the result, for measuring"
    writes = PROGRESS_OPTIONS
    once_by_batch_id = True
    sink_triggers = MICRO_BATCH | {"continuous"}

    def write_stream(self, sink: Sink, writer: Node) -> Node:
        return with_options(writer.call("format", "noop"), sink.options)

    def delivery(self, sink: Sink) -> str:
        return "nothing is written"

    def batch_writer(self, sink: Sink) -> Node:
        return Var("throw_away")

    def write_batch(self, sink: Sink, frame: Node) -> Node:
        return frame.attr("write").call("format", "noop").call("mode", "append").call("save")
