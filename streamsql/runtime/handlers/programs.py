"""Statements that run a program once: SELECT, writes, EXPLAIN, PREVIEW, SHOW TOPICS."""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from streamsql.calls import Assign, Attr, Node, Program, evaluate, links_of, run, text_of
from streamsql.connectors.option_values import in_full
from streamsql.definitions import Sink, Table, before_name, is_aside
from streamsql.errors import EngineFault, InputFault, Note, Source
from streamsql.guard import informing
from streamsql.language import reference
from streamsql.language.parser import parse
from streamsql.language.redaction import redact_any
from streamsql.language.script import split_script
from streamsql.language.spark_definitions import (
    added_file,
    altered_view,
    definition_of,
    renamed_to,
    target_of,
)
from streamsql.language.statements.base import Statement
from streamsql.language.statements.explain import Explain
from streamsql.language.statements.insert import Insert
from streamsql.language.statements.select import Select
from streamsql.language.statements.spark import Spark
from streamsql.language.struct_types import in_capitals
from streamsql.language.tokens import quote_name
from streamsql.language.view_paths import with_paths
from streamsql.plan import plans
from streamsql.plan.lowering.state_tables import reads_state
from streamsql.plan.statements.staged import REFUSED
from streamsql.results import Done, InfoRows, Result, Rows, Text, counted
from streamsql.runtime.engine.arrow_rows import fetch_arrow
from streamsql.runtime.engine.kept_tables import COLLATION, definition_now, exists_before, is_table
from streamsql.runtime.engine.row_fetch import fetch, rows_written
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.engine.temporary_views import with_full_paths
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import table, without_secrets
from streamsql.runtime.handlers.old_definitions import (
    after_statement,
    users_of,
    with_table,
    without_definition,
)
from streamsql.runtime.handlers.refresh_remarks import empty_fact, tables_that_stand
from streamsql.runtime.handlers.show import how_called
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.connectivity import check_servers
from streamsql.runtime.preflight.function_kinds import WHAT
from streamsql.runtime.preflight.kafka_topics import check_sink_topics
from streamsql.runtime.preflight.registry_subjects import asked_again
from streamsql.runtime.preflight.spark_tables import check_table
from streamsql.runtime.program_source import explained, program_text, spark_plan
from streamsql.runtime.queries.facts import FIRST_MICRO_BATCH, waiting_for
from streamsql.runtime.queries.output_mode import first_choice
from streamsql.runtime.queries.start_checks import check_drivers, check_logs
from streamsql.runtime.queries.start_refresh import stage_frames

_TELLS = re.compile(r"\s*(SHOW|DESCRIBE|DESC|EXPLAIN|SET)\b", re.IGNORECASE)
"""Statements of Spark whose rows are settings or definitions, not data."""


_OF_SPARK = "Class: org.apache.spark.sql.catalyst."


def _collect_plan(parts: SessionParts, plan: plans.Collect, statement: Statement) -> Result:
    began = time.monotonic()
    added = added_file(statement.text)
    if added and ":" not in added and not Path(added).expanduser().exists():  # Spark would only log it
        raise InputFault(f"there is no file {added}", span=statement.span, code="FILE_NOT_READ")
    existed = exists_before(parts.spark, plan.defines)
    with parts.own_state_provider(plan.program):
        try:
            frame = _frame(parts, plan)
        except Exception as error:
            here = _with_folders_here(plan, statement)
            if not here:
                raise
            fault = translate(error, statement, parts.catalog.relation_names())
            fault.propose(f"{here};")
            raise fault from error
        if plan.defines.kind:
            result = _defined(parts, plan, statement, existed)
        else:
            result = _collected(parts, plan, frame, statement, began)
        if isinstance(statement, (Spark, Insert)):  # it may have changed what queries read
            notes = informing(partial(after_statement, parts, statement.text), ())
            result = replace(result, notes=(*result.notes, *notes)) if notes else result
        return result


