"""The plan of ON LATE INTO: the late rows of a query are written into a sink, micro-batch by micro-batch."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.calls import Assign, Call, Node, Program, Var, lit
from streamsql.connectors.memory import rows_variable
from streamsql.connectors.registry import connector
from streamsql.definitions import Sink
from streamsql.errors import Note
from streamsql.language.statements.base import Name


@dataclass(frozen=True)
class Late:
    """sink: where the rows go; steps: the program after `result` up to the reader of late rows; checkpoint:
    the folder of the query. Variables: reader, what reads late rows again; writer, what writes them; select,
    the function that gives them the columns of the sink, empty if there is none. notes: what is to be known
    of it at the start.
    """

    sink: Sink
    steps: Program
    checkpoint: Node
    reader: str
    writer: str
    select: str = ""
    notes: tuple[Note, ...] = ()

    @property
    def keeping(self) -> Program:
        """The rows of a live table that takes late rows."""
        if not self.sink.is_live:
            return ()
        schema = Call(Var(self.reader).attr("empty")).attr("schema")
        rows = Call(Var("LiveRows"), tuple(map(lit, (schema, "append", None, self.sink.retain))))
        return (Assign(rows_variable(self.sink.name), rows),)

    @property
    def beginning(self) -> Program:
        """The part of the program that comes before the start of the query."""
        write = connector(Name(self.sink.connector)).batch_writer(self.sink)
        assert write is not None
        select = (Var(self.select),) if self.select else ()
        arguments = (Var("spark"), self.checkpoint, Var(self.reader), write, *select)
        return (
            Assign(self.writer, Call(Var("LateRowsWriter"), arguments)),
            Assign("", Var(self.writer).call("begin")),
        )

    @property
    def program(self) -> Program:
        """All its steps."""
        return (*self.steps, *self.keeping, *self.beginning)

    @property
    def follow(self) -> Node:
        """The call that writes late rows until the query has ended."""
        return Var(self.writer).call("follow", Var("query"))
