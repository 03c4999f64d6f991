"""memory: a live table. The rows are kept by runtime/embedded/live_rows.py, fed batch by batch."""

import zlib

from streamsql.calls import Call, Node, Var, lit
from streamsql.connectors.base import Connector
from streamsql.definitions import Sink


def rows_variable(name: str) -> str:
    """The program's variable that holds the rows of a live table; two names never share one."""
    text = name.casefold()
    if text.isascii() and text.isidentifier():
        return f"{text}_rows"
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in text)
    return f"t_{plain}_{zlib.crc32(text.encode('utf-8', 'replace')):x}_rows"


class Memory(Connector):
    name = "memory"
    help = "a live table: kept by the console, read with SELECT while it refreshes"
    writes = ()
    takes_key = True
    once_by_batch_id = True

    def shows_newest(self, sink: Sink) -> bool:
        return sink.stands_for is None or sink.stands_for.shows_newest

    def modes_of(self, sink: Sink) -> tuple[str, ...]:
        return sink.stands_for.modes if sink.stands_for else self.modes

    def write_batch(self, sink: Sink, frame: Node) -> Node | None:
        """In a test, the rows are kept beside those of queries."""
        in_test = sink.stands_for is not None and not sink.is_view
        return Call(Var("keep_rows"), (lit(sink.name), frame)) if in_test else None

    def write_stream(self, sink: Sink, writer: Node) -> Node:
        return writer.call("format", "memory") if sink.is_view else super().write_stream(sink, writer)

    def batch_writer(self, sink: Sink) -> Node:
        return Var(rows_variable(sink.name)).attr("feed")