def _defined(parts: SessionParts, plan: plans.Collect, statement: Statement, existed: bool) -> Result:
    """The answer to a statement of Spark that has created or dropped a table, view or function."""
    if existed and plan.defines.creates and plan.defines.kind != "table":  # it stays as it is
        return Done(message=plan.defines.outcome(existed))
    users = informing(lambda: users_of(parts, plan.defines), [])
    if plan.defines.creates:
        streaming = plan.streaming
        if plan.defines.kind != "function":  # Spark may have created a table that it cannot read yet
            streaming = informing(
                lambda: bool(parts.spark.table(plan.defines.written).isStreaming), streaming
            )
        entry = plan.entry(streaming)
        text = with_full_paths(statement).text if entry.text else ""
        parts.update(
            lambda catalog: catalog.without("aside", before_name(entry.name)).having(
                replace(entry, text=text)
            )
        )
    _remember(parts, plan, statement)
    if plan.defines.creates:
        before = replace(plan.defines, creates=before_name(plan.defines.creates))
        parts.temporary.drop(before.key, parts.spark)
    here = "" if existed else _with_folders_here(plan, statement)
    text = f"Spark takes the path from the folder of the database; for the folder that is here: {here};"
    notes = informing(lambda: without_definition(parts, plan.defines, users), ())
    if here:
        notes += (Note("TABLE_PATH", " ".join(text.split())),)
    return Done(message=plan.defines.outcome(existed), notes=notes)


def _with_folders_here(plan: plans.Collect, statement: Statement) -> str:
    """The CREATE TABLE with absolute paths in place of relative ones that exist in the current folder: Spark
    takes these from the folder of the database. "" where there is none.
    """
    relative = list[str]()

    def full(path: str) -> str:
        relative.append(path)
        return in_full(path)

    if plan.defines.kind != "table" or not plan.defines.creates:
        return ""
    text = with_paths(statement.text, full, lambda path: False)
    exists = relative and all(not Path(path).is_absolute() and Path(path).exists() for path in relative)
    return text if exists else ""


def _frame(parts: SessionParts, plan: plans.Collect) -> Any:
    """The DataFrame of a program."""
    try:
        return run(plan.program, parts.env(plan.program, plan.reads))
    except Exception:
        if plan.reads.part is None or parts.cancel.cancelled:
            raise
    # An error names the columns that there are: all of them.
    return run(plan.program, parts.env(plan.program, replace(plan.reads, part=None)))


def _collected(
    parts: SessionParts, plan: plans.Collect, frame: Any, statement: Statement, began: float
) -> Result:
    _remember(parts, plan, statement)
    if frame.isStreaming:
        raise EngineFault(
            "this query reads a stream that only Spark knows",
            hint="CREATE STREAM name AS SELECT … FROM STREAM table;  then SELECT from that",
            code="FOREIGN_STREAM",
        )
    if not isinstance(statement, Select) or reads_state(plan.program):
        return _spark_answer(parts, collect(frame), statement, began)
    failed = lambda error: translate(error, statement, parts.catalog.relation_names())  # noqa: E731
    rows = (fetch_arrow if parts.config.arrow else fetch)(frame, parts.cancel, failed)
    if plan.reads.live:
        parts.newest.empty_select = statement.query.text if rows.empty else ""
        notes = _without_rows(parts, plan.reads.live) if rows.empty else ()
        rows = replace(rows, notes=(*rows.notes, *(notes or tables_that_stand(parts, plan.reads.live))))
    return replace(rows, seconds=time.monotonic() - began)


