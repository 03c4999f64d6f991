"""What a connector is: a name, its options, and the PySpark calls that read and write with it."""

from __future__ import annotations

import hashlib
import re
import textwrap
import urllib.parse
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from streamsql.calls import Call, Node, Var, lit
from streamsql.connectors.option_kinds import KINDS, OTHER_KINDS
from streamsql.definition_sql import column_sql
from streamsql.definitions import Sink, Stream, is_staged, promoted_name
from streamsql.errors import NameFault, Note, RuleFault, SyntaxFault, did_you_mean
from streamsql.language.statements.base import Column, Name, Option, Watermark
from streamsql.language.tokens import refers

ALL_MODES = ("append", "update", "complete")
# The kinds of trigger that run micro-batches, which every source and sink takes.
MICRO_BATCH = frozenset({"default", "every", "once", "available_now"})
TRIGGERS = ("default", "every", "available_now", "once", "continuous", "real_time")
HERE = "the folder of the script"
"""The default of an option that CREATE replaces by the folder of its script."""


@dataclass(frozen=True)
class OptionSpec:
    """One option. kind: one of option_kinds.KINDS or OTHER_KINDS, or text; secret: never shown.

    choices: all values that it can have beside those of its kind, where they are few and known; others are
    those that the pattern `others` describes. cased: whether Spark tells capitals from small letters there.
    """

    name: str
    help: str
    kind: str = "text"
    required: bool = False
    default: str = ""
    secret: bool = False
    choices: tuple[str, ...] = ()
    others: str = ""
    cased: bool = False

    def takes(self, value: str) -> bool:
        """Whether a value is one of the choices, or of the kind."""
        folded = value if self.cased else value.casefold()
        choices = self.choices if self.cased else tuple(c.casefold() for c in self.choices)
        if folded in choices or bool(self.others and re.fullmatch(self.others, value)):
            return True
        return KINDS[self.kind].takes(value) if self.kind in KINDS else not choices

    @property
    def values(self) -> tuple[str, ...]:
        """The values to offer: the choices, true and false, or at least the default."""
        if self.kind == "boolean":
            return ("true", "false")
        return self.choices or ((self.default,) if self.default and self.default != HERE else ())


def option_table(table: str) -> tuple[OptionSpec, ...]:
    """The options of a table, whose rows are `name: values = default -- help`, with further lines indented.
    values: a kind, or choices, with commas between them, behind `required`, `secret` or `cased`.
    """
    specs = []
    for row in re.split(r"\n(?! )", textwrap.dedent(table).strip()):
        head, _, help = re.sub(r"\n +", " ", row).partition(" -- ")
        declared, _, default = head.partition(" = ")
        name, _, values = declared.partition(": ")
        words = values.split(", ")
        kind = next((word for word in words if word in KINDS or word in OTHER_KINDS), "text")
        choices = tuple(word for word in words if word not in ("", kind, "required", "secret", "cased"))
        required, secret, cased = "required" in words, "secret" in words, "cased" in words
        specs.append(OptionSpec(name, help, kind, required, default, secret, choices, cased=cased))
    return tuple(specs)


ASYNC_PROGRESS = "asyncProgressTrackingEnabled"
ASYNC_INTERVAL = "asyncProgressTrackingCheckpointIntervalMs"
PROGRESS_OPTIONS = option_table(f"""
    {ASYNC_PROGRESS}: boolean = false -- record the progress of a stateless query beside its micro-batches,
        not before and after each
    {ASYNC_INTERVAL}: number of milliseconds = 1000 -- minimum time between two such records
""")
"""Of the sinks that support it (Spark guide, "Asynchronous Progress Tracking"), which are told of it when the
query starts.
"""

_LONGEST_FILE_NAME = 160
"""File systems allow 255; the console and Spark append to it."""


def file_name(name: str) -> str:
    """A name as one part of a path; a quoted name may hold anything, `../x` too. A long one is cut, and told
    from others by its digest. Never empty: that would be the folder of all.
    """
    written = urllib.parse.quote(name.casefold(), safe="").replace(".", "%2E")
    if len(written) > _LONGEST_FILE_NAME:
        digest = hashlib.sha256(name.casefold().encode()).hexdigest()[:32]
        return f"{written[: _LONGEST_FILE_NAME - 34]}%-{digest}"
    return written or "%"


