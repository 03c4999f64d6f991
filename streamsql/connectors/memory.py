"""memory: a live table. The rows are kept by runtime/live.py, fed batch by batch."""

from streamsql.calls import Node, Var
from streamsql.catalog import Sink
from streamsql.connectors.base import Connector


def rows_variable(name: str) -> str:
    """The program's variable that holds the rows of a live table."""
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in name.lower()) + "_rows"


class Memory(Connector):
    name = "memory"
    help = "a live table: kept by the console, read with SELECT while it refreshes"
    writes = ()
    takes_key = True

    def shows_newest(self, sink: Sink) -> bool:
        return True

    def batch_writer(self, sink: Sink) -> Node:
        return Var(rows_variable(sink.name)).attr("feed")
