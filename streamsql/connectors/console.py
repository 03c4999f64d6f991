"""console: each micro-batch's rows on standard output."""

from streamsql.calls import Call, Function, Node, Var, lit
from streamsql.connectors.base import Connector, OptionSpec
from streamsql.definitions import Sink


class Console(Connector):
    name = "console"
    not_read_back = "its rows are printed"
    help = "each micro-batch's rows on standard output"
    takes_key = True
    writes = (OptionSpec("numRows", "most rows shown of a micro-batch", "positive integer", default="20"),)

    def shows_newest(self, sink: Sink) -> bool:
        return True

    def delivery(self, sink: Sink) -> str:
        return "at least once: a micro-batch may be shown again after a failure"

    def batch_writer(self, sink: Sink) -> Node:
        # Spark's own console sink prints in the JVM, whose output goes to the log.
        if not sink.option("numRows"):
            return Var("show_batch")
        shown = Call(Var("show_batch"), (Var("batch"), Var("batch_id"), lit(int(sink.option("numRows")))))
        return Function(("batch", "batch_id"), (), shown)