@dataclass(frozen=True)
class Places:
    """Folders of the console (texts, so that planning needs no files). scratch: for what ends with the
    console, where that must not lie in folder.
    """

    folder: str
    scratch: str = ""

    def query(self, query: str) -> str:
        """The folder of a query, with its generations (runtime/workspace/generations.py). A staged change is
        a generation of what it changes.
        """
        return f"{self.folder}/queries/{file_name(promoted_name(query))}"

    def generation(self, query: str) -> str:
        """The link to the generation in use, or to the one that is staged."""
        return f"{self.query(query)}/{'staged' if is_staged(query) else 'current'}"

    def checkpoint(self, query: str) -> str:
        """The checkpoint in the generation in use."""
        return f"{self.generation(query)}/checkpoint"

    def transient(self, query: str) -> str:
        """The checkpoint of a query that lives as long as its statement: in its only generation."""
        return f"{self.scratch or self.folder}/queries/{file_name(query)}/1/checkpoint"

    def rows(self, table: str, query: str) -> str:
        """The rows of a live table that a query writes, in the generation in use."""
        return f"{self.generation(query)}/rows/{file_name(promoted_name(table))}"

    def written(self, query: str) -> str:
        """What a query over live tables has written, in the generation in use."""
        return f"{self.generation(query)}/written"

    def values(self, stream: str) -> str:
        return f"{self.folder}/streams/{file_name(promoted_name(stream))}"


def schema_text(columns: Iterable[Column]) -> str:
    return ", ".join(column_sql(c) for c in columns)


