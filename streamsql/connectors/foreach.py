"""foreach: a Python function or object takes each row. Spark guide, "Using Foreach and ForeachBatch"."""

from __future__ import annotations

from streamsql.calls import Call, Node, Var, lit
from streamsql.connectors.base import HERE, Connector, OptionSpec
from streamsql.connectors.option_kinds import PYTHON_NAME
from streamsql.definitions import Sink, Stream

FOLDER = OptionSpec(
    "folder",
    "the folder searched first for the module, before the current folder and sys.path",
    "path",
    default=HERE,
)


def loaded(entry: Sink | Stream, option: str) -> Node:
    """The call that gives the Python function or object that an option names."""
    return Call(Var("load"), (lit(entry.option(option)), lit(entry.option("folder", "."))))


class Foreach(Connector):
    name = "foreach"
    not_read_back = "a Python function receives its rows"
    help = "a Python function, or a class with open, process and close, receives each row"
    writes = (
        OptionSpec("function", "the function or class, by name", PYTHON_NAME, required=True),
        FOLDER,
    )

    code_hint = "def function(row): …, or a class with open(partition, epoch), process(row), close(error)"

    def delivery(self, sink: Sink) -> str:
        return "at least once: rows may be passed again after a failure"

    def write_stream(self, sink: Sink, writer: Node) -> Node:
        return writer.call("foreach", loaded(sink, "function"))

    def check_code(self, code: object, purpose: str) -> str:
        if isinstance(code, type):
            return "" if callable(getattr(code, "process", None)) else "it has no method process(row)"
        return "" if callable(code) else f"it is a value ({type(code).__name__}), not a function or class"
