"""What the console knows by name: streams, sinks (live tables among them) and queries.

Entries are frozen; the catalog is the one place that changes. Lookups ignore case, as Spark does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from streamsql.errors import NameFault, did_you_mean
from streamsql.language.statements.base import Column, Fragment, Name, Restart, Trigger, Watermark
from streamsql.language.tokens import PLAIN_NAME, quote, quote_name

DEFAULT_RETAIN = 1_000_000
LINE = 80
"""Longer lists of columns are written with a line for each."""
PAYLOAD_FORMATS = frozenset({"json", "csv", "avro", "protobuf"})
"""The formats of messages whose payload holds several columns, and may be malformed."""
ROW_FILES = frozenset({"csv", "json", "xml"})
"""The connectors of files whose rows are read from text, and may be malformed."""
REJECTED = "malformed"
"""NAME$malformed is the stream of the messages, or rows of files, of NAME that cannot be read."""


@dataclass(frozen=True)
class Stream:
    """Something to read. options: as written; query: the text of CREATE STREAM … AS, then connector is "".

    inferred: whether the columns were read from the files at CREATE and not declared. malformed: what
    becomes of messages that cannot be read: "" or fail, skip, or into (malformed_sink); rejected: of
    the stream of those, NAME$malformed, the columns that they lack. metadata: the fields of its messages
    that a program reads; counted: whether the program counts those that cannot be read.
    """

    name: str
    connector: str = ""
    format: str = ""
    columns: tuple[Column, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    watermark: Watermark | None = None
    comment: str = ""
    query: str = ""
    inferred: bool = False
    malformed: str = ""
    malformed_sink: str = ""
    rejected: tuple[Column, ...] = ()
    metadata: tuple[str, ...] = ()
    counted: bool = True

    @property
    def may_be_malformed(self) -> bool:
        """Whether it reads texts or bytes as columns, which may fail."""
        return self.format in PAYLOAD_FORMATS or self.connector in ROW_FILES

    def option(self, key: str, default: str = "") -> str:
        return _option(self.options, key, default)

    def sql(self, *, redact: frozenset[str] = frozenset()) -> str:
        """The statement that makes this stream; the values of options named in redact are hidden."""
        head = f"CREATE STREAM {quote_name(self.name)}"
        mark = _watermark_sql(self.watermark)
        if self.query:
            return " ".join(p for p in (head, mark, "AS", self.query) if p)
        lines = [head + _columns_sql(self.columns), f"USING {self.connector}"]
        if self.format:
            lines.append(f"FORMAT {self.format}")
        into = f"INTO {quote_name(self.malformed_sink)}" if self.malformed_sink else self.malformed.upper()
        malformed = f"ON MALFORMED {into}" if into else ""
        parts = (_options_sql(self.options, redact), malformed, mark, _comment_sql(self.comment))
        lines += [p for p in parts if p]
        return "\n  ".join(lines)


@dataclass(frozen=True)
class Sink:
    """Something to write to. A sink USING memory is a live table."""

    name: str
    connector: str
    format: str = ""
    columns: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    retain: int = DEFAULT_RETAIN
    comment: str = ""

    @property
    def is_live(self) -> bool:
        return self.connector == "memory"

    def option(self, key: str, default: str = "") -> str:
        return _option(self.options, key, default)

    def sql(self, *, redact: frozenset[str] = frozenset()) -> str:
        lines = [
            f"CREATE SINK {quote_name(self.name)}" + _columns_sql(self.columns),
            f"USING {self.connector}",
        ]
        if self.format:
            lines.append(f"FORMAT {self.format}")
        if self.key:
            lines.append(f"KEY ({', '.join(map(quote_name, self.key))})")
        if self.partitioned_by:
            lines.append(f"PARTITIONED BY ({', '.join(map(quote_name, self.partitioned_by))})")
        lines += [p for p in (_options_sql(self.options, redact), _comment_sql(self.comment)) if p]
        if self.is_live and self.retain != DEFAULT_RETAIN:
            lines.append(f"RETAIN {self.retain} ROWS")
        return "\n  ".join(lines)


@dataclass(frozen=True)
class Query:
    """The definition of a streaming query. mode "" means: chosen at each start.

    sinks: all that it writes into; text: the SELECT as written, or (together) the INSERTs of a
    statement set, each with its `;`; checkpoint "": the console's own folder.
    """

    name: str
    sinks: tuple[str, ...]
    text: str
    mode: str = ""
    trigger: Trigger | None = None
    checkpoint: str = ""
    live_table: bool = False
    together: bool = False
    restart: Restart | None = None

    @property
    def sink(self) -> str:
        """All its sinks, for a person."""
        return ", ".join(self.sinks)

    def writes_into(self, sink: str) -> bool:
        return sink.casefold() in {s.casefold() for s in self.sinks}

    def sql(self, sink: Sink | None = None) -> str:
        """The statement that starts this query; sink is needed for a live table's key and limit."""
        clauses = [f"OUTPUT MODE {self.mode.upper()}"] if self.mode else []
        if self.trigger:
            clauses.append(f"TRIGGER {self.trigger.sql()}")
        if self.restart:
            clauses.append(f"RESTART {self.restart.sql()}")
        if self.live_table and sink:
            if sink.key:
                clauses.append(f"KEY ({', '.join(map(quote_name, sink.key))})")
            if sink.retain != DEFAULT_RETAIN:
                clauses.append(f"RETAIN {sink.retain} ROWS")
            if sink.comment:
                clauses.append(_comment_sql(sink.comment))
            head = [f"CREATE LIVE TABLE {quote_name(self.name)}", *clauses]
            return "\n  ".join([*head, "AS " + self.text])
        if self.checkpoint:
            clauses.append(f"CHECKPOINT {quote(self.checkpoint)}")
        named = [f"AS QUERY {quote_name(self.name)}", *clauses]
        if self.together:
            return "\n  ".join(["EXECUTE STATEMENT SET", *named]) + f"\nBEGIN\n  {self.text}\nEND"
        into = "INSERT INTO " + ", ".join(map(quote_name, self.sinks))
        return "\n  ".join([into, *named, self.text])