class Connector:
    """Base of all connectors. A subclass says what it can do by overriding.

    reads / writes: the options of CREATE STREAM / CREATE SINK; None when it cannot.
    modes: output modes that the sink takes. needs_columns: a stream must declare them.
    fixed_columns: the columns when none may be declared.
    infers_columns: they may be left out and are read from what is there at CREATE.
    triggers, sink_triggers: the kinds of trigger that the source and the sink take (Spark guide, "Triggers").
    path_option: the option that names a folder. code_hint: how the Python code is written that a
    module.name option names. open_options: options beside the declared ones are passed on as they
    are; open_prefix: so are those that begin with it. takes_key: a sink may have a KEY. line_formats: what
    a FORMAT can say of the lines of files. keeps_log:
    Spark's own streaming writer keeps a log of the files in the sink's folder. packages: by name, or by Maven
    coordinates, what it may need that Spark has not; by default the one of its own name. once_by_batch_id:
    a micro-batch that batch_writer writes again is there once. not_known: a property of its streams or sinks,
    "read" or "write", and what only Spark or its format knows of it. received: the console itself receives
    what its streams read, and keeps it in their folders. offset_options: the options between whose offsets
    `at_rest` reads, as JSON, where the offsets of the stream are read again by them. no_types: the types, by
    their first word, that Spark does not read in this format, neither from files nor in messages.
    """

    name = ""
    help = ""
    reads: tuple[OptionSpec, ...] | None = None
    writes: tuple[OptionSpec, ...] | None = None
    modes: tuple[str, ...] = ALL_MODES
    triggers: frozenset[str] = MICRO_BATCH
    sink_triggers: frozenset[str] = MICRO_BATCH
    needs_columns = False
    infers_columns = False
    fixed_columns: tuple[Column, ...] = ()
    formats: tuple[str, ...] = ()
    line_formats: tuple[str, ...] = ()
    path_option = ""
    code_hint = ""
    open_options = False
    takes_key = False
    keeps_log = False
    once_by_batch_id = False
    packages: tuple[str, ...] = ()
    open_prefix = ""
    not_known: tuple[tuple[str, str, str], ...] = ()
    received = False
    offset_options: tuple[str, str] | None = None
    no_types: frozenset[str] = frozenset()

    def format_of(self, stream: Stream) -> str:
        """The format of a stream's messages; empty when the connector has no formats."""
        return stream.format or ("text" if self.formats else "")

    def rate_option(self, stream: Stream) -> str:
        """The option that limits how many files or messages a micro-batch reads; "" if there is none."""
        return ""

    def beginning_at(self, stream: Stream, moment: datetime) -> Stream | str:
        """The stream of the rows from a moment on; or why its source cannot begin there."""
        return f"the source {self.name} does not take a moment to begin at"

    def metadata(self, stream: Stream) -> tuple[Column, ...]:
        """The metadata columns of its messages; `SELECT *` omits them."""
        return ()

    def notes_of(self, stream: Stream) -> tuple[Note, ...]:
        """Notes for the analyst about a new stream."""
        return ()

    def servers(self, entry: Stream | Sink) -> tuple[tuple[str, int], ...]:
        """Hosts and ports one of which must take connections before a query can start."""
        return ()

    def schema_servers(self, entry: Stream | Sink) -> tuple[tuple[str, int], ...]:
        """The same of the schema registry that it needs."""
        return ()

    def stream_options(self, columns: tuple[Column, ...]) -> tuple[OptionSpec, ...]:
        """The options that a stream with these columns may be given."""
        return self.reads or ()

    def columns(self, stream: Stream) -> tuple[Column, ...]:
        """The columns of a stream that declares none."""
        return self.fixed_columns

    def source(self, stream: Stream, places: Places) -> Node:
        """The calls that give a streaming DataFrame with the declared columns."""
        raise NotImplementedError

    def event_time(self, stream: Stream) -> Watermark | None:
        """The watermark that a program gives to this DataFrame."""
        return stream.watermark

    def before_watermark(self, stream: Stream, frame: Node) -> Node:
        """The calls on the DataFrame, with its event time, that come before its watermark."""
        return frame

    def after_watermark(self, stream: Stream, frame: Node) -> Node:
        """The calls on the DataFrame that follow its watermark."""
        return frame

    def at_rest(self, stream: Stream, places: Places) -> Node | None:
        """The same for the existing data, as a static DataFrame; None where rows can only be read as they
        come.
        """
        return None

    not_read_back = ""
    """Why the rows of its sinks cannot be read back."""

    def read_back(self, sink: Sink) -> Node | None:
        """The calls that give what its sink holds as a static DataFrame: rows, or messages; None where it
        cannot be read back, or is read by its format.
        """
        return None

    def messages(self, sink: Sink) -> Node | None:
        """The function that turns rows into what `read_back` gives; None where these are rows."""
        return None

    def brokers(self, stream: Stream) -> tuple[dict[str, str], tuple[str, ...]] | None:
        """The settings of Kafka's client and the topics that must be there, of a stream of Kafka's: they
        are asked first where Spark would wait for long.
        """
        return None

    def records(self, stream: Stream) -> Node | None:
        """The calls that give a static DataFrame with each record as text, in its first column, where
        columns are told from texts; fields of the folders' names may follow.
        """
        return None

    def infer(self, stream: Stream) -> Node | None:
        """The calls that give a static DataFrame whose schema is the stream's, if that can be had."""
        return None

    def infer_times(self, stream: Stream) -> Node | None:
        """The same with times told from texts, where that is not what `infer` does already."""
        return None

    def prepared(self, sink: Sink, frame: Node) -> Node:
        """The calls that convert a query's result to the rows that the sink takes."""
        return frame

    def write_stream(self, sink: Sink, writer: Node) -> Node:
        """Calls on a DataStreamWriter that make it write to the sink."""
        function = self.batch_writer(sink)
        assert function is not None, f"{self.name} overrides write_stream or batch_writer"
        return writer.call("foreachBatch", function)

    @property
    def writes_batches(self) -> bool:
        """Whether it can be one of several sinks."""
        return type(self).batch_writer is not Connector.batch_writer

    def batch_writer(self, sink: Sink) -> Node | None:
        """The function (batch, batch_id) that writes a micro-batch, if any. It must be
        idempotent: a batch_id that is retried (after a failure, with the same rows) changes nothing.
        """
        return None

    def changes_writer(self, sink: Sink) -> Node | None:
        """The function (changes, version) that writes the changes of a result, rows with a column _op. None
        if the sink cannot take them.
        """
        return self.batch_writer(sink)

    def keeps_in_step(self, sink: Sink) -> bool:
        """Whether changes are applied to the rows of the sink, instead of being added to them."""
        return False

    def delivery(self, sink: Sink) -> str:
        """The delivery guarantee: the effect of a micro-batch that is retried after a failure."""
        return "exactly once"

    def modes_of(self, sink: Sink) -> tuple[str, ...]:
        """The output modes that a sink takes."""
        return self.modes

    def shows_newest(self, sink: Sink) -> bool:
        """Whether the sink shows the newest row of each group, so that update says more than append."""
        return False

    def driver(self, sink: Sink) -> str:
        """A class that Spark's JVM must have for the sink, beside those of known packages."""
        return ""

    def check_sink(self, sink: Sink, options: dict[str, Option], key: tuple[Name, ...], at: Name) -> None:
        """Rules of this connector beyond kinds and names; raises a placed error. at: its name."""

    def check_code(self, code: object, purpose: str) -> str:
        """What is wrong with the Python object that a module.name option names; empty when it will do.

        purpose: "read" or "write".
        """
        return ""

    def write_batch(self, sink: Sink, frame: Node) -> Node | None:
        """The calls that write a static DataFrame to the sink, if it can."""
        return None

    def check_stream(self, stream: Stream, options: dict[str, Option], at: Name) -> None:
        """Rules of this connector beyond kinds and names; raises a placed error. at: its name."""


def with_options(node: Node, options: Iterable[tuple[str, str]], skip: Iterable[str] = ()) -> Node:
    """node.option(key, value) for each option that is not in skip."""
    skipped = {s.casefold() for s in skip}
    for key, value in options:
        if key.casefold() not in skipped:
            given = Call(Var("filled"), (lit(value),)) if refers(value) else value
            node = node.call("option", key, given)
    return node