def _without_rows(parts: SessionParts, tables: tuple[Sink, ...]) -> tuple[Note, ...]:
    """A note on the first live table of a SELECT that has no rows. Scripts are told only of a query that has
    failed, or that fails over no rows.
    """
    for entry in tables:
        live = parts.live.get(entry.name.casefold())
        rows = live.rows()[0] if live is not None else None
        if rows is None or not rows.num_rows:
            fact = f"the live table {entry.name} has no rows"
            queries = (query.name.casefold() for query in parts.catalog.queries_into(entry.name))
            runs = [run for name in queries if (run := parts.queries.all.get(name)) is not None]
            fault = next((run.fault for run in runs if run.status() == "FAILED" and run.fault), None)
            if fault is not None:
                return (Note("LIVE_TABLE_EMPTY", f"{fact}: its query failed: {fault.fact}"),)
            if empty := empty_fact(entry.name, parts):
                return (Note("LIVE_TABLE_EMPTY", f"{entry.name} has {empty}"),)
            if not parts.config.interactive:
                continue
            if any(waiting_for(run, parts.places) == FIRST_MICRO_BATCH for run in runs):
                return (Note("LIVE_TABLE_EMPTY", f"{fact} yet: its first micro-batch is under way"),)
            why = f"WHY LIVE TABLE {quote_name(entry.name)}; explains it"
            return (Note("LIVE_TABLE_EMPTY", f"{fact}: {why}"),)
    return ()


def _remember(parts: SessionParts, plan: plans.Collect, statement: Statement) -> None:
    """Keep what a statement has created for the next Spark: a table as it is now, also after ALTER."""
    altered = target_of(statement.text) if isinstance(statement, Spark) else None
    if altered is not None and altered.verb == "ALTER VIEW":
        _remember_view(parts, altered.name, statement)
    elif altered is not None and altered.verb == "ALTER TABLE":
        now = definition_now(parts.spark, altered.name)
        if now is None:  # it was renamed
            parts.temporary.forget(altered.name)
            new = renamed_to(statement.text)
            now = definition_now(parts.spark, new) if new else None
            if now is not None:
                parts.temporary.remember(now, definition_of(now.text))
                parts.update(lambda catalog: catalog.having(Table(new)))
        elif not parts.spark.catalog.getTable(quote_name(altered.name)).isTemporary:
            parts.temporary.remember(now, definition_of(now.text))
    elif plan.defines.creates and "." not in plan.defines.creates and is_table(statement):
        now = definition_now(parts.spark, plan.defines.creates)
        parts.temporary.remember(now or statement, plan.defines)
    else:
        parts.temporary.remember(statement, plan.defines)


def _remember_view(parts: SessionParts, name: str, alter: Statement) -> None:
    """Keep a view as it is after ALTER VIEW."""
    created = dict(parts.temporary.statements()).get(name.casefold())
    if created is None:
        return
    (written,) = split_script(Source("catalog.sql", altered_view(created.text, alter.text) + ";"))
    now = parse(written, {}, literal=True)
    table, defines = parts.catalog.tables[name.casefold()], definition_of(now.text)
    parts.temporary.forget(name)
    parts.temporary.drop(before_name(name), parts.spark)
    view = replace(table, name=defines.creates, text=now.text)
    parts.update(lambda catalog: catalog.without("aside", before_name(name)).having(view))
    parts.temporary.remember(now, defines)


def _spark_answer(parts: SessionParts, rows: Rows, statement: Statement, began: float) -> Result:
    """The rows of a statement of Spark that is no SELECT: those of a definition show no secrets."""
    if not rows.columns:
        return Done(message="done")
    if _TELLS.match(statement.text):
        rows = without_secrets(rows)
    if rows.columns == ("createtab_stmt",) and len(rows.rows) == 1:
        return Text(text=str(rows.rows[0][0]).replace(COLLATION.upper(), "").rstrip() + ";")
    if rows.columns == ("function",):
        return replace(_functions(parts, [name for (name,) in rows.rows]), seconds=time.monotonic() - began)
    if rows.columns == ("function_desc",):
        facts = [str(value) for (value,) in rows.rows]
        return Text(text="\n".join(f for f in facts if not f.startswith(_OF_SPARK)), prose=True)
    if "data_type" in rows.columns:
        # The collation of all strings, which Spark names where a table has none of its own.
        plain = [tuple(v.replace(COLLATION, "") if isinstance(v, str) else v for v in r) for r in rows.rows]
        rows = InfoRows(rows.notes, rows.columns, _with_types_in_capitals(plain), rows.numeric)
    return replace(rows, seconds=time.monotonic() - began)


