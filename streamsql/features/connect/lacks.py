"""What a console on a Spark Connect server does not do: a table that planning checks, and HELP connect shows.

A Connect session has neither the driver's JVM nor a callback into this process. What needs one of them is
refused here, before Spark is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from streamsql.calls import Function as Defined
from streamsql.calls import Program, variables_in
from streamsql.connectors.base import file_name
from streamsql.definitions import Sink, Stream
from streamsql.errors import RuleFault, Span
from streamsql.language.spark_definitions import definition_of
from streamsql.language.statements import live_table, query, stream
from streamsql.language.statements.base import QueryClauses, Statement
from streamsql.language.statements.spark import Spark
from streamsql.plan.basic_plans import Plan
from streamsql.plan.changes_plan import Changes
from streamsql.plan.context import Server
from streamsql.plan.plans import (
    Collect,
    DefineSink,
    DefineStream,
    Refresh,
    Run,
    Write,
)


@dataclass(frozen=True)
class Lack:
    """What a Connect session does not do, why, and what to type instead."""

    what: str
    why: str
    hint: str


READS = ("csv", "json", "parquet", "orc", "text", "xml", "avro", "kafka", "socket", "rate",
         "rate-micro-batch", "datagen")  # fmt: skip
WRITES = ("csv", "json", "parquet", "orc", "text", "xml", "avro", "kafka", "noop", "table")
_TEMPORARY = ("noop", "memory")
"""The sinks whose queries may have a temporary checkpoint."""

LACKS = {
    "refresh": Lack(
        "a live table, or a query, over live tables",
        "this process would compute it after each micro-batch",
        "CREATE TEMPORARY VIEW name AS SELECT … over the live table: it is always up to date",
    ),
    "mixed": Lack(
        "a live table over live tables and streams",
        "each row of a stream would be used once, with the rows that the live tables have at that moment",
        "CREATE LIVE TABLE name AS SELECT * FROM the stream; then CREATE TEMPORARY VIEW … AS SELECT … over "
        "live tables only: it is always up to date; or write OUTPUT MODE APPEND: then each row is used once",
    ),
    "live limits": Lack(
        "KEY of a live table, and RETAIN",
        "the memory sink keeps each row that is written into it",
        "omit the clause",
    ),
    "stages": Lack(
        "SHOW STAGES", "nothing runs in stages there", "SHOW QUERIES"
    ),
    "staged changes": Lack(
        "STAGED, BEGIN CHANGE, SHOW STAGED, PREVIEW CHANGE, COMPARE, PROMOTE, ROLLBACK, SHOW GENERATIONS",
        "the rows of a live table are a view of the server's, which keeps one generation",
        "CREATE LIVE TABLE under another name, and a SELECT over both",
    ),
    "values": Lack(
        "streams USING values or python, sinks USING memory, console, jdbc, foreach, foreach_batch or python",
        "their rows pass through this process",
        "a stream of files or of kafka; CREATE LIVE TABLE; a sink of files or of kafka",
    ),
    "several": Lack(
        "several sinks, EXECUTE STATEMENT SET",
        "a function of this process would write each micro-batch",
        "an INSERT for each sink",
    ),
    "functions": Lack(
        "functions and processors in Python",
        "the server does not have their modules",
        "a function of Spark, or a console without --remote",
    ),
    "clauses": Lack(
        "RESTART, ON LATE INTO, ON MALFORMED INTO, FROM NOW, FROM BEGINNING, TRIGGER REAL TIME",
        "the console would have to stay, or to change files and settings of the server",
        "omit the clause; another CHECKPOINT begins anew",
    ),
    "drain": Lack(
        "STOP QUERY … WITH DRAIN", "it starts the query a second time", "AWAIT QUERY … IDLE; then STOP"
    ),
    "registry": Lack(
        "messages in avro or protobuf with a schema, or from a schema registry",
        "this process would convert them",
        "FORMAT json, csv, text or raw",
    ),
    "state": Lack(
        "STATE OF QUERY, LATE ROWS OF QUERY, DESCRIBE CHECKPOINT, SHOW BATCHES",
        "they read the checkpoint through the JVM of the driver",
        "CREATE TEMPORARY VIEW s USING statestore OPTIONS (path '/the/checkpoint'); SELECT * FROM s;",
    ),
    "event time": Lack(
        "WHY, VERIFY QUERY, FLUSH QUERY, ADVANCE STREAM, SHOW LATENESS",
        "they read plans and checkpoints through the JVM of the driver",
        "DESCRIBE QUERY shows the watermark and the late rows",
    ),
    "preview": Lack(
        "PREVIEW, SHOW TOPICS, COPY FROM, COPY TO, SUMMARIZE",
        "they read files and brokers from this machine",
        "SELECT * FROM csv.`/folder/of/the/server` LIMIT 10",
    ),
    "restarts": Lack(
        "ALTER STREAM, ALTER … RENAME TO",
        "which queries can go on is judged through the JVM of the driver",
        "CREATE OR REPLACE STREAM with the columns; then STOP QUERY and START QUERY",
    ),
    "export": Lack(
        "EXPORT QUERY",
        "its program is for spark-submit",
        "a console without --remote; SPARK_REMOTE=sc://HOST:15002 runs its program on the server",
    ),
    "detach": Lack(
        "DETACH, SHOW SERVER, STOP SERVER",
        "the queries are those of the Connect server, and go on by themselves",
        "EXIT",
    ),
}  # fmt: skip

_IN_PROGRAMS = frozenset({"spark", "F", "result", "query", "checkpoint", "filled", "to_messages", "pivoted"})
"""The variables of a program that a Connect session can give it."""


def refusal(kind: str, span: Span | None, subject: str = "") -> RuleFault:
    """The fault of what a Connect session does not do. subject: instead of the words of the table."""
    lack = LACKS[kind]
    return RuleFault(
        f"{subject or lack.what}: not on a Spark Connect server",
        detail=lack.why,
        hint=lack.hint,
        span=span,
        code="NOT_ON_CONNECT",
    )


class ConnectServer(Server):
    """A Spark Connect server."""

    def check_statement(self, statement: Statement) -> None:
        """Raise RuleFault for a statement, or a clause of it, that a Connect session does not take."""
        if statement.not_on_connect:
            raise refusal(statement.not_on_connect, statement.span)
        if isinstance(statement, query.StopQuery) and statement.drain:
            raise refusal("drain", statement.span)
        begins = getattr(statement, "begins", "")
        if begins in ("now", "beginning"):
            raise refusal("clauses", statement.span, f"FROM {begins.upper()}")
        if isinstance(statement, QueryClauses):
            if statement.restart:
                raise refusal("clauses", statement.span, "RESTART")
            if statement.late:
                raise refusal("clauses", statement.late.span, "ON LATE INTO")
            if statement.trigger and statement.trigger.kind == "real_time":
                raise refusal("clauses", statement.trigger.span, "TRIGGER REAL TIME")
        of_console = (live_table.CreateLiveTable, stream.CreateStream)
        of_spark = isinstance(statement, Spark) and definition_of(statement.text).staged
        if of_spark or (isinstance(statement, of_console) and statement.staged):
            raise refusal("staged changes", statement.span)
        key = isinstance(statement, live_table.CreateLiveTable) and statement.key
        if key or getattr(statement, "retain", None) is not None:
            raise refusal("live limits", statement.span)

    def check_plan(self, plan: Plan, statement: Statement) -> Plan:
        """The plan with the place of its checkpoint. Raises RuleFault for one that a Connect session cannot
        execute.
        """
        span = statement.span
        if isinstance(plan, DefineStream):
            _check_stream(plan.stream, span)
        elif isinstance(plan, DefineSink):
            _check_sink(plan.sink, span, defines=True)
        elif isinstance(plan, Run):
            return self.check_run(plan, span)
        elif isinstance(plan, (Collect, Write)):
            _check_program(plan.program, span)
        return plan

    def check_run(self, plan: Run, span: Span) -> Run:
        """The plan of a query, as `check_plan` gives it; also that of START QUERY."""
        if isinstance(plan, (Refresh, Changes)):
            raise refusal("refresh", span)
        if plan.feeds_batches:
            raise refusal("several", span)
        _check_sink(plan.sink, span)
        for read in plan.reads.streams:
            _check_stream(read, span)
        if plan.late:
            raise refusal("clauses", span, "ON LATE INTO")
        _check_program(plan.program + plan.writer(plan.choices[0].mode), span)
        # Live tables try complete first: the other modes of the memory sink keep every version of a row, or
        # show a group only when its window has closed.
        is_live = plan.sink.is_live
        choices = tuple(sorted(plan.choices, key=lambda choice: is_live and choice.mode != "complete"))
        if choices[0].mode != plan.choices[0].mode:
            plan = replace(plan, notes=tuple(n for n in plan.notes if n.code != "FIRST_WINDOW"))
        plan = replace(plan, otherwise=None, choices=choices)
        if plan.query.checkpoint:
            _check_path(plan.query.checkpoint, "the checkpoint", span)
            return plan
        if plan.sink.is_live or (plan.sink.connector in _TEMPORARY and not self.checkpoints):
            return replace(plan, checkpoint="")
        if not self.checkpoints:
            raise RuleFault(
                f"the query {plan.query.name} needs a folder for its checkpoint",
                detail="the folder of this console is not on the server",
                hint="CHECKPOINT '/folder/of/the/server', or SET spark.sql.streaming.checkpointLocation = "
                "'/folder/of/the/server';",
                span=span,
                code="CHECKPOINT_NEEDED",
            )
        place = f"{self.checkpoints.rstrip('/')}/{file_name(plan.query.name)}"
        return replace(plan, query=replace(plan.query, checkpoint=place), checkpoint=place)

    def check_followed(self, span: Span) -> None:
        raise refusal("mixed", span)


def _check_stream(entry: Stream, span: Span) -> None:
    if entry.connector and entry.connector not in READS:
        raise refusal("values", span, f"a stream USING {entry.connector}")
    if entry.malformed_sink:
        raise refusal("clauses", span, "ON MALFORMED INTO")
    _check_path(entry.option("path"), f"the path of {entry.name}", span)


def _check_sink(entry: Sink, span: Span, *, defines: bool = False) -> None:
    if entry.is_live and (defines or not entry.is_view):
        raise refusal("values", span, "a sink USING memory")
    if not entry.is_live and entry.connector not in WRITES:
        raise refusal("values", span, f"a sink USING {entry.connector}")
    _check_path(entry.option("path"), f"the path of {entry.name}", span)


def _check_path(path: str, what: str, span: Span) -> None:
    """Raise RuleFault for a relative path: this process does not know the working folder of the server."""
    if path and not path.startswith("/") and ":" not in path:
        raise RuleFault(
            f"{what} is relative: {path}",
            detail="it is a path of the server, whose working folder this console does not know",
            hint="a full path, such as '/data/in', 'hdfs://…' or 's3a://…'",
            span=span,
            code="RELATIVE_PATH",
        )


def _check_program(program: Program, span: Span) -> None:
    """Raise RuleFault for a program that calls Python of this process."""
    needs = variables_in(program) - _IN_PROGRAMS - set(_assigned(program))
    if needs & {"read_state", "LateRows", "LogFiles"}:
        raise refusal("state", span)
    if needs & {
        "SchemaRegistry",
        "avro_writer",
        "avro_schema",
        "protobuf_reader",
        "protobuf_writer",
        "envelopes",
    }:
        raise refusal("registry", span)
    if needs:
        raise refusal("functions", span)


def _assigned(program: Program) -> Iterable[str]:
    for step in program:
        yield step.name
        if isinstance(step.node, Defined):
            yield from step.node.parameters
            yield from _assigned(step.node.body)