@dataclass(frozen=True)
class Function:
    """A function written in Python, called by name in SQL.

    returns: the type of its value; columns: those of the table that it returns instead.
    kind: scalar, aggregate, table or processor; form: how it takes its rows (plain, batched, pandas or
    arrow); folder: where its module lies, empty for an installed one; modules: what is in that folder
    and loaded with it. These four are found out by looking at the module.
    """

    name: str
    module: str
    attribute: str
    returns: str = ""
    columns: tuple[Column, ...] = ()
    kind: str = "scalar"
    form: str = "plain"
    folder: str = ""
    modules: tuple[str, ...] = ()

    @property
    def schema(self) -> str:
        """What it returns, as Spark takes it: a type, or the columns of a table."""
        return self.returns or ", ".join(map(column_sql, self.columns))

    def sql(self) -> str:
        """The statement that makes this function."""
        returns = self.returns or f"TABLE ({self.schema})"
        target = quote(f"{self.module}.{self.attribute}")
        return f"CREATE FUNCTION {quote_name(self.name)} AS {target} LANGUAGE PYTHON RETURNS {returns}"


@dataclass(frozen=True)
class Table:
    """A table or view of Spark's own, made in this session. streaming: a view over streams."""

    name: str
    streaming: bool = False


def _option(options: tuple[tuple[str, str], ...], key: str, default: str) -> str:
    return next((v for k, v in options if k.casefold() == key.casefold()), default)


def _columns_sql(columns: tuple[Column, ...]) -> str:
    if not columns:
        return ""
    listed = [column_sql(c) for c in columns]
    flat = ", ".join(listed)
    return f" ({flat})" if len(flat) <= LINE else " (\n    " + ",\n    ".join(listed) + "\n)"


def column_sql(column: Column) -> str:
    """One column as DDL, as CREATE and Spark's schema texts take it."""
    extra = ("" if column.nullable else " NOT NULL") + (
        f" COMMENT {quote(column.comment)}" if column.comment else ""
    )
    return f"{quote_name(column.name)} {column.type}{extra}"


def _options_sql(options: tuple[tuple[str, str], ...], redact: frozenset[str]) -> str:
    if not options:
        return ""
    shown = ((k, "***" if k.casefold() in redact else v) for k, v in options)
    return "OPTIONS (" + ", ".join(f"{_key_sql(k)} {quote(v)}" for k, v in shown) + ")"


def _key_sql(key: str) -> str:
    """The key of an option as it must be written: bare when its parts are plain words."""
    return key if all(map(PLAIN_NAME.match, key.split("."))) else quote(key)