def _functions(parts: SessionParts, names: list[str]) -> Rows:
    """The answer to SHOW FUNCTIONS: Spark itself lists names only; operators stand last. A definition that is
    not in use is left out.
    """
    built_in, own = reference.functions(), parts.catalog.functions
    rows = []
    shown = [name for name in names if not is_aside(name)]
    for name in sorted(shown, key=lambda name: (not name[:1].isalpha(), name)):
        if entry := own.get(name.casefold()):
            called = how_called(entry).partition(entry.name)[2]
            meaning = f"{WHAT[entry.kind]}, written in Python"
        elif function := built_in.get(name):
            called, meaning = re.sub(rf"\b{name}(?=\()", "", function.signature), function.meaning
        else:
            called = meaning = ""
        rows.append((name, called, meaning))
    return table(("function", "arguments", "description"), rows, matters=("function", "description"))


def _with_types_in_capitals(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows of DESCRIBE: those up to the first one without a name, or with a title, are columns."""
    ends = next((n for n, row in enumerate(rows) if not row[0] or row[0].startswith("#")), len(rows))
    return [(name, in_capitals(kind), *more) for name, kind, *more in rows[:ends]] + rows[ends:]


def _write(parts: SessionParts, plan: plans.Write, statement: Statement) -> Result:
    check_servers(plan.sinks)
    env = parts.env(plan.program, plan.reads)
    check_drivers(parts, plan.sinks)
    check_logs(parts, plan.sinks, keeps=False)
    check_sink_topics(parts.spark, plan.sinks, parts.cancel)
    targets = tuple(t.value.casefold() for t in statement.targets) if isinstance(statement, Insert) else ()
    if targets and not plan.sinks and not plan.folder:
        check_table(parts.spark, parts.catalog, Sink(targets[0], "table"), statement)
    alone = parts.writes.setdefault(plan.folder or targets, threading.Lock())
    with parts.cancel.holding(alone), parts.own_state_provider(plan.program), asked_again():
        if plan.folder and parts.config.stand_ins:
            write_rows(plan.program, env, plan.folder)
            return Done(message=plan.message)
        last = run(plan.program, env)
    count = None if plan.folder or plan.sinks else rows_written(last)
    if targets and not plan.sinks and not plan.folder:
        informing(partial(with_table, parts, targets[0], replaced=False), ())
    return Done(message=plan.message if count is None else f"{counted(count, 'row')} {plan.message}")


def _explain(parts: SessionParts, plan: plans.Explain, statement: Statement) -> Result:
    assert isinstance(plan.plan, (plans.Collect, plans.Write, plans.Run)) and isinstance(statement, Explain)
    shown = _in_stages(parts, plan.plan) or plan.plan
    notes = tuple(n for n in shown.notes if n not in plan.notes)
    if plan.mode == "pyspark":
        text = program_text(shown, parts.context(), parts.settings, parts.packages.for_program)
    elif isinstance(shown, plans.Refresh) and shown.stages:
        text = _plans_of_stages(parts, shown, plan.mode)
    elif isinstance(shown, (plans.Collect, plans.Write)) and not isinstance(statement.body, Select):
        text = _plan_of_text(parts, shown, plan.mode) or _plans_of_spark(parts, shown, plan.mode)
    else:
        text = _plans_of_spark(parts, shown, plan.mode)
    if plan.mode == "pyspark":
        return Text(text=text, notes=notes)
    return Text(text=redact_any(text).rstrip("\n"), outline=True, notes=notes)


def _plan_of_text(parts: SessionParts, plan: plans.Collect | plans.Write | plans.Run, mode: str) -> str:
    """Spark's plan of a statement that is no query, such as an INSERT into a table, which spark.sql would
    run; "" for a program that hands Spark no such text.
    """
    written = text_of(plan.program)
    if not written:
        return ""
    run(plan.program[:-1], parts.env(plan.program, plan.reads))
    state = parts.spark._jsparkSession.sessionState()
    without_running = parts.spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    parsed = state.sqlParser().parsePlan(written)
    return explained(parts.spark, state.executePlan(parsed, without_running), mode)


def _plans_of_spark(parts: SessionParts, plan: plans.Collect | plans.Write | plans.Run, mode: str) -> str:
    """Spark's plans of what a program computes."""
    program = plan.program
    if isinstance(plan, plans.Write):
        program = tuple(step for step in program if step.name)
    env = parts.env(program, plan.reads)
    with parts.own_state_provider(program):
        run((*program, Assign("", program[-1].node)), env)
        if isinstance(plan, plans.Run) and any(t.select for t in plan.targets):
            frames = {t.sink.name: evaluate(t.rows, env) for t in plan.targets}
            return "\n".join(f"-- {n}\n{spark_plan(f, mode)}" for n, f in frames.items())
        return spark_plan(env["result"], mode)


def _in_stages(parts: SessionParts, plan: plans.Plan) -> plans.Refresh | None:
    """What runs in place of a query that only Spark can read, if Spark refuses it on streams. Other queries
    need no Spark here.
    """
    if not isinstance(plan, plans.Run) or not isinstance(plan.otherwise, plans.Refresh):
        return None
    env = parts.env(plan.program, plan.reads)
    try:
        with parts.own_state_provider(plan.program):
            run(plan.program, env)
            first_choice(plan, parts.spark, env["result"])
    except Exception as error:
        return plan.otherwise if translate(error).code in REFUSED else None
    return None


def _plans_of_stages(parts: SessionParts, plan: plans.Refresh, mode: str) -> str:
    """Spark's plans of the stages, and of the rest over these, as if they were empty."""
    with parts.own_state_provider(plan.program):
        frames, env = stage_frames(parts, plan)
        run(plan.program, env)
    frames = {f"stage {name}": frame for name, frame in frames.items()} | {plan.query.name: env["result"]}
    return "\n".join(f"-- {name}\n{spark_plan(frame, mode)}" for name, frame in frames.items())


PLANS: Answers = {
    plans.Collect: _collect_plan,
    plans.Write: _write,
    plans.Explain: _explain,
}


def write_rows(program: Program, env: dict[str, Any], folder: str) -> None:
    """Run a program whose last step writes rows into a folder of Parquet files. Types that Arrow's writer
    does not know are written by Spark. Raises what Spark raises.
    """
    *steps, last = program
    run(tuple(steps), env)
    rows = _rows(last.node, env)
    if rows is None or not _plain(rows.schema):
        run((last,), env)
        return
    import pyarrow.parquet as parquet

    # Spark reads dates before 1582 by the version of the writer.
    table = rows.toArrow().replace_schema_metadata({"org.apache.spark.version": "4.3.0"})
    Path(folder).mkdir(parents=True, exist_ok=True)
    unfinished = Path(folder) / f"_{uuid.uuid4()}"  # which Spark does not read
    parquet.write_table(table, unfinished)
    os.rename(unfinished, Path(folder) / f"part{unfinished.name}.parquet")


def _rows(node: Node, env: Mapping[str, Any]) -> Any:
    """The DataFrame that is written; None if this is no write."""
    written = (x.target for x in links_of(node)[1] if isinstance(x, Attr) and x.name == "write")
    frame = next(written, None)
    return None if frame is None else evaluate(frame, env)


def _plain(kind: Any) -> bool:
    """Whether Arrow's Parquet files hold a type as Spark's do."""
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        return all(_plain(f.dataType) for f in kind.fields) and len(kind.fields) > 0
    if isinstance(kind, t.ArrayType):
        return _plain(kind.elementType)
    if isinstance(kind, t.MapType):
        return _plain(kind.keyType) and _plain(kind.valueType)
    plain_types = (t.BooleanType, t.IntegralType, t.FloatType, t.DoubleType, t.DecimalType, t.StringType)
    times = (t.BinaryType, t.DateType, t.TimestampType, t.TimestampNTZType)
    return isinstance(kind, (*plain_types, *times))
