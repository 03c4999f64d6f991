"""python: a Python Data Source. Spark guide, "Python Data Source API"."""

from __future__ import annotations

from streamsql.calls import Call, Node, Var, lit
from streamsql.connectors.base import MICRO_BATCH, OptionSpec
from streamsql.connectors.foreach import FOLDER
from streamsql.connectors.option_kinds import PYTHON_NAME
from streamsql.connectors.spark import SparkFormat
from streamsql.definitions import Sink, Stream


class PythonSource(SparkFormat):
    """The Python Data Source of an installed class. source_class: its name, with that of its module."""

    not_read_back = "a Python Data Source writes its rows"
    modes = ("append", "complete")
    triggers = sink_triggers = MICRO_BATCH
    source_class = ""

    def format(self, entry: Stream | Sink) -> Node:
        """The call that registers the class and gives the name that Spark knows it by."""
        name, folder = entry.option("class", self.source_class), entry.option("folder", ".")
        return Call(Var("data_source"), (Var("spark"), lit(name), lit(folder)))


class Python(PythonSource):
    """The Python Data Source that an option names."""

    name = "python"
    help = "a Python Data Source: a class that reads or writes a stream; it receives all other options"
    own = (OptionSpec("class", "the DataSource class, by name", PYTHON_NAME, required=True), FOLDER)
    not_known = ()
    code_hint = "class Name(DataSource): … with schema() and simpleStreamReader(schema), or streamWriter(…)"

    def delivery(self, sink: Sink) -> str:
        return "as its code: a micro-batch may be written again after a failure"

    def check_code(self, code: object, purpose: str) -> str:
        bases = code.__mro__ if isinstance(code, type) else ()
        base = next((c for c in bases if c.__name__ == "DataSource"), None)
        if base is None:
            return "it is not a subclass of pyspark.sql.datasource.DataSource"
        methods = ("simpleStreamReader", "streamReader") if purpose == "read" else ("streamWriter", "writer")
        own = [m for m in methods if getattr(code, m, None) is not getattr(base, m, None)]
        verb = "reads no stream" if purpose == "read" else "writes nothing"
        return "" if own else f"it {verb}: it has no method {' or '.join(methods)}"
