"""Streams, live tables and tables as variables of a program."""

from __future__ import annotations

import builtins
import keyword
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache, partial
from itertools import count
from typing import Any

from streamsql.calls import Assign, Node, Program, Var, expr
from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.connectors.memory import rows_variable
from streamsql.connectors.registry import connector
from streamsql.definitions import Function, OfSpark, Sink, Stream, Table, is_staged
from streamsql.errors import NameFault, Note, RuleFault, Span
from streamsql.language.query import Query, read_query
from streamsql.language.spark_definitions import columns_of_view, query_of_view
from streamsql.language.statements.base import Column, Name, Watermark
from streamsql.language.tokens import quote_name
from streamsql.language.tree_nodes import Call
from streamsql.plan.lowering.python_functions import called, registration
from streamsql.plan.lowering.shape import CHANGES, Op, Shape

# Names that programs use; Python's keywords and builtins are avoided as well.
RESERVED = frozenset(
    """spark result query checkpoint show_batch live_rows tempfile threading pa pc
    load load_module read_state flattened pivoted find data_source throw_away functools importlib os sys
    arguments parser modules""".split()
) | frozenset(dir(builtins))


@lru_cache(maxsize=4096)
def variable(name: str) -> str:
    """The Python variable for a name of the catalog, unique for each name."""
    text = name.casefold()
    if not text.isidentifier() or text.endswith("_") or unicodedata.normalize("NFKC", text) != text:
        plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in text)
        return f"t_{plain}_{zlib.crc32(text.encode('utf-8', 'replace')):x}"
    return (
        text + "_"
        if text in RESERVED or keyword.iskeyword(text) or text.endswith(("_rows", "_module"))
        else text
    )


def watermarked(
    frame: Node, watermark: Watermark | None, measured: Callable[[Node], Node] = lambda frame: frame
) -> Node:
    """frame with its watermark and, if necessary, its computed event-time column. measured: gives the calls
    between these.
    """
    if watermark is None:
        return frame
    if watermark.computed:
        frame = frame.call("withColumn", watermark.column.value, expr(watermark.computed.text))
    return measured(frame).call("withWatermark", watermark.column.value, watermark.delay)


def mentioned(query: Query, catalog: Catalog) -> frozenset[str]:
    """The case-folded words of a query and of the queries of the streams that it names."""
    words: set[str] = set()
    new = set(query.words)
    while new:
        words |= new
        streams = [s for s in map(catalog.streams.get, new) if s is not None]
        tables = [table for table in map(catalog.tables.get, new) if table is not None]
        views = [view for table in tables if (view := stream_of_view(table, catalog))]
        new = set[str]()
        for stream in (*streams, *views):
            watermark = stream.watermark
            if stream.query:
                new |= read_query(stream.query).words
            if watermark:
                new.add(watermark.column.value.casefold())
                new |= read_query(watermark.computed.text).words if watermark.computed else set()
        new -= words
    return frozenset(words)


def stream_of_view(table: Table, catalog: Catalog) -> Stream | None:
    """A temporary view over streams, and live tables, as a stream of its query; None for another table or
    view, or over what Spark looks up in the schema in which the view was created.
    """
    query = query_of_view(table.text) if table.streaming else None
    if query is None:
        return None
    text = table.text[query.start : query.end].strip()
    others = catalog.without("tables", table.name)  # --check may see views that read each other
    for relation in read_query(text).relations:
        over = others.tables.get(relation.name.casefold())
        if catalog.relation(relation.name) is None and (
            over is None or (over.streaming or not over.live) and stream_of_view(over, others) is None
        ):
            return None
    names = columns_of_view(table.text)
    if names:
        text = f"SELECT * FROM ({text}) AS {quote_name(table.name)} ({', '.join(names)})"
    return Stream(table.name, query=text)


def with_views_as_streams(catalog: Catalog) -> Catalog:
    """A catalog in which each view that is a `stream_of_view` is a stream."""
    views = [stream_of_view(table, catalog) for table in catalog.tables.values() if table.streaming]
    return catalog.having(*filter(None, views))


def read_by_spark_alone(text: str, name: str, span: Span, catalog: Catalog) -> RuleFault | None:
    """The refusal of a statement that needs to know what a query reads, if it reads streams through a view
    that is no `stream_of_view`. text, name: of the query; span: of the name in the statement.
    """
    for relation in read_query(text).relations:
        view = catalog.tables.get(relation.name.casefold())
        if view is not None and view.streaming and stream_of_view(view, catalog) is None:
            return RuleFault(
                f"{name} reads streams through the view {view.name}, which only Spark reads",
                detail="the view reads tables, too",
                hint=f"CREATE STREAM {quote_name(view.name + '_2')} AS …; with the query of the view, and"
                " read that",
                span=span,
                code="WRONG_KIND",
            )
    return None


