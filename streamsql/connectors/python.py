"""python: a Python Data Source. Spark guide, "Python Data Source API"."""

from __future__ import annotations

from streamsql.calls import Call, Node, Var, lit
from streamsql.connectors.base import PYTHON_NAME, Connector, OptionSpec, Places, schema_text, with_options
from streamsql.connectors.foreach import FOLDER
from streamsql.definitions import Sink, Stream

CLASS = OptionSpec("class", "the DataSource class, by name", PYTHON_NAME, required=True)


def _format(entry: Stream | Sink) -> Node:
    """The call that registers the class and gives the name that Spark knows it by."""
    folder = entry.option("folder", ".")
    return Call(Var("data_source"), (Var("spark"), lit(entry.option("class")), lit(folder)))


class Python(Connector):
    name = "python"
    not_read_back = "a Python Data Source writes its rows"
    help = "a Python Data Source: a class that reads or writes a stream; it receives all other options"
    modes = ("append", "complete")
    infers_columns = True
    open_options = True
    reads = (CLASS, FOLDER)
    writes = (CLASS, FOLDER)
    code_hint = "class Name(DataSource): … with schema() and simpleStreamReader(schema), or streamWriter(…)"

    def source(self, stream: Stream, places: Places) -> Node:
        reader = Var("spark").attr("readStream").call("format", _format(stream))
        if stream.columns and not stream.inferred:
            reader = reader.call("schema", schema_text(stream.columns))
        return with_options(reader, stream.options, skip=("class", "folder")).call("load")

    def infer(self, stream: Stream) -> Node:
        return self.source(stream, Places(""))

    def delivery(self, sink: Sink) -> str:
        return "as its code: a micro-batch may be written again after a failure"

    def write_stream(self, sink: Sink, writer: Node) -> Node:
        return with_options(writer.call("format", _format(sink)), sink.options, skip=("class", "folder"))

    def write_batch(self, sink: Sink, frame: Node) -> Node:
        writer = frame.attr("write").call("format", _format(sink)).call("mode", "append")
        return with_options(writer, sink.options, skip=("class", "folder")).call("save")

    def check_code(self, code: object, purpose: str) -> str:
        bases = code.__mro__ if isinstance(code, type) else ()
        base = next((c for c in bases if c.__name__ == "DataSource"), None)
        if base is None:
            return "it is not a subclass of pyspark.sql.datasource.DataSource"
        methods = ("simpleStreamReader", "streamReader") if purpose == "read" else ("streamWriter", "writer")
        own = [m for m in methods if getattr(code, m, None) is not getattr(base, m, None)]
        verb = "reads no stream" if purpose == "read" else "writes nothing"
        return "" if own else f"it {verb}: it has no method {' or '.join(methods)}"
