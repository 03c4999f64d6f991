"""What statements define: streams, sinks (live tables among them), queries and functions.

All are immutable, and give the statement that creates them.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from functools import cached_property

from streamsql.definition_sql import (
    clauses_sql,
    column_sql,
    columns_sql,
    comment_sql,
    options_sql,
    watermark_sql,
)
from streamsql.language.redaction import redact
from streamsql.language.statements.base import Column, Restart, Trigger, Watermark
from streamsql.language.tokens import quote, quote_name
from streamsql.secrets import redact_text

DEFAULT_RETAIN = 1_000_000
PAYLOAD_FORMATS = frozenset({"json", "csv", "avro", "protobuf", "debezium_json"})
"""The formats of messages whose payload holds several columns, and may be malformed."""
ROW_FILES = frozenset({"csv", "json", "xml"})
"""The connectors of files whose rows are read from text, and may be malformed."""
REJECTED = "malformed"
"""NAME$malformed is the stream of the messages, or rows of files, of NAME that cannot be read."""


HISTORY = "history"
"""NAME$history_… is the stream of the rows that BACKFILL of the live table NAME has read."""

_STAGED = re.compile(r"\$staged(?=$|\$)", re.IGNORECASE)
_BEFORE = "$before"


def staged_name(table: str) -> str:
    """The name of the live table that a staged change of a live table builds."""
    return f"{table}$staged"


def promoted_name(name: str) -> str:
    """The name that a live table or a stage of a staged change has once it is promoted; others stay."""
    return _STAGED.sub("", name, count=1)


def before_name(name: str) -> str:
    """The name of what stands for an entry as it is, or was, before a change: of a stream, the definition
    that PROMOTE has replaced; of an INSERT, a live table of the rows that its query writes now.
    """
    return f"{name}{_BEFORE}"


def is_before(name: str) -> bool:
    """Whether a name is `before_name`, or that of the live table or query of it."""
    return promoted_name(name).casefold().endswith(_BEFORE)


def is_staged(name: str) -> bool:
    """Whether a name is that of a live table, a stage, or a stream, of a staged change."""
    return _STAGED.search(name) is not None


def is_aside(name: str) -> bool:
    """Whether a name is that of the definition of a stream, view or function that is not in use: staged, or
    replaced.
    """
    return name.casefold().endswith((staged_name(""), _BEFORE))


def in_use_name(aside: str) -> str:
    """The name of the stream, view or function of which `is_aside` names another definition."""
    return aside.rpartition("$")[0]


PROMOTED = "PROMOTED"


@dataclass(frozen=True)
class Member:
    """One of a set of staged changes. kind: stream, view, function, live_table or query; generation: "" while
    it is staged; once the set was promoted, or rolled back, the number of the one in use since then, and
    PROMOTED of the first three; new: of a live table, whether the set creates it.
    """

    kind: str
    name: str
    generation: str = ""
    new: bool = False

    @property
    def is_definition(self) -> bool:
        """Whether it is a stream, view or function, which has no generations."""
        return self.kind in ("stream", "view", "function")

    def is_staged(self, name: str) -> bool:
        """Whether it is the one of that name, and is not promoted."""
        return self.name.casefold() == name.casefold() and not self.generation

    def sql(self) -> str:
        generation = f" GENERATION {self.generation}" if self.generation else ""
        if self.is_definition and self.generation:
            generation = f" {PROMOTED}"
        head = f"NEW {self.kind}" if self.new else self.kind
        return f"{head.replace('_', ' ').upper()} {quote_name(self.name)}{generation}"


@dataclass(frozen=True)
class Change:
    """A set of staged changes, which are promoted together."""

    name: str
    members: tuple[Member, ...] = ()

    def sql(self) -> str:
        """The statement that makes this set."""
        return f"CREATE CHANGE {quote_name(self.name)} OF {', '.join(m.sql() for m in self.members)}"

    def with_member(self, new: Member) -> Change:
        """The set with a member, in the place of the one of its name."""
        names = [m.name.casefold() for m in self.members]
        if new.name.casefold() not in names:
            return replace(self, members=(*self.members, new))
        at = names.index(new.name.casefold())
        return replace(self, members=(*self.members[:at], new, *self.members[at + 1 :]))


@dataclass(frozen=True)
class Stream:
    """Something to read. options: as written; query: the text of CREATE STREAM … AS, then connector is "".

    inferred: whether the columns were read from the files at CREATE and not declared. malformed: what
    becomes of messages that cannot be read: "" or fail, skip, or into (malformed_sink); rejected: of
    the stream of those, NAME$malformed, the columns that they lack. metadata: the fields of its messages
    that a program reads; counted: whether the program counts those that cannot be read, timed: and the event
    times with them; batched: whether it reads them in micro-batches, not by CONTINUOUS or REAL TIME; key: the
    columns that identify a row of which it brings the changes. stands_for: in a test, the stream in whose
    place this one is given rows.
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
    timed: bool = False
    batched: bool = True
    key: tuple[str, ...] = ()
    stands_for: Stream | None = None

    @property
    def may_be_malformed(self) -> bool:
        """Whether it reads texts or bytes as columns, which may fail."""
        return self.format in PAYLOAD_FORMATS or (self.stands_for or self).connector in ROW_FILES

    @property
    def is_of_changes(self) -> bool:
        """Whether each of its records is a change of a row, which its key identifies."""
        return self.format == "debezium_json"

    def option(self, key: str, default: str = "") -> str:
        return _option(self.options, key, default)

    def sql(self) -> str:
        """The statement that makes this stream, without its secrets."""
        head = f"CREATE STREAM {quote_name(self.name)}"
        watermark_clause = watermark_sql(self.watermark)
        if self.query:
            return " ".join(p for p in (head, watermark_clause, "AS", redact(self.query)) if p)
        lines = [head + columns_sql(self.columns), f"USING {self.connector}"]
        if self.format:
            lines.append(f"FORMAT {self.format}")
        if self.key:
            lines.append(f"KEY ({', '.join(map(quote_name, self.key))})")
        into = f"INTO {quote_name(self.malformed_sink)}" if self.malformed_sink else self.malformed.upper()
        malformed = f"ON MALFORMED {into}" if into else ""
        parts = (options_sql(self.options), malformed, watermark_clause, comment_sql(self.comment))
        lines += [p for p in parts if p]
        return "\n  ".join(lines)