def read(format: str) -> Node:
    return Var("spark").attr("read").call("format", format)


def read_stream(format: str) -> Node:
    return Var("spark").attr("readStream").call("format", format)


def tracks_asynchronously(sink: Sink) -> bool:
    """Whether the progress of a query into the sink is to be recorded beside its micro-batches."""
    return sink.meant == sink.connector and sink.option(ASYNC_PROGRESS).casefold() == "true"


def filled_in(
    specs: tuple[OptionSpec, ...], options: tuple[Option, ...], here: str
) -> tuple[tuple[str, str], ...]:
    """Options as a sink or stream stores them: those given, and those that default to the script's folder."""
    given = {o.key.value.casefold() for o in options}
    missing = [s.name for s in specs if s.default == HERE and s.name.casefold() not in given]
    return (*((o.key.value, o.value.value) for o in options), *((n, here) for n in missing if here))


def conflict(option: Option, fact: str, hint: str = "", detail: str = "") -> RuleFault:
    """The error for an option that does not go with the others."""
    return RuleFault(fact, detail=detail, hint=hint, span=option.key.span, code="OPTION_CONFLICT")


def missing(at: Name, fact: str, hint: str, detail: str = "") -> RuleFault:
    """The error for an option that is not given. at: the connector, or the option that needs it."""
    return RuleFault(fact, detail=detail, hint=hint, span=at.span, code="MISSING_OPTION")


def check_options(
    connector: Connector, specs: tuple[OptionSpec, ...], options: tuple[Option, ...], span_of: Name
) -> None:
    """Raise a placed error for an option that is unknown, misspelt, of the wrong kind or missing.

    Spark itself ignores unknown options in silence. span_of: where a missing option is reported.
    """
    specs_by_name = {s.name.casefold(): s for s in specs}
    for option in options:
        spec = specs_by_name.get(option.key.value.casefold())
        prefix = connector.open_prefix
        if spec is None and (
            connector.open_options or (prefix and option.key.value.casefold().startswith(prefix))
        ):
            continue
        if spec is None:
            names = [s.name for s in specs]
            raise NameFault(
                f"{connector.name} has no option {option.key.value}",
                hint=_format_clause(connector, option)
                or did_you_mean(option.key.value, names)
                or f"DESCRIBE CONNECTOR {connector.name}; lists them",
                span=option.key.span,
                code="UNKNOWN_OPTION",
            )
        _check_value(connector, spec, option)
    _check_required(connector, specs, options, span_of)


def _format_clause(connector: Connector, option: Option) -> str:
    """A hint for the format as an option, as Flink and ksqlDB have it."""
    formats = connector.formats
    if not formats or option.key.value.casefold() not in ("format", "value.format", "value_format"):
        return ""
    wanted = option.value.value.casefold()
    return f"USING {connector.name} FORMAT {wanted if wanted in formats else formats[0]} OPTIONS (…)"


def _check_value(connector: Connector, spec: OptionSpec, option: Option) -> None:
    """Raise a placed error for a value that an option does not take."""
    if refers(option.value.value) and spec.name == connector.path_option:
        raise RuleFault(
            f"${{env:…}} and ${{file:…}} are for secret options only, and {spec.name} is not secret",
            hint="streamsql -D name=value, and ${name}",
            span=option.value.span,
            code="BAD_OPTION_VALUE",
        )
    check_value(spec, option.value)


def check_value(spec: OptionSpec, value: Name) -> None:
    """Raise SyntaxFault for a value that is not of the kind of its option."""
    if not spec.takes(value.value):
        article = "an" if spec.kind[0] in "aeiou" else "a"
        *most, last = [*spec.choices, *([f"{article} {spec.kind}"] if spec.kind in KINDS else [])]
        kinds = f"{', '.join(most)} or {last}" if most else last
        hint = KINDS[spec.kind].hint(value.value) if spec.kind in KINDS else ""
        raise SyntaxFault(
            f"option {spec.name} takes {kinds}, not '{value}'",
            detail="" if spec.choices else spec.help,
            hint=did_you_mean(value.value, spec.choices) or hint,
            span=value.span,
            code="BAD_OPTION_VALUE",
        )


def _check_required(
    connector: Connector, specs: tuple[OptionSpec, ...], options: tuple[Option, ...], span_of: Name
) -> None:
    """Raise an error for a required option that is not given."""
    given = {o.key.value.casefold() for o in options}
    for spec in specs:
        if spec.required and spec.name.casefold() not in given:
            fact = f"{connector.name} needs the option {spec.name}"
            raise missing(span_of, fact, f"OPTIONS ({spec.name} '…')", spec.help)