def columns_of(stream: Stream) -> tuple[str, ...] | None:
    """The names of a stream's columns; None if they come from a query or are not known."""
    columns = stream.columns
    if not columns and stream.connector:
        columns = connector(Name(stream.connector)).columns(stream)
    names = [c.name for c in columns]
    if stream.watermark and stream.watermark.computed:
        names.append(stream.watermark.column.value)
    return tuple(names) if columns else None


def _all_columns(stream: Stream) -> tuple[Column, ...]:
    """The columns of a stream USING a connector, and the fields of its messages."""
    if not stream.connector:
        return stream.columns
    source = connector(Name(stream.connector))
    return (*(stream.columns or source.columns(stream)), *source.metadata(stream))


# The depth of streams over streams from which they are defined one by one.
_DEEP = 20


@dataclass(eq=False)
class Sources:
    """The sources of a program. Each is defined once, in the order of first use.

    lower: returns the calls and the shape of a query, such as that of a stream. counts: whether the program
    counts malformed messages. times: whether it counts event times with them. batched: whether it runs in
    micro-batches. changed_language: the settings of Spark for which queries are not taken apart.
    """

    catalog: Catalog
    places: Places
    lower: Callable[[str, Sources], tuple[Node, Shape]]
    _: KW_ONLY
    counts: bool = True
    times: bool = False
    batched: bool = True
    changed_language: tuple[str, ...] = ()
    program: list[Assign] = field(default_factory=list)
    # Whether an aggregate over no rows has no row: what is written of the result are its changes.
    of_changes: bool = False
    # The number of nested queries that are being lowered.
    depth: int = 0
    shapes: dict[str, Shape] = field(default_factory=dict)
    views: set[str] = field(default_factory=set)
    live: dict[str, Sink] = field(default_factory=dict)
    # The live tables, folded, that only give a stateful processor its first state.
    read_once: set[str] = field(default_factory=set)
    # By live table, folded: the columns that tell its rows apart, where that is asked for.
    keys_of_live: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    # The staged views and functions that Spark has, and all that these are staged with.
    staged: dict[str, OfSpark | Function] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    # The words of the queries: a message field is read only if a query names it.
    words: frozenset[str] = frozenset()
    # Calls of stateful processors, by their replacement in the text.
    calls: dict[str, tuple[Node, Shape]] = field(default_factory=dict)
    # The states of queries that are read; their names are among the calls.
    states: list[Span] = field(default_factory=list)
    # Notes for the analyst; cautions apply only to queries that keep running.
    notes: list[Note] = field(default_factory=list)
    cautions: list[Note] = field(default_factory=list)
    # Whether the query to be lowered next keeps the keys of its groups, also those that are selected
    # (hides_all); whether a column was hidden.
    keeps_keys: bool = False
    hides_all: bool = False
    keeps_hidden: bool = False

    def state(self) -> dict[str, Any]:
        """A snapshot for `restore`."""
        names = ("program", "shapes", "views", "live", "notes", "cautions", "functions")
        return {name: copy(getattr(self, name)) for name in names}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a snapshot of `state`."""
        for name, value in state.items():
            setattr(self, name, copy(value))

    def note(self, note: Note) -> None:
        """Add a note, once."""
        if note not in self.notes:
            self.notes.append(note)

    @property
    def bases(self) -> list[Stream]:
        """The streams that are read from a source, without those that are queries."""
        return [stream for stream in self.streams.values() if stream.connector]

    def type_of(self, name: str) -> str:
        """The type of the column with that case-folded name in one of the streams; "" if none has it."""
        columns = [c for s in self.streams.values() for c in _all_columns(s)]
        column_type = next((c.type.upper() for c in columns if c.name.casefold() == name), "")
        return "TIMESTAMP" if column_type.startswith("TIMESTAMP") else column_type

    def stream(self, stream: Stream, *, keeps_keys: bool = False) -> tuple[Node, Shape]:
        """The variable that holds a stream, defined on first use. keeps_keys: see hidden_keys.py."""
        name = variable(stream.name)
        if name not in self.shapes:
            self.keeps_keys = keeps_keys and bool(stream.query)
            self.shapes[name] = self._define(stream, name)
            self.streams[name] = stream
        return Var(name), self.shapes[name]

    def define_deep_streams(self, query: Query) -> None:
        """Define a long chain of streams over streams from the bottom up, to limit the recursion depth."""
        order: dict[str, Stream] = {}
        level = [s for r in query.relations if (s := self.catalog.streams.get(r.name.casefold()))]
        levels = 0
        while level and levels <= len(self.catalog.streams):
            levels += 1
            below: list[Stream] = []
            for stream in level:
                # The last position counts: lower streams are defined first.
                order.pop(stream.name, None)
                order[stream.name] = stream
                relations = read_query(stream.query).relations if stream.query else ()
                below += [s for r in relations if (s := self.catalog.streams.get(r.name.casefold()))]
            level = list({s.name: s for s in below}.values())
        if levels > _DEEP:
            for stream in reversed(order.values()):
                self.stream(stream)

    def _define(self, stream: Stream, name: str) -> Shape:
        watermark = stream.watermark
        event_time = frozenset({watermark.column.value.casefold()}) if watermark else frozenset()
        if stream.query:
            # Its notes were shown when it was created.
            notes, cautions = list(self.notes), list(self.cautions)
            node, shape = self.lower(stream.query, self)
            self.notes, self.cautions = notes, cautions
            self.program.append(Assign(name, watermarked(node, watermark)))
            shape = replace(shape, event_time=shape.event_time | event_time)
            if watermark and watermark.computed and shape.columns is not None:
                shape = replace(shape, columns=(*shape.columns, watermark.column.value))
        else:
            source = connector(Name(stream.connector))
            wanted = tuple(f.name for f in source.metadata(stream) if f.name.casefold() in self.words)
            asked = replace(
                stream, metadata=wanted, counted=self.counts, timed=self.times, batched=self.batched
            )
            frame = source.source(asked, self.places)
            measured = partial(source.before_watermark, asked)
            frame = watermarked(frame, source.event_time(stream), measured)
            frame = source.after_watermark(stream, frame)
            self.program.append(Assign(name, frame))
            shape = Shape(True, columns_of(stream), event_time, fields=wanted)
            if stream.is_of_changes and not stream.rejected:
                shape = replace(shape.then(Op(CHANGES)), keys=stream.key, has_flag=True)
        return shape.then(Op("watermark")) if watermark else shape

    def at_rest(self, stream: Stream) -> Node | None:
        """The rows that the source of a stream has now; None if they are only read as they come."""
        source = connector(Name(stream.connector))
        fields = tuple(f.name for f in source.metadata(stream) if f.name.casefold() in self.words)
        return source.at_rest(replace(stream, metadata=fields), self.places)

    def program_at_rest(self, limit: int | None) -> Program | Stream:
        """The program over the rows that each source has now, at most so many of each; instead of it a stream
        whose rows are only read as they come.
        """
        bases = {variable(s.name): s for s in self.streams.values() if s.connector}
        steps = []
        for step in self.program:
            base = bases.get(step.name)
            if base is not None:
                rows = self.at_rest(base)
                if rows is None:
                    return base
                rows = rows if limit is None else rows.call("limit", limit)
                step = Assign(step.name, watermarked(rows, base.watermark))
            steps.append(step)
        return tuple(steps)

    def live_table(self, sink: Sink, limit: int | None) -> Node:
        """The current rows of a live table, at most limit of them if it is given."""
        self.live[sink.name.casefold()] = sink
        self.read_once.discard(sink.name.casefold())
        if sink.is_view:
            return Var("spark").call("table", quote_name(sink.name))
        rows = Var(rows_variable(sink.name))
        arguments = () if limit is None else (limit,)
        return rows.call("frame", Var("spark"), *arguments)

    def relation(
        self, name: str, limit: int | None = None, written: str = "", *, keeps_keys: bool = False
    ) -> tuple[Node, Shape]:
        """What FROM name reads: a stream, a live table, or a table of Spark.

        written: the name in its backticks, for Spark, which reads it again. keeps_keys: as in `stream`.
        """
        if name.casefold() in self.calls:
            return self.calls[name.casefold()]
        entry = self.catalog.relation(name)
        if isinstance(entry, Stream):
            return self.stream(entry, keeps_keys=keeps_keys)
        if isinstance(entry, Sink):
            return self.live_table(entry, limit), Shape(keys=self.keys_of_live.get(entry.name.casefold()))
        table = self._spark_table(name)
        gone = [live for live in table.live if self.catalog.relation(live) is None]
        if gone:
            raise NameFault(
                f"the view {table.name} reads the live table {gone[0]}, which does not exist any more",
                hint=f"CREATE LIVE TABLE {quote_name(gone[0])} AS …; or DROP VIEW {quote_name(table.name)};",
                code="UNKNOWN_LIVE_TABLE",
            )
        view = stream_of_view(table, self.catalog)
        if view is not None:
            return self.stream(view, keeps_keys=keeps_keys)
        streaming = table.streaming
        shape = Shape(streaming=True, complete=False) if streaming else Shape()
        return Var("spark").call("table", written or name), shape

    def _spark_table(self, name: str) -> Table:
        """A table or view of Spark, as far as it is known."""
        table = self.catalog.tables.get(name.casefold(), Table(name))
        if table.text and is_staged(table.name):
            self._note_staged(table)
        self._register_live(table)
        return table

    def _register_live(self, entry: OfSpark) -> None:
        """Register the live tables that a view or function reads: Spark reads its query anew, and in it the
        live tables of now.
        """
        for name in entry.live:
            sink = self.catalog.relation(name)
            if not isinstance(sink, Sink):
                continue
            node = self.live_table(sink, None)
            if not sink.is_view:
                self._register(name, node)

    def _note_staged(self, entry: OfSpark | Function) -> None:
        """Note that the program reads a staged view or function, with those that this one names."""
        if entry.name.casefold() in self.staged:
            return
        self.staged[entry.name.casefold()] = entry
        if isinstance(entry, Function):
            return
        query = read_query(entry.text)
        for name in (*(r.name for r in query.relations), *(c.name for c in query.calls)):
            other = self.catalog.staged_definition(name)
            if other is not None and not isinstance(other, Stream):
                self._note_staged(other)

    def free_variable(self, name: str) -> str:
        """A variable based on that name that no source uses."""
        base = variable(name)
        taken = {a.name for a in self.program}
        # Variables of relations are unique, so few names need to be checked.
        while base in taken or any(
            variable(n) == base and self.catalog.reads(n) for n in (name, base, base.removesuffix("_"))
        ):
            base += "_"
        return base

    def define(self, base: str, node: Node, shape: Shape) -> str:
        """Define a console relation as a variable of the program. Returns the unused name, based on this one,
        that replaces it in the query.
        """
        names = (base if n == 1 else f"{base}_{n}" for n in count(1))
        name = next(n for n in names if n.casefold() not in self.calls and not self.catalog.reads(n))
        of_name = self.free_variable(name)
        self.program.append(Assign(of_name, node))
        self.calls[name.casefold()] = Var(of_name), shape
        return name

    def register_functions(self, calls: Iterable[Call]) -> None:
        """Register with Spark the functions written in Python among these calls, and the live tables that
        functions in SQL read.
        """
        calls = tuple(calls)
        in_sql = (self.catalog.sql_functions.get(call.name) for call in calls)
        for entry in (function for function in in_sql if function is not None):
            self._register_live(entry)
            if is_staged(entry.name):
                self._note_staged(entry)
        for function, _ in called(calls, self.catalog):
            if function.name.casefold() not in self.functions:
                self.use(function)
                if function.kind != "processor":
                    self.program.append(registration(function))

    def use(self, function: Function) -> None:
        """Note that the program needs a function's module."""
        self.functions[function.name.casefold()] = function

    def register_views(self, query: Query, inside: Span | None = None, own: Mapping[str, str] = {}) -> bool:
        """Register each stream and live table that a query reads as a temporary view.

        inside: a part of the query, None for the whole; own: the replacements of console relations. Returns
        whether one of the relations, or a view among them, is a stream.
        """
        named = [r for r in query.own if r.name in own]
        names = [own[r.name] for r in named if inside is None or _within(r.span, inside)]
        names += [
            r.name
            for r in query.relations
            if (inside is None or _within(r.span, inside)) and not any(_within(r.span, o.span) for o in named)
        ]
        return self.register_names(names)

    def register_names(self, names: Iterable[str]) -> bool:
        """Like register_views, for relations given by name."""
        streaming = False
        for name in names:
            entry = self.catalog.relation(name)
            if entry is None and name.casefold() not in self.calls:
                streaming = self._spark_table(name).streaming or streaming
                continue
            if isinstance(entry, Sink) and entry.is_view:
                self.live[entry.name.casefold()] = entry
                continue
            name = entry.name if entry else name
            node, shape = self.relation(name)
            streaming = streaming or shape.streaming
            self._register(self.catalog.instead.get(name.casefold(), name), node)
        return streaming

    def _register(self, name: str, rows: Node) -> None:
        """Register rows as a temporary view, once."""
        if name.casefold() not in self.views:
            self.views.add(name.casefold())
            self.program.append(Assign("", rows.call("createOrReplaceTempView", quote_name(name))))


def _within(span: Span, outer: Span) -> bool:
    return outer.start <= span.start and span.end <= outer.end
