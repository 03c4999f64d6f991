"""The handlers of statements that differ on a Spark Connect server: they have no JVM to ask."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streamsql.calls import run, text_of
from streamsql.connectors.option_values import check_secrets
from streamsql.errors import EngineFault, Note, StreamsqlError
from streamsql.features.connect.server_queries import PATIENCE, Other, ServerQueries
from streamsql.features.connect.server_rows import ServerRows, ServerTables, follow
from streamsql.guard import informing
from streamsql.language.redaction import redact_any
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.explain import Explain
from streamsql.language.statements.live_table import DescribeLiveTable, ShowLiveTables
from streamsql.language.statements.query import AwaitQuery, ShowQueries, StartQuery, StopQuery
from streamsql.language.statements.select import Select
from streamsql.language.statements.watch import Watch
from streamsql.language.struct_types import in_capitals
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.results import Done, InfoRows, Result, Started, Text
from streamsql.runtime.engine.kept_tables import exists_before, is_table
from streamsql.runtime.engine.row_fetch import fetch_rows
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.engine.spark_errors import parse_fault, translate
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.create_drop import shown_columns
from streamsql.runtime.handlers.info_table import named_like, pairs_of, table, without_secrets
from streamsql.runtime.handlers.live_results import SELECT, STOPPED, limit_of, live_of, watch
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.spark_tables import check_table, check_table_of_query
from streamsql.runtime.program_source import program_text
from streamsql.runtime.queries.drain import abort_note
from streamsql.runtime.queries.run import BUSY, GOING_ON

_NUMBERS = itertools.count(1)


class ConnectHandlers:
    """server: the queries of the session; local: the handlers of a console with its own Spark."""

    def __init__(self, server: ServerQueries, plans_of: Answers, direct: Answers) -> None:
        self.server = server
        self.plans: Answers = {
            **plans_of,
            plans.Collect: self._collect,
            plans.Write: self._write,
            plans.Explain: self._explain,
            plans.DefineStream: self._define_stream,
            plans.Drop: self._drop,
            plans.Run: self._run,
            plans.Start: self._start_again,
        }
        self.direct: Answers = {kind: self._synced(answer) for kind, answer in direct.items()}
        self.direct[StopQuery] = self._stop
        self.direct[Watch] = self._watch
        self.direct[ShowLiveTables] = self._show_live_tables
        self.direct[DescribeLiveTable] = self._describe_live_table
        self.direct[ShowQueries] = self._show_queries(direct[ShowQueries])
        self.direct[AwaitQuery] = self._await

    def _synced(self, answer: Callable[..., Result]) -> Callable[..., Result]:
        """An answer of the console after a look at the server, where it is about queries."""

        def synced(parts: SessionParts, statement: Statement) -> Result:
            if statement.topic == "queries":
                self.server.sync(parts)
            return answer(parts, statement)

        return synced

    # ---- programs

    def _collect(self, parts: SessionParts, plan: plans.Collect, statement: Statement) -> Result:
        began = time.monotonic()
        existed = exists_before(parts.spark, plan.defines)
        frame = run(plan.program, parts.env(plan.program, plan.reads))
        if plan.defines.creates:
            written, streaming = plan.defines.written, plan.streaming
            if plan.defines.kind != "function":
                streaming = informing(lambda: bool(parts.spark.table(written).isStreaming), streaming)
            parts.define(plan.entry(streaming))
        if not is_table(statement):  # tables are the server's
            parts.temporary.remember(statement, plan.defines)
        if frame.isStreaming:
            raise EngineFault(
                "this query reads a stream that only Spark knows",
                hint="CREATE STREAM name AS SELECT … FROM STREAM table;  then SELECT from that",
                code="FOREIGN_STREAM",
            )
        if isinstance(statement, Select):
            failed = lambda error: translate(error, statement, parts.catalog.relation_names())  # noqa: E731
            return replace(fetch_rows(frame, parts.cancel, failed), seconds=time.monotonic() - began)
        rows = collect(frame)
        if not rows.columns:
            return Done(message=plan.defines.outcome(existed) if plan.defines.kind else "done")
        return replace(without_secrets(rows), seconds=time.monotonic() - began)

    def _write(self, parts: SessionParts, plan: plans.Write, statement: Statement) -> Result:
        check_secrets(plan.sinks, statement.text)
        run(plan.program, parts.env(plan.program, plan.reads))
        return Done(message=plan.message)

    def _explain(self, parts: SessionParts, plan: plans.Explain, statement: Statement) -> Result:
        shown = plan.plan
        assert isinstance(shown, (plans.Collect, plans.Write, plans.Run)) and isinstance(statement, Explain)
        if plan.mode == "pyspark":
            text = program_text(shown, parts.context(), parts.settings, lambda program: {})
            return Text(text=text)
        of_query = isinstance(shown, plans.Run) or isinstance(statement.body, Select)
        if text := "" if of_query else _plan_of_text(parts, shown, plan.mode):
            return Text(text=redact_any(text).rstrip("\n"))
        program = tuple(s for s in shown.program if s.name or not isinstance(shown, plans.Write))
        env = parts.env(program, shown.reads)
        run(program, env)
        mode = plan.mode or "simple"
        return Text(text=env["result"]._explain_string(mode=_MODES.get(mode, mode)))

    # ---- definitions

    def _define_stream(self, parts: SessionParts, plan: plans.DefineStream, statement: Statement) -> Result:
        entry, notes = plan.stream, tuple[Note, ...]()
        if plan.exists(parts.catalog):
            return Done(message=f"stream {entry.name} already exists")
        if plan.infer is not None:
            event_time = plan.stream.watermark
            frame = plan.infer_times if event_time and plan.infer_times else plan.infer
            columns = shown_columns(parts, replace(plan, infer=frame), statement)
            entry = replace(entry, columns=columns, inferred=True)
            listed = ", ".join(f"{c.name} {c.type}" for c in columns)
            text = f"columns of {entry.name}, as inferred and recorded: {listed}"
            notes = (Note("COLUMNS_INFERRED", text),)
        parts.update(replace(plan, stream=entry).applied)
        return Done(notes, f"stream {entry.name} created")

    def _drop(self, parts: SessionParts, plan: plans.Drop, statement: Statement) -> Result:
        if not plan.entries:
            none = f"is no {plan.kind} {plan.name}" if plan.name else f"are no {plan.kind}"
            return Done(message=f"there {none}")
        self.server.sync(parts)
        for field, name in plan.entries:
            running = parts.queries.all.get(name.casefold())
            if field == "queries" and running is not None:
                self.server.stop(running, parts.cancel)
                self.server.forget(parts, name)
            sink = parts.catalog.sinks.get(name.casefold())
            if field == "sinks" and sink is not None and sink.is_view:
                parts.spark.catalog.dropTempView(quote_name(name))
        parts.current.update(plan.applied)
        return Done(message=f"{plan.kind} {plan.name} dropped")

    def _show_live_tables(self, parts: SessionParts, statement: ShowLiveTables) -> Result:
        self.server.sync(parts)
        names = [s.name for s in parts.catalog.sinks.values() if s.is_live]
        rows = [(name, _counted(parts, name), _status(parts, name)) for name in names]
        return named_like(table(("name", "rows", "query"), rows, (1,), "no live tables"), statement.pattern)

    def _describe_live_table(self, parts: SessionParts, statement: DescribeLiveTable) -> Result:
        self.server.sync(parts)
        name = parts.catalog.live_table(statement.name).name
        fields = parts.spark.table(quote_name(name)).schema.fields
        pairs: list[tuple[str, Any]] = [
            (f"column {f.name}", in_capitals(f.dataType.simpleString())) for f in fields
        ]
        return pairs_of([*pairs, ("rows", _counted(parts, name)), ("query", _status(parts, name))])

    def _watch(self, parts: SessionParts, statement: Watch) -> Result:
        self.server.sync(parts)
        return watch(statement, parts, ServerTables(parts))

    # ---- queries

    def _run(self, parts: SessionParts, plan: plans.Run, statement: Statement) -> Result:
        if plan.exists(parts.catalog):
            return Done(message=f"live table {plan.sink.name} already exists")
        check_secrets((*plan.reads.streams, plan.sink), plan.query.text)
        if plan.transient:
            return (
                self._follow(parts, plan) if parts.config.interactive else self._rows_of_stream(parts, plan)
            )
        check_table(parts.spark, parts.catalog, plan.sink, statement)
        old = parts.queries.all.get(plan.query.name.casefold()) if plan.define else None
        if old is not None:
            self.server.stop(old, parts.cancel, 0)
        running = self.server.start(parts, plan)
        parts.current.update(replace(plan, skip_existing=False).applied)
        what = f"live table {plan.sink.name}" if plan.define else f"query {plan.query.name}"
        return Started(running.mode_notes, (plan.query.name,), f"{what} started", not plan.sink.is_live)

    def _rows_of_stream(self, parts: SessionParts, plan: plans.Run) -> Result:
        """The rows of a SELECT over a stream after all available input."""
        began, name = time.monotonic(), f"select_{next(_NUMBERS)}_{os.getpid()}"
        running = self.server.start(parts, plan.named(name, ""))
        try:
            parts.queries.wait([name], parts.cancel, idle=plan.query.trigger is None, timeout=None)
            rows = collect(parts.spark.table(name))
        finally:
            parts.queries.forget(name)
            running.handle.stop()
            parts.spark.catalog.dropTempView(name)
        return replace(rows, seconds=time.monotonic() - began)

    def _follow(self, parts: SessionParts, plan: plans.Run) -> Result:
        """A SELECT over a stream at a prompt: its query runs while the result is shown."""
        name = f"select_{next(_NUMBERS)}_{os.getpid()}"
        plan = plan.named(name, "")
        running = self.server.start(parts, replace(plan, query=replace(plan.query, trigger=None)))
        rows: Any = ServerRows(parts.spark.table(name), running)  # read as LiveRows are
        ends = follow(rows, lambda: running)
        live = live_of(SELECT, rows, lambda: running, parts)

        def close() -> None:
            ends()
            live.close()

        def leave() -> str:
            over = running.over
            parts.queries.forget(name)
            running.handle.stop()
            parts.spark.catalog.dropTempView(name)
            return "" if over else STOPPED

        enough = limit_of(plan) if running.mode == "append" else 0
        return replace(live, notes=running.mode_notes, close=close, said=leave, enough=enough)

    def _start_again(self, parts: SessionParts, plan: plans.Start, statement: StartQuery) -> Result:
        self.server.sync(parts)
        started, notes, faults = list[str](), tuple[Note, ...](), list[StreamsqlError]()
        for again in plan.queries:
            running = parts.queries.all.get(again.query.name.casefold())
            if running and running.status() in BUSY:
                continue
            try:
                if again.run is None:
                    raise again.why or AssertionError(again.query.name)
                check_secrets((*again.run.reads.streams, again.run.sink), again.query.text)
                place = statement.name.span if statement.name else None
                check_table_of_query(parts.spark, again.query.name, again.run.sink, place)
                notes += self.server.start(parts, again.run).mode_notes
                started.append(again.query.name)
            except Exception as error:
                if parts.cancel.cancelled:
                    raise
                faults.append(translate(error, None, parts.catalog.relation_names()))
        if faults:
            raise faults[0]
        if not started:
            return Done(message="already running" if parts.catalog.queries else "there are no queries")
        lasting = any(not parts.catalog.query(Name(n)).live_table for n in started)
        return Started(notes, tuple(started), f"started: {', '.join(started)}", lasting)

    def _stop(self, parts: SessionParts, statement: StopQuery) -> Result:
        self.server.sync(parts)
        other = self.server.others.get(statement.name.value.casefold()) if statement.name else None
        if other is not None:
            other.handle.stop()
            return Done(message=f"stopped: {other.name}")
        limit = PATIENCE if statement.timeout is None else statement.timeout
        stopped, notes = list[str](), list[Note]()
        for query in parts.catalog.named(statement.name):
            running = parts.queries.all.get(query.name.casefold())
            if running is None or running.status() not in GOING_ON:
                continue
            stopped.append(query.name)
            if not self.server.stop(running, parts.cancel, limit):
                notes += abort_note(running)
        if statement.name and not stopped:
            return Done(message=f"query {statement.name} was not running")
        return Done(tuple(notes), f"stopped: {', '.join(stopped)}" if stopped else "no query was running")

    def _show_queries(self, answer: Callable[..., Result]) -> Callable[..., Result]:
        """SHOW QUERIES, with the queries that other programs have started in the session."""

        def shown(parts: SessionParts, statement: ShowQueries) -> Result:
            self.server.sync(parts)
            rows = answer(parts, statement)
            assert isinstance(rows, InfoRows)
            more = [_row_of(other, rows.columns) for other in self.server.others.values()]
            return named_like(replace(rows, rows=[*rows.rows, *more]), statement.pattern)

        return shown

    def _await(self, parts: SessionParts, statement: AwaitQuery) -> Result:
        """AWAIT QUERY of queries that run; the others have ended."""
        self.server.sync(parts)
        names = [q.name.casefold() for q in parts.catalog.named(statement.name)]
        names = [n for n in names if n in parts.queries.all]
        parts.queries.wait(names, parts.cancel, idle=statement.idle, timeout=statement.timeout)
        return Done(message="idle" if statement.idle else "ended")


def _counted(parts: SessionParts, name: str) -> int | None:
    """The rows of a live table; None when it has no query yet in this session of the server."""
    exists = parts.spark.catalog.tableExists(name)
    return int(parts.spark.table(quote_name(name)).count()) if exists else None


def _status(parts: SessionParts, name: str) -> str:
    running = parts.queries.all.get(name.casefold())
    return running.status() if running else "stopped"


_MODES = {"logical": "extended"}
_NOT_PLANNED = "Error occurred during query planning:"
"""With this line, EXPLAIN of Spark answers for a statement that it cannot plan, and does not fail."""


def _plan_of_text(parts: SessionParts, plan: plans.Collect | plans.Write | plans.Run, mode: str) -> str:
    """The plan of a statement that is no query; "" for a program that hands Spark no such text. Raises
    EngineFault for a statement that Spark cannot plan.
    """
    written = text_of(plan.program)
    if not written:
        return ""
    run(plan.program[:-1], parts.env(plan.program, plan.reads))
    kind = _MODES.get(mode, mode).upper()
    text = "\n".join(row[0] for row in parts.spark.sql(f"EXPLAIN {kind} {written}").collect())
    if text.startswith(_NOT_PLANNED):
        raise parse_fault(text.removeprefix(_NOT_PLANNED).strip(), written)
    if mode != "logical":
        return text
    _, _, analyzed = text.partition("== Analyzed Logical Plan ==\n")
    return analyzed.partition("\n== ")[0] or text


def _row_of(other: Other, columns: tuple[str, ...]) -> tuple[Any, ...]:
    """The row of a query of which the console knows no more than the server tells."""
    last = other.handle.lastProgress
    values = {
        "name": other.name,
        "status": "running",
        "batch": last.batchId if last else None,
        "rows in": last.numInputRows if last else None,
        "sink": last.sink.description if last else "",
        "trigger": "of another program",
    }
    return tuple(values.get(column) for column in columns)