def _watermark_sql(mark: Watermark | None) -> str:
    if mark is None:
        return ""
    computed = f"{mark.computed.text} AS " if mark.computed else ""
    return f"WITH WATERMARK {computed}{quote_name(mark.column.value)} DELAY '{mark.delay}'"


def _comment_sql(comment: str) -> str:
    return f"COMMENT {quote(comment)}" if comment else ""


Entry = TypeVar("Entry", Stream, Sink, Query, Function)


@dataclass
class Catalog:
    """All entries by folded name. tables: names of Spark's own tables and views made in this session."""

    streams: dict[str, Stream] = field(default_factory=dict)
    sinks: dict[str, Sink] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)

    def relation(self, name: str) -> Stream | Sink | None:
        """The stream or live table of that name, if there is one."""
        found: Stream | Sink | None = self.streams.get(name.casefold())
        if found is None:
            sink = self.sinks.get(name.casefold())
            found = sink if sink is not None and sink.is_live else None
        base, dollar, which = name.rpartition("$")
        if found is None and dollar and which.casefold() == REJECTED:
            stream = self.streams.get(base.casefold())
            if stream is not None and stream.may_be_malformed:
                found = replace(
                    stream,
                    name=f"{stream.name}${REJECTED}",
                    columns=(),
                    watermark=None,
                    malformed="",
                    malformed_sink="",
                    rejected=stream.columns,
                )
        return found

    def target(self, name: str) -> Stream | Sink | None:
        """The sink or stream that an INSERT into that name means, if there is one."""
        return self.sinks.get(name.casefold()) or self.streams.get(name.casefold())

    def relation_names(self) -> list[str]:
        live = [s.name for s in self.sinks.values() if s.is_live]
        return [s.name for s in self.streams.values()] + live + [t.name for t in self.tables.values()]

    def stream(self, name: Name) -> Stream:
        return _get(self.streams, name, "stream")

    def sink(self, name: Name) -> Sink:
        return _get(self.sinks, name, "sink")

    def live_table(self, name: Name) -> Sink:
        key = name.value.casefold()
        if key in self.streams:
            raise NameFault(
                f"{name} is a stream, not a live table",
                hint=f"SELECT * FROM {quote_name(name.value)};",
                span=name.span,
            )
        if key in self.queries and key not in self.sinks:
            sink = self.queries[key].sink
            raise NameFault(f"{name} is a query; it writes into {sink}", span=name.span)
        return _get({k: s for k, s in self.sinks.items() if s.is_live}, name, "live table")

    def named(self, name: Name | None) -> list[Query]:
        """The query of that name; all of them for None. Raises NameFault."""
        return [self.query(name)] if name else list(self.queries.values())

    def query(self, name: Name) -> Query:
        return _get(self.queries, name, "query")

    def queries_into(self, sink: str) -> list[Query]:
        """The queries that write into a sink."""
        return [q for q in self.queries.values() if q.writes_into(sink)]

    def function(self, name: Name) -> Function:
        return _get(self.functions, name, "function written in Python")

    def check_free(self, name: Name) -> None:
        """Raise NameFault when a stream, sink or live table of that name exists."""
        key = name.value.casefold()
        if key in self.streams:
            kind = "stream"
        elif key in self.sinks:
            kind = "live table" if self.sinks[key].is_live else "sink"
        else:
            return
        raise NameFault(
            f"there is already a {kind} {name.value}",
            hint=f"CREATE OR REPLACE …, or DROP {kind.upper()} {name.value};",
            span=name.span,
        )

    def copy(self) -> Catalog:
        return replace(
            self,
            streams=dict(self.streams),
            sinks=dict(self.sinks),
            queries=dict(self.queries),
            tables=dict(self.tables),
            functions=dict(self.functions),
        )


def _get(entries: dict[str, Entry], name: Name, kind: str) -> Entry:
    found = entries.get(name.value.casefold())
    if found is None:
        raise unknown(kind, name, (e.name for e in entries.values()))
    return found


def unknown(kind: str, name: Name, known: Iterable[str]) -> NameFault:
    """The error for a name that is not there, with the nearest one that is."""
    names = sorted(known)
    plural = {
        "query": "queries",
        "function written in Python": "functions written in Python",
    }.get(kind, kind + "s")
    hint = did_you_mean(name.value, names)
    if not hint:
        hint = f"{plural}: {', '.join(names[:8])}" if names else f"there are no {plural} yet"
    return NameFault(f"there is no {kind} {name.value}", hint=hint, span=name.span)


def fragment(text: str) -> Fragment:
    return Fragment(text)