@dataclass(frozen=True)
class Original:
    """What a sink of a test, which keeps its rows in memory, takes over from the one in whose place it is:
    connector, output modes, whether it shows the newest row of each group, whether it takes changes of a
    result, and whether they are applied to its rows; envelopes: whether it gets them in Debezium's envelope.
    """

    connector: str
    modes: tuple[str, ...]
    shows_newest: bool = False
    keeps_in_step: bool = False
    takes_changes: bool = True
    envelopes: bool = False


ON_SERVER = Original("memory", ("append", "complete"))
"""What a live table stands for whose rows Spark's memory sink keeps, as a view of a Spark Connect session."""


@dataclass(frozen=True)
class Sink:
    """Something to write to. A sink USING memory is a live table, unless it stands_for another one in a
    test.
    """

    name: str
    connector: str
    format: str = ""
    columns: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    retain: int = DEFAULT_RETAIN
    comment: str = ""
    owner: str = ""
    stands_for: Original | None = None

    @property
    def is_live(self) -> bool:
        return self.connector == "memory"

    @property
    def meant(self) -> str:
        """Its connector; in a test, that of the sink in whose place it is."""
        return self.stands_for.connector if self.stands_for else self.connector

    @property
    def is_view(self) -> bool:
        """Whether it is a live table whose rows are a view of a Spark Connect session."""
        return self.stands_for == ON_SERVER

    @property
    def keeps_groups(self) -> bool:
        """Whether it has one row of each group in output mode update, also without a KEY."""
        return self.is_live and self.stands_for is None

    def option(self, key: str, default: str = "") -> str:
        return _option(self.options, key, default)

    def sql(self) -> str:
        """The statement that makes this sink, without its secrets."""
        lines = [
            f"CREATE SINK {quote_name(self.name)}" + columns_sql(self.columns),
            f"USING {self.connector}",
        ]
        if self.format:
            lines.append(f"FORMAT {self.format}")
        if self.key:
            lines.append(f"KEY ({', '.join(map(quote_name, self.key))})")
        if self.partitioned_by:
            lines.append(f"PARTITIONED BY ({', '.join(map(quote_name, self.partitioned_by))})")
        lines += [p for p in (options_sql(self.options), comment_sql(self.comment)) if p]
        if self.is_live and self.retain != DEFAULT_RETAIN:
            lines.append(f"RETAIN {self.retain} ROWS")
        return "\n  ".join(lines)


@dataclass(frozen=True)
class Backfill:
    """BACKFILL of a live table. stream: whose rows before `until` the static query gives; select: the SELECT
    as written, without the rows of that query; history: the name of the stream of these rows.
    """

    stream: str
    query: str
    until: str
    select: str
    history: str

    def sql(self) -> str:
        """The clause, without its secrets."""
        source = f"BACKFILL {quote_name(self.stream)} FROM ({redact(self.query)})"
        return f"{source} UNTIL TIMESTAMP {quote(self.until)}"


