"""The plan of ON LATE INTO: the late rows of a query are written into a sink, micro-batch by micro-batch."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.calls import Assign, Call, Node, Program, Var, lit
from streamsql.catalog import Sink
from streamsql.connectors.memory import rows_variable
from streamsql.connectors.registry import connector
from streamsql.language.statements.base import Name

ROWS, SELECT, WRITER = "late_rows", "late_columns", "late_writer"
"""The variables of the program: what reads late rows again, what gives them the columns of their sink, and
what writes them.
"""


@dataclass(frozen=True)
class Late:
    """sink: where the rows go; reader: the program after `result` up to the reader of late rows; checkpoint:
    the folder of the query; selects: whether the program has a function that gives rows the columns of the
    sink.
    """

    sink: Sink
    reader: Program
    checkpoint: Node
    selects: bool = False

    @property
    def keeping(self) -> Program:
        """The rows of a live table that takes late rows."""
        if not self.sink.is_live:
            return ()
        schema = Call(Var(ROWS).attr("empty")).attr("schema")
        rows = Call(Var("LiveRows"), tuple(map(lit, (schema, "append", None, self.sink.retain))))
        return (Assign(rows_variable(self.sink.name), rows),)

    @property
    def writer(self) -> Program:
        """The part of the program that comes before the start of the query."""
        write = connector(Name(self.sink.connector)).batch_writer(self.sink)
        assert write is not None
        select = (Var(SELECT),) if self.selects else ()
        arguments = (Var("spark"), self.checkpoint, Var(ROWS), write, *select)
        return (
            Assign(WRITER, Call(Var("LateRowsWriter"), arguments)),
            Assign("", Var(WRITER).call("begin")),
        )

    @property
    def program(self) -> Program:
        """All its steps."""
        return (*self.reader, *self.keeping, *self.writer)

    @property
    def follow(self) -> Node:
        """The call that writes late rows until the query has ended."""
        return Var(WRITER).call("follow", Var("query"))
