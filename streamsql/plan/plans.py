"""The kinds of plan that a statement becomes. All are values: equal inputs give equal plans."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamsql.calls import Assign, Node, Program, Var
from streamsql.catalog import Function, Query, Sink, Stream
from streamsql.connectors.memory import rows_variable
from streamsql.connectors.registry import connector
from streamsql.errors import Span
from streamsql.language.statements.base import Name, Statement, Trigger
from streamsql.plan.rules import Choice
from streamsql.plan.shape import Shape


@dataclass(frozen=True)
class Plan:
    """notes: what the analyst is to be told beside the result, a line each."""

    notes: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class Direct(Plan):
    """A statement that the session answers from what it knows, without a program."""

    statement: Statement


@dataclass(frozen=True)
class DefineStream(Plan):
    """infer: the static DataFrame whose columns become the stream's; infer_times: the same with times
    told from texts, for the watermark's column; path: a folder that must exist.
    """

    stream: Stream
    skip_existing: bool = False
    infer: Node | None = None
    infer_times: Node | None = None
    path: Name | None = None


@dataclass(frozen=True)
class DefineSink(Plan):
    sink: Sink
    skip_existing: bool = False


@dataclass(frozen=True)
class DefineFunction(Plan):
    """function: as written; its kind, form and folder are found out by looking at the module.

    target: 'module.attribute' with its place.
    """

    function: Function
    target: Name
    skip_existing: bool = False


@dataclass(frozen=True)
class Reads:
    """What a program needs beside Spark: the live tables whose rows it reads, and the functions
    written in Python that it calls.
    """

    live: tuple[Sink, ...] = ()
    functions: tuple[Function, ...] = ()


@dataclass(frozen=True)
class Collect(Plan):
    """A program whose last value is a DataFrame to show. creates: a table or view of Spark's made by it;
    streaming: whether it reads a stream, so that the view is one.
    """

    program: Program
    reads: Reads = field(default_factory=Reads)
    as_text: str = ""
    creates: str = ""
    streaming: bool = False


@dataclass(frozen=True)
class Write(Plan):
    """A program that writes once and ends. message: what is said then; folder: a directory it writes into."""

    program: Program
    message: str
    reads: Reads = field(default_factory=Reads)
    folder: str = ""


@dataclass(frozen=True)
class Run(Plan):
    """A streaming query: the program up to `result`, and the modes to start it with.

    transient: a SELECT over a stream, shown and then gone. define: its sink is made by this
    statement (CREATE LIVE TABLE). replace: an earlier one of that name is ended first.
    """

    query: Query
    sink: Sink
    program: Program
    choices: tuple[Choice, ...]
    shape: Shape
    checkpoint: str
    reads: Reads = field(default_factory=Reads)
    as_text: str = ""
    transient: bool = False
    define: bool = False
    skip_existing: bool = False
    mode_span: Span | None = field(default=None, compare=False)
    body_span: Span = field(default=Span(0, 0), compare=False)

    def keys(self, mode: str) -> tuple[str, ...] | None:
        """The columns by which the live table keeps one row each; None: it keeps all rows."""
        if mode != "update":
            return None
        return self.sink.key or self.shape.keys

    def writer(self, mode: str) -> Program:
        """The program from `result` to the running query."""
        steps: list[Assign] = []
        if self.sink.is_live:
            keys = self.keys(mode)
            one = bool(self.sink.key)
            rows = Var("LiveRows")
            steps.append(
                Assign(
                    rows_variable(self.sink.name),
                    _call(rows, Var("result").attr("schema"), mode, _names(keys), self.sink.retain, one),
                )
            )
        writer = Var("result").attr("writeStream").call("queryName", self.query.name)
        writer = writer.call("outputMode", mode)
        if self.query.trigger:
            writer = writer.call("trigger", **_trigger(self.query.trigger))
        own = _call(Var("checkpoint"), self.query.name)
        writer = writer.call("option", "checkpointLocation", self.query.checkpoint or own)
        if self.sink.connector == "table":
            writer = writer.call("toTable", self.sink.name)
        else:
            made = connector(Name(self.sink.connector))
            writer = made.write_stream(self.sink, writer).call("start")
        steps.append(Assign("query", writer))
        return tuple(steps)


@dataclass(frozen=True)
class Explain(Plan):
    """mode: pyspark, logical, extended, formatted or empty; plan: what it is about."""

    mode: str
    plan: Plan


def _call(function: Node, *args: object) -> Node:
    from streamsql.calls import Call, lit

    return Call(function, tuple(map(lit, args)))


def _names(keys: tuple[str, ...] | None) -> object:
    return None if keys is None else list(keys)


def _trigger(trigger: Trigger) -> dict[str, object]:
    if trigger.kind == "available_now":
        return {"availableNow": True}
    if trigger.kind == "once":
        return {"once": True}
    key = {"every": "processingTime", "continuous": "continuous", "real_time": "realTime"}[trigger.kind]
    return {key: trigger.interval}