def history_name(table: str, stream: str, query: str, until: str) -> str:
    """The name of the stream of the history of a live table: another BACKFILL has another history."""
    text = "\0".join((stream.casefold(), redact(query), until))
    return f"{table}${HISTORY}_{hashlib.sha256(text.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class Query:
    """The definition of a streaming query. mode "" means: chosen at each start.

    sinks: all that it writes into; text: the SELECT as written, or (together) the INSERTs of a
    statement set, each with its `;`; checkpoint "": the console's own folder; columns: those of its sink
    that INSERT names; inputs: the live tables that it reads, where it reads no stream: its live table is
    computed again after their micro-batches; owner: the query of which it is a stage; late: the sink of
    the rows that its watermark drops; retain: of an INSERT, the rows that each of its stages may keep, 0 for
    the default; backfill: of a live table; its text then reads the history, too; since: of a live table, the
    moment at which its streams begin, in ISO 8601 with Z, "" for all rows; into: of the staged change of an
    INSERT, whose live table has its rows, the sinks that it will write into.
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
    columns: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    owner: str = ""
    late: str = ""
    retain: int = 0
    backfill: Backfill | None = None
    since: str = ""
    into: tuple[str, ...] = ()

    @property
    def sink(self) -> str:
        """All its sinks, for a person."""
        return ", ".join(self.sinks)

    @cached_property
    def named(self) -> frozenset[tuple[str, str]]:
        """What it names, each as its kind (sink, input, late, owner) and its folded name."""
        kinds = {"sink": self.sinks, "input": self.inputs, "late": (self.late,), "owner": (self.owner,)}
        return frozenset((kind, name.casefold()) for kind, names in kinds.items() for name in names if name)

    def writes_into(self, sink: str) -> bool:
        return any(s == sink or s.casefold() == sink.casefold() for s in self.sinks)

    def sql(self, sink: Sink | None = None) -> str:
        """The statement that starts this query, without its secrets; sink is needed for a live table's key
        and limit.
        """
        clauses = clauses_sql(self.mode, self.trigger, self.restart, self.late)
        if self.live_table and sink and not self.into:
            if sink.key:
                clauses.append(f"KEY ({', '.join(map(quote_name, sink.key))})")
            if sink.retain != DEFAULT_RETAIN:
                clauses.append(f"RETAIN {sink.retain} ROWS")
            if sink.comment:
                clauses.append(comment_sql(sink.comment))
            if self.since:
                clauses.insert(0, f"FROM TIMESTAMP {quote(self.since)}")
            if self.backfill:
                clauses.insert(0, self.backfill.sql())
            head = [f"CREATE LIVE TABLE {quote_name(self.name)}", *clauses]
            select = self.backfill.select if self.backfill else self.text
            return "\n  ".join([*head, "AS " + redact(select)])
        if self.checkpoint:
            clauses.append(f"CHECKPOINT {quote(redact_text(self.checkpoint))}")
        if self.retain:
            clauses.append(f"RETAIN {self.retain} ROWS")
        named = [f"AS QUERY {quote_name(promoted_name(self.name))}", *clauses]
        if self.together:
            return "\n  ".join(["EXECUTE STATEMENT SET", *named]) + f"\nBEGIN\n  {redact(self.text)}\nEND"
        into = "INSERT INTO " + ", ".join(map(quote_name, self.into or self.sinks))
        if self.columns:
            into += f" ({', '.join(map(quote_name, self.columns))})"
        into += " STAGED" if self.into else ""
        return "\n  ".join([into, *named, redact(self.text)])


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
    """A table or view of Spark's own, made in this session. streaming: a view over streams; live: the live
    tables that a temporary view reads, directly or through views; text: of a view, the statement that creates
    it.
    """

    name: str
    streaming: bool = False
    live: tuple[str, ...] = ()
    text: str = ""

    @property
    def follows(self) -> bool:
        """Whether it is a view over streams or live tables."""
        return self.streaming or bool(self.live)


@dataclass(frozen=True)
class SqlFunction:
    """A function written in SQL, made in this session. text: the statement that creates it; live: as of a
    Table.
    """

    name: str
    text: str
    live: tuple[str, ...] = ()

    @property
    def follows(self) -> bool:
        """Whether it reads live tables."""
        return bool(self.live)


OfSpark = Table | SqlFunction
"""What Spark has by the text of a statement: a view or a function in SQL. (A table has no text.)"""
Aside = Stream | OfSpark | Function
"""What has a definition that is not in use, see `is_aside`."""


def kind_of(entry: Aside) -> str:
    """stream, view or function."""
    kinds = {Stream: "stream", Table: "view", Function: "function", SqlFunction: "function"}
    return kinds[type(entry)]


def text_of(entry: Aside) -> str:
    """The statement that defines an entry, without its secrets."""
    return entry.text if isinstance(entry, OfSpark) else entry.sql()


def _option(options: tuple[tuple[str, str], ...], key: str, default: str) -> str:
    return next((v for k, v in options if k.casefold() == key.casefold()), default)
