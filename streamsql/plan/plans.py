"""The kinds of plan that a statement becomes. All are values: equal inputs give equal plans."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from streamsql.calls import Assign, Node, Program, Var
from streamsql.catalog import Catalog, Function, Query, Sink, Stream, Table
from streamsql.connectors.memory import rows_variable
from streamsql.connectors.registry import connector
from streamsql.errors import Span, StreamsqlError
from streamsql.language.statements.base import Name, Statement, Trigger
from streamsql.plan.lowering.shape import Shape
from streamsql.plan.lowering.sources import variable
from streamsql.plan.streaming.rules import Choice


@dataclass(frozen=True)
class Plan:
    """notes: what the analyst is to be told beside the result, a line each."""

    notes: tuple[str, ...] = field(default=(), kw_only=True)

    def applied(self, catalog: Catalog) -> Catalog:
        """The catalog once the plan is carried out, as far as planning can tell."""
        return catalog

    @property
    def fault(self) -> StreamsqlError | None:
        """Why a part of the plan cannot be carried out, where the others nevertheless are."""
        return None


@dataclass(frozen=True)
class Direct(Plan):
    """A statement that the session answers from what it knows, without a program. drops: the entries that
    it takes out of the catalog: (field of the catalog, name).
    """

    statement: Statement
    drops: tuple[tuple[str, str], ...] = ()

    def applied(self, catalog: Catalog) -> Catalog:
        for kind, name in self.drops:
            catalog = catalog.without(kind, name)
        return catalog


@dataclass(frozen=True)
class DefineStream(Plan):
    """infer: the DataFrame whose columns become the stream's; infer_times: the same with times told
    from texts, for the watermark's column; path: a folder that must exist; code: the name of a
    Python object that must be there.
    """

    stream: Stream
    skip_existing: bool = False
    infer: Node | None = None
    infer_times: Node | None = None
    path: Name | None = None
    code: Name | None = None

    def exists(self, catalog: Catalog) -> bool:
        """Whether IF NOT EXISTS leaves the stream or sink as it is."""
        key = self.stream.name.casefold()
        return self.skip_existing and (key in catalog.streams or key in catalog.sinks)

    def applied(self, catalog: Catalog) -> Catalog:
        return catalog if self.exists(catalog) else catalog.having(self.stream)


@dataclass(frozen=True)
class DefineSink(Plan):
    """code: the name of a Python object that must be there."""

    sink: Sink
    skip_existing: bool = False
    code: Name | None = None

    def exists(self, catalog: Catalog) -> bool:
        """Whether IF NOT EXISTS leaves the sink as it is."""
        return self.skip_existing and self.sink.name.casefold() in catalog.sinks

    def applied(self, catalog: Catalog) -> Catalog:
        return catalog if self.exists(catalog) else catalog.having(self.sink)


@dataclass(frozen=True)
class DefineFunction(Plan):
    """function: as written; its kind, form and folder are found out by looking at the module.

    target: 'module.attribute' with its place.
    """

    function: Function
    target: Name
    skip_existing: bool = False

    def exists(self, catalog: Catalog) -> bool:
        """Whether IF NOT EXISTS leaves the function as it is."""
        return self.skip_existing and self.function.name.casefold() in catalog.functions

    def applied(self, catalog: Catalog) -> Catalog:
        return catalog if self.exists(catalog) else catalog.having(self.function)


@dataclass(frozen=True)
class Preview(Plan):
    """The first records of a stream. propose: it is not there yet: its columns, event time and format are
    to be found out, and how it would be made is to be told. place: what says where the records are.
    path, code: as in DefineStream, but path may be a file.
    """

    stream: Stream
    limit: int
    propose: bool = False
    place: Name | None = None
    path: Name | None = None
    code: Name | None = None


@dataclass(frozen=True)
class Topics(Plan):
    """The topics of a Kafka cluster. settings: those of Kafka's own client; like: a pattern; place: what
    says where the brokers are.
    """

    settings: dict[str, str]
    like: str
    place: Name


@dataclass(frozen=True)
class Reads:
    """What a program needs beside Spark: the live tables whose rows it reads, the functions written in
    Python that it calls; and the streams that it reads.
    """

    live: tuple[Sink, ...] = ()
    functions: tuple[Function, ...] = ()
    streams: tuple[Stream, ...] = ()


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

    def applied(self, catalog: Catalog) -> Catalog:
        return catalog.having(Table(self.creates, self.streaming)) if self.creates else catalog


@dataclass(frozen=True)
class Write(Plan):
    """A program that writes once and ends. message: what is said then; folder: a directory it writes into;
    sinks: those that it writes into.
    """

    program: Program
    message: str
    reads: Reads = field(default_factory=Reads)
    folder: str = ""
    sinks: tuple[Sink, ...] = ()


@dataclass(frozen=True)
class Target:
    """One sink of a query: what makes its rows of the query's result, and the shape of those.

    select: the name of a function of the program, from `result` or a micro-batch of it to the rows;
    empty when the result is what the sink gets.
    """

    sink: Sink
    shape: Shape
    select: str = ""

    def keys(self, mode: str) -> tuple[str, ...] | None:
        """The columns by which the sink keeps one row each; None: it keeps all rows."""
        if mode != "update":
            return None
        return self.sink.key or self.shape.keys

    @property
    def rows(self) -> Node:
        """The streaming DataFrame of its rows."""
        return _call(Var(self.select), Var("result")) if self.select else Var("result")


@dataclass(frozen=True)
class Run(Plan):
    """A streaming query: the program up to `result`, what gets it, and the modes to start it with.

    transient: a SELECT over a stream, shown and then gone. define: its sink is made by this
    statement (CREATE LIVE TABLE). begins: where this start begins: "" (at the checkpoint), now or
    beginning (a new one), accept (at the checkpoint, though the query has changed).
    """

    query: Query
    targets: tuple[Target, ...]
    program: Program
    choices: tuple[Choice, ...]
    shape: Shape
    checkpoint: str
    reads: Reads = field(default_factory=Reads)
    as_text: str = ""
    transient: bool = False
    define: bool = False
    skip_existing: bool = False
    begins: str = ""
    mode_span: Span | None = field(default=None, compare=False)
    body_span: Span = field(default=Span(0, 0), compare=False)

    def exists(self, catalog: Catalog) -> bool:
        """Whether IF NOT EXISTS leaves the live table as it is."""
        return self.skip_existing and self.sink.name.casefold() in catalog.sinks

    def applied(self, catalog: Catalog) -> Catalog:
        if self.transient or self.exists(catalog):
            return catalog
        return catalog.having(self.query, *((self.sink,) if self.define else ()))

    @property
    def sink(self) -> Sink:
        """The sink of a query that has one, as a live table's has; else its first."""
        return self.targets[0].sink

    @property
    def live(self) -> tuple[Sink, ...]:
        """The live tables that it feeds."""
        return tuple(t.sink for t in self.targets if t.sink.is_live)

    @property
    def feeds_batches(self) -> bool:
        """Whether its sinks get each micro-batch after one another, and not Spark's own writer the stream."""
        return len(self.targets) > 1 or bool(self.targets[0].select)

    def named(self, name: str, checkpoint: str, **changes: Any) -> Run:
        """This query of one sink under another name; changes: fields of its sink."""
        target = replace(self.targets[0], sink=replace(self.sink, name=name, **changes))
        query = replace(self.query, name=name, sinks=(name,))
        return replace(self, query=query, targets=(target,), checkpoint=checkpoint)

    def keeping(self, mode: str) -> Program:
        """The program, behind `result`, that makes the rows of each live table."""
        return tuple(
            Assign(
                rows_variable(t.sink.name),
                _call(
                    Var("LiveRows"),
                    t.rows.attr("schema"),
                    mode,
                    _names(t.keys(mode)),
                    t.sink.retain,
                    bool(t.sink.key),
                ),
            )
            for t in self.targets
            if t.sink.is_live
        )

    def writer(self, mode: str) -> Program:
        """The program, behind `keeping`, to the running query."""
        result: Node = Var("result")
        alone = len(self.targets) == 1 and not self.targets[0].select and self.sink.connector != "table"
        if alone:
            result = connector(Name(self.sink.connector)).prepared(self.sink, result)
        writer = result.attr("writeStream").call("queryName", self.query.name)
        writer = writer.call("outputMode", mode)
        if self.query.trigger:
            writer = writer.call("trigger", **_trigger(self.query.trigger))
        writer = writer.call("option", "checkpointLocation", self._place)
        if self.feeds_batches:
            pairs, steps = self._pairs()
            each = _call(Var("EachSink"), *pairs).attr("write")
            return (*steps, Assign("query", writer.call("foreachBatch", each).call("start")))
        if self.sink.connector == "table":
            return (Assign("query", writer.call("toTable", self.sink.name)),)
        writer = connector(Name(self.sink.connector)).write_stream(self.sink, writer)
        return (Assign("query", writer.call("start")),)

    @property
    def _place(self) -> str | Node:
        return self.query.checkpoint or _call(Var("checkpoint"), self.query.name)

    def passing_over(self, mode: str) -> Program:
        """The program that brings a new checkpoint to where the input ends now, for FROM NOW.

        The query runs once without the rows of its streams: Spark then notes their offsets as done, and
        there is state for what follows. So it works for every source, and reads none of it.
        """
        own = {variable(s.name) for s in self.reads.streams if s.connector}
        steps = (Assign(s.name, s.node.call("where", "false")) if s.name in own else s for s in self.program)
        writer = Var("result").attr("writeStream").call("format", "noop").call("outputMode", mode)
        writer = writer.call("trigger", once=True).call("option", "checkpointLocation", self._place)
        return (*steps, Assign("query", writer.call("start")))

    def _pairs(self) -> tuple[list[list[Node | None]], Program]:
        """For each sink the function that selects its rows and the one that writes them, and the
        steps that make the latter.
        """
        pairs: list[list[Node | None]] = []
        steps = []
        for target in self.targets:
            write = connector(Name(target.sink.connector)).batch_writer(target.sink)
            assert write is not None
            if not isinstance(write, Var):
                name = f"to_{rows_variable(target.sink.name).removesuffix('_rows')}"
                steps.append(Assign(name, write))
                write = Var(name)
            pairs.append([Var(target.select) if target.select else None, write])
        return pairs, tuple(steps)


@dataclass(frozen=True)
class Again:
    """One query that is to be started again: its plan, or why there is none."""

    query: Query
    run: Run | None = None
    why: StreamsqlError | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Start(Plan):
    """START QUERY: one query's trouble does not reach another."""

    queries: tuple[Again, ...]

    @property
    def fault(self) -> StreamsqlError | None:
        return next((again.why for again in self.queries if again.why), None)


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
