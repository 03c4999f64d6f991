"""The kinds of plan. All are values: equal inputs give equal plans."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from streamsql.calls import Assign, Node, Program, Var, call
from streamsql.catalog import Catalog
from streamsql.connectors.base import tracks_asynchronously
from streamsql.connectors.memory import rows_variable
from streamsql.connectors.registry import connector
from streamsql.definitions import (
    Change,
    Function,
    OfSpark,
    Query,
    Sink,
    SqlFunction,
    Stream,
    Table,
    before_name,
)
from streamsql.errors import Note, Span, StreamsqlError
from streamsql.language.spark_definitions import Definition, in_default
from streamsql.language.statements.base import Name, Trigger
from streamsql.plan.basic_plans import Direct as Direct
from streamsql.plan.basic_plans import Drop as Drop
from streamsql.plan.basic_plans import Plan
from streamsql.plan.lowering.shape import IN_RESULT, Shape
from streamsql.plan.lowering.sources import variable
from streamsql.plan.streaming.rules import Choice


@dataclass(frozen=True)
class DefineStream(Plan):
    """infer: the DataFrame whose columns become the stream's; infer_times: the same with times inferred from
    strings, for the watermark's column; path: a folder that must exist; code: the name of a Python object
    that must exist; schema_file: the name of a file with the schema of the messages.
    """

    stream: Stream
    skip_existing: bool = False
    infer: Node | None = None
    infer_times: Node | None = None
    path: Name | None = None
    code: Name | None = None
    schema_file: Name | None = None

    def exists(self, catalog: Catalog) -> bool:
        """Whether the stream or sink exists and IF NOT EXISTS keeps it."""
        key = self.stream.name.casefold()
        return self.skip_existing and (key in catalog.streams or key in catalog.sinks)

    def applied(self, catalog: Catalog) -> Catalog:
        """ROLLBACK does not go back behind this definition."""
        if self.exists(catalog):
            return catalog
        return catalog.without("aside", before_name(self.stream.name)).having(self.stream)


@dataclass(frozen=True)
class DefineSink(Plan):
    """code: the name of a Python object that must exist; schema_file: see DefineStream."""

    sink: Sink
    skip_existing: bool = False
    code: Name | None = None
    schema_file: Name | None = None

    def exists(self, catalog: Catalog) -> bool:
        """Whether the sink exists and IF NOT EXISTS keeps it."""
        return self.skip_existing and self.sink.name.casefold() in catalog.sinks

    def applied(self, catalog: Catalog) -> Catalog:
        return catalog if self.exists(catalog) else catalog.having(self.sink)


@dataclass(frozen=True)
class DefineFunction(Plan):
    """function: as written; its kind, form and folder are determined later from the module.

    target: 'module.attribute' with its span.
    """

    function: Function
    target: Name
    skip_existing: bool = False

    def exists(self, catalog: Catalog) -> bool:
        """Whether the function exists and IF NOT EXISTS keeps it."""
        return self.skip_existing and self.function.name.casefold() in catalog.functions

    def applied(self, catalog: Catalog) -> Catalog:
        if self.exists(catalog):
            return catalog
        return catalog.without("aside", before_name(self.function.name)).having(self.function)


@dataclass(frozen=True)
class DefineChange(Plan):
    """A set of staged changes gets its members."""

    change: Change

    def applied(self, catalog: Catalog) -> Catalog:
        return catalog.having(self.change)


@dataclass(frozen=True)
class LivePart:
    """What a query needs of a live table: its columns among these words (folded; None: all), and the rows for
    which these conditions hold: (column, = or <= or >=, literal), of its WHERE.
    """

    table: str
    words: frozenset[str] | None
    conditions: tuple[tuple[str, str, int | str], ...] = ()


@dataclass(frozen=True)
class Reads:
    """The live tables and streams that a program reads, and the functions written in Python that it calls.

    part: what it needs of its only live table; staged: the staged views and functions of Spark.
    """

    live: tuple[Sink, ...] = ()
    functions: tuple[Function, ...] = ()
    streams: tuple[Stream, ...] = ()
    part: LivePart | None = None
    staged: tuple[OfSpark | Function, ...] = ()


@dataclass(frozen=True)
class Collect(Plan):
    """A program whose last value is a DataFrame to show. defines: the Spark table or view that it creates or
    drops; streaming: whether it reads a stream, so that the view is one.
    """

    program: Program
    reads: Reads = field(default_factory=Reads)
    as_text: str = ""
    defines: Definition = Definition()
    streaming: bool = False

    @property
    def changes_definitions(self) -> bool:
        return bool(self.defines.creates or self.defines.drops or self.defines.alters)

    def applied(self, catalog: Catalog) -> Catalog:
        old = in_default(self.defines.drops or self.defines.renames)
        table = catalog.tables.get(old.casefold())
        catalog = catalog.without("tables", old) if old else catalog
        if self.defines.renamed:
            return catalog.having(replace(table or Table(""), name=self.defines.renamed))
        creates = in_default(self.defines.creates)
        if self.defines.kind == "function":
            catalog = (
                catalog.without("sql_functions", old)
                if old
                else catalog.without("aside", before_name(creates))
            )
            return catalog.having(replace(self.entry(False), name=creates)) if creates else catalog
        if not creates:
            return catalog
        catalog = catalog.without("aside", before_name(creates))
        return catalog.having(replace(self.entry(self.streaming), name=creates))

    def entry(self, streaming: bool) -> OfSpark:
        """The table, view or function that it creates. streaming: whether it is a view over streams."""
        live = tuple(table.name for table in self.reads.live) if self.defines.temporary else ()
        if self.defines.kind == "function":
            return SqlFunction(self.defines.creates, self.defines.text, live)
        return Table(self.defines.creates, streaming, live, self.defines.text)


@dataclass(frozen=True)
class Write(Plan):
    """A program with one batch write. message: the message after it; folder: the directory that it writes to;
    sinks: the sinks that it writes to.
    """

    program: Program
    message: str
    reads: Reads = field(default_factory=Reads)
    folder: str = ""
    sinks: tuple[Sink, ...] = ()


@dataclass(frozen=True)
class Target:
    """One sink of a query, and the shape of its rows.

    select: the program's function that computes the rows from `result` or a micro-batch of it; empty if the
    rows are the result itself.
    """

    sink: Sink
    shape: Shape
    select: str = ""

    def keys(self, mode: str) -> tuple[str, ...] | None:
        """The columns for whose values the sink keeps one row each; None if it keeps all rows."""
        if mode != "update" or not (self.sink.key or self.sink.keeps_groups):
            return None
        return self.sink.key or self.shape.keys

    @property
    def rows(self) -> Node:
        """The streaming DataFrame of its rows."""
        return call(self.select, Var("result")) if self.select else Var("result")


@dataclass(frozen=True)
class Late:
    """ON LATE INTO: the late rows of a query are written into a sink, micro-batch by micro-batch.

    steps: the program after `result` up to the reader of late rows; keeping: the rows of a live table that
    takes them; beginning: what comes before the start of the query; writer: the variable of what writes late
    rows. notes: what is to be known of it at the start.
    """

    sink: Sink
    steps: Program
    keeping: Program
    beginning: Program
    writer: str
    notes: tuple[Note, ...] = ()

    @property
    def program(self) -> Program:
        """All its steps."""
        return (*self.steps, *self.keeping, *self.beginning)

    @property
    def follow(self) -> Node:
        """The call that writes late rows until the query has ended."""
        return Var(self.writer).call("follow", Var("query"))


@dataclass(frozen=True)
class Run(Plan):
    """A streaming query: the program up to `result`, its sinks, and the output modes to try.

    transient: a SELECT over a stream, which is only shown. define: the statement also creates its sink
    (CREATE LIVE TABLE). begins: the start position: "" (the checkpoint), now or beginning (a new checkpoint),
    accept (the checkpoint, although the query has changed). checkpoint: "" for Spark's temporary one. late:
    what ON LATE INTO does. otherwise: what runs where only Spark knows the operations of the query, and
    refuses it in every output mode; by_hand: the hint where that is switched off; pace: when micro-batches
    begin where the query has no trigger of its own; history: what reads the history of BACKFILL, before the
    query starts. Of a staged INSERT, becomes: the sinks that it will write into; before: the plan of the
    hidden live table with the rows that its query writes now.
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
    late: Late | None = None
    otherwise: Run | None = None
    by_hand: str = ""
    pace: Trigger | None = None
    history: Write | None = None
    becomes: tuple[Target, ...] = ()
    before: Run | None = None

    def exists(self, catalog: Catalog) -> bool:
        """Whether the live table exists and IF NOT EXISTS keeps it."""
        return self.skip_existing and self.sink.name.casefold() in catalog.sinks

    def applied(self, catalog: Catalog) -> Catalog:
        if self.transient or self.exists(catalog):
            return catalog
        catalog = self.before.applied(catalog) if self.before else catalog
        return catalog.having(self.query, *((self.sink,) if self.define else ()))

    @property
    def sink(self) -> Sink:
        """The sink of the query; the first of several."""
        return self.targets[0].sink

    @property
    def live(self) -> tuple[Sink, ...]:
        """The live tables among its sinks."""
        return tuple(t.sink for t in self.targets if t.sink.is_live)

    @property
    def feeds_batches(self) -> bool:
        """Whether foreachBatch feeds its sinks one after the other, instead of a writer of Spark."""
        return len(self.targets) > 1 or bool(self.targets[0].select)

    @property
    def is_tracked_asynchronously(self) -> bool:
        """Whether Spark records its progress beside its micro-batches: always in real-time mode."""
        real_time = self.query.trigger is not None and self.query.trigger.kind == "real_time"
        return real_time or any(tracks_asynchronously(t.sink) for t in self.targets)

    def named(self, name: str, checkpoint: str, **changes: Any) -> Self:
        """This query, which has one sink, with another name; changes: fields of its sink."""
        target = replace(self.targets[0], sink=replace(self.sink, name=name, **changes))
        query = replace(self.query, name=name, sinks=(name,))
        return replace(self, query=query, targets=(target,), checkpoint=checkpoint)

    def keeping(self, mode: str) -> Program:
        """The part of the program after `result` that keeps the rows of each live table."""
        return tuple(
            live_rows(
                t.sink,
                t.rows.attr("schema"),
                mode,
                t.keys(mode),
                bool(t.sink.key) or t.shape.brings_changes,
                **_hidden(t.shape),
                **({"strict": True} if t.sink.owner or (self.becomes and t.sink.key) else {}),
            )
            for t in self.targets
            if t.sink.is_live and not t.sink.is_view
        )

    def writer(self, mode: str) -> Program:
        """The part of the program after `keeping` that starts the query."""
        result: Node = Var("result")
        alone = len(self.targets) == 1 and not self.targets[0].select and self.sink.connector != "table"
        if alone:
            result = connector(Name(self.sink.connector)).prepared(self.sink, result)
        writer = result.attr("writeStream").call("queryName", self.query.name)
        writer = writer.call("outputMode", mode)
        trigger = self.query.trigger or self.pace
        if trigger:
            writer = writer.call("trigger", **{_TRIGGERS[trigger.kind]: trigger.ends or trigger.interval})
        if self.checkpoint:  # else Spark's own, which ends with the query
            writer = writer.call("option", "checkpointLocation", self._place)
        if self.feeds_batches:
            pairs, steps = self._pairs()
            batch_writer = call("EachSink", *pairs).attr("write")
            return (*steps, Assign("query", writer.call("foreachBatch", batch_writer).call("start")))
        if self.sink.connector == "table":
            return (Assign("query", writer.call("toTable", self.sink.name)),)
        writer = connector(Name(self.sink.connector)).write_stream(self.sink, writer)
        return (Assign("query", writer.call("start")),)

    @property
    def _place(self) -> str | Node:
        return self.query.checkpoint or call("checkpoint", self.query.name)

    def passing_over(self, mode: str) -> Program:
        """The program that moves a new checkpoint to the current end of the input, for FROM NOW.

        The query runs once without the rows of its streams: Spark then commits their offsets and initializes
        the state. This works for every source and reads no rows.
        """
        own = {variable(s.name) for s in self.reads.streams if s.connector}
        steps = (Assign(s.name, s.node.call("where", "false")) if s.name in own else s for s in self.program)
        writer = Var("result").attr("writeStream").call("format", "noop").call("outputMode", mode)
        writer = writer.call("trigger", once=True).call("option", "checkpointLocation", self._place)
        return (*steps, Assign("query", writer.call("start")))

    def _pairs(self) -> tuple[list[list[Node | None]], Program]:
        """For each sink, the function that selects its rows and the one that writes them; and the steps that
        define the writing functions.
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
class Refresh(Run):
    """A live table that is computed from live tables: the program, which reads one snapshot of these, is
    run again after their micro-batches. It has no streaming query, and no checkpoint.

    stages: the streaming queries of live tables that are its own, where the console has split a query over
    streams; each has the start position of the whole.
    """

    stages: tuple[Run, ...] = ()

    def applied(self, catalog: Catalog) -> Catalog:
        if self.transient or self.exists(catalog):
            return catalog
        return super().applied(self.with_stages(catalog))

    def with_stages(self, catalog: Catalog) -> Catalog:
        """The catalog with its stages."""
        return catalog.having(*(s.query for s in self.stages), *(s.sink for s in self.stages))

    def keeping(self, mode: str) -> Program:
        return (live_rows(self.sink, Var("result").attr("schema"), mode, None, False),)

    def writer(self, mode: str) -> Program:
        rows = Var(rows_variable(self.sink.name))
        return (Assign("", rows.call("take", call("to_arrow", Var("result")), 0)),)


@dataclass(frozen=True)
class Again:
    """A query to start again: its plan, or the error that prevents it."""

    query: Query
    run: Run | None = None
    why: StreamsqlError | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Start(Plan):
    """START QUERY; an error of one query does not affect the others."""

    queries: tuple[Again, ...]

    @property
    def fault(self) -> StreamsqlError | None:
        return next((again.why for again in self.queries if again.why), None)


@dataclass(frozen=True)
class Flush(Plan):
    """FLUSH QUERY. run: as START QUERY plans it; ranges: the seconds that event time must pass the newest
    row so that all windows, sessions and time ranges end.
    """

    run: Run
    ranges: float


@dataclass(frozen=True)
class Explain(Plan):
    """mode: see statements/explain.py; plan: the plan to explain."""

    mode: str
    plan: Plan


def live_rows(
    sink: Sink, schema: Node, mode: str, keys: tuple[str, ...] | None = None, *more: object, **hidden: object
) -> Assign:
    """The step that begins to keep the rows of a live table. keys: the columns for whose values it keeps one
    row each, None for all rows; more, hidden: further arguments of LiveRows.
    """
    arguments = (schema, mode, keys, sink.retain, *more)
    return Assign(rows_variable(sink.name), call("LiveRows", *arguments, **hidden))


def _hidden(shape: Shape) -> dict[str, object]:
    """What LiveRows is told of hidden columns."""
    hidden: dict[str, object] = {"hidden": list(shape.hidden)} if shape.hidden else {}
    return hidden | ({"kept": IN_RESULT} if shape.has_flag else {})


_TRIGGERS = {"available_now": "availableNow", "once": "once", "every": "processingTime",
             "continuous": "continuous", "real_time": "realTime"}  # fmt: skip
"""Spark's word for each kind of trigger."""
