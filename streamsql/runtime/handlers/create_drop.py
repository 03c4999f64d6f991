"""CREATE and DROP of streams, sinks and functions; EMPTY TRASH and UNDROP."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamsql.calls import Assign, Node, evaluate
from streamsql.connectors.option_values import placed, secret_options
from streamsql.connectors.registry import connector
from streamsql.definitions import Function, OfSpark, Sink, Stream, is_staged
from streamsql.errors import InputFault, Note, RuleFault, StreamsqlError
from streamsql.feature_registry import extensions
from streamsql.guard import informing
from streamsql.language.spark_definitions import Definition, definition_of
from streamsql.language.statements import session as session_statements
from streamsql.language.statements.base import Column, Name, Option, Statement
from streamsql.language.statements.query import DropQuery
from streamsql.language.statements.sink import CreateSink
from streamsql.language.statements.stream import CreateStream
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.plan.stand_ins import given_stream, stand_in_sink, without_source
from streamsql.plan.statements.stream_columns import check_watermark
from streamsql.results import Done, Result
from streamsql.runtime.engine.analysis_errors import USE_TIME
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.spark_errors import UNKNOWN_FORMAT, translate
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.old_definitions import (
    go_on,
    still_called,
    users_of,
)
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.charsets import check_charsets
from streamsql.runtime.preflight.csv_headers import check_headers, quoting_notes
from streamsql.runtime.preflight.csv_inference import exact_columns, with_quoting
from streamsql.runtime.preflight.file_names import check_file_names
from streamsql.runtime.preflight.function_kinds import WHAT
from streamsql.runtime.preflight.local_paths import check_path
from streamsql.runtime.preflight.python_code_checks import check_code
from streamsql.runtime.preflight.registry_subjects import with_schema
from streamsql.runtime.preflight.schema_files import check_described, with_schema_file
from streamsql.runtime.queries.promoted_rows import check_written
from streamsql.runtime.queries.start import forget_query
from streamsql.runtime.workspace import dropped
from streamsql.runtime.workspace.generations import generations_of
from streamsql.runtime.workspace.owned_folders import empty_trash, is_owned, set_aside


def _define_stream(parts: SessionParts, plan: plans.DefineStream, statement: Statement) -> Result:
    name = plan.stream.name
    if plan.exists(parts.catalog):
        return Done(message=f"stream {name} already exists")
    entry, notes = checked_stream(parts, plan, statement)
    if not parts.config.stand_ins:
        again = isinstance(statement, CreateStream) and statement.or_replace
        check_headers(entry, plan.path, "CREATE OR REPLACE" if again else "CREATE")
        looked_at = entry
        notes = notes or informing(lambda: quoting_notes(looked_at), ())
    if parts.config.stand_ins:
        entry = given_stream(entry)
    if entry.connector == "values":
        notes = (*notes, *_without_rows(parts, name))
    if entry.connector and connector(Name(entry.connector)).received:
        for prepare in extensions("received stream"):
            prepare(parts, entry, statement)
    before = informing(lambda: users_of(parts, Definition(name, kind="stream")), [])
    notes = (*notes, *go_on(before, f"the stream {name}"))
    plan = replace(plan, stream=placed(entry) if parts.store else entry)
    parts.update(plan.applied)
    return Done((*notes, *_unsaved_secrets(parts, entry)), f"stream {name} created")


def checked_stream(
    parts: SessionParts, plan: plans.DefineStream, statement: Statement
) -> tuple[Stream, tuple[Note, ...]]:
    """(the stream of a plan, with the columns that its source shows where it declares none; notes about
    them). Raises faults for what is not as the stream says; the headers of csv files are not compared.
    """
    if parts.config.stand_ins:
        plan = without_source(plan)
    if plan.path:
        check_path(plan.path)
        check_file_names(plan.stream, plan.path.span)
    if plan.code:
        check_code(plan.code, plan.stream.option("folder"), connector(Name(plan.stream.connector)), "read")
    _check_charsets(parts, plan.stream, statement)
    entry, notes = with_schema_file(plan.stream, plan.schema_file), tuple[Note, ...]()
    if plan.infer is not None or not parts.config.stand_ins:
        entry = with_schema(entry)
        check_described(entry)
    if plan.infer is not None:
        entry, notes = _inferred(parts, replace(plan, stream=entry), statement)
    _check_types(parts, entry)
    return entry, notes


_TIME = re.compile(r"\bTIME\b(?=\s*([(,>]|$))", re.IGNORECASE)


def _check_types(parts: SessionParts, stream: Stream) -> None:
    """Raise RuleFault for a column whose type Spark refuses as it is set."""
    for column in stream.columns:
        if not _TIME.search(column.type):
            continue
        if parts.spark.conf.get("spark.sql.timeType.enabled", "false") != "true":
            raise RuleFault(
                f"column {column.name} is a TIME, and that type is switched off",
                hint=USE_TIME,
                span=column.span if column.span.end else None,
                code="UNSUPPORTED_TYPE",
            )


def _check_charsets(parts: SessionParts, entry: Stream | Sink, statement: Statement) -> None:
    """Raise SyntaxFault for a character set among the options that Spark does not take."""
    if isinstance(statement, (CreateStream, CreateSink)) and entry.connector and statement.options:
        using = connector(Name(entry.connector))
        check_charsets(lambda: parts.spark, (*(using.reads or ()), *(using.writes or ())), statement.options)


def _without_rows(parts: SessionParts, name: str) -> tuple[Note, ...]:
    """Give a stream of values an empty folder. Returns a note about the rows of a stream before it."""
    folder = Path(parts.places.values(name))
    count = len(list(folder.glob("part-*.parquet"))) if is_owned(folder) else 0
    text = f"the rows of the stream before it ({count} micro-batch{'' if count == 1 else 'es'})"
    trash = set_aside(parts.store.folder if parts.store else None, folder)
    if not count or name.casefold() not in parts.catalog.streams:
        return ()
    what = f"{text} are moved to {trash}; EMPTY TRASH; deletes them" if trash else f"{text} are deleted"
    return (Note("ROWS_REMOVED", what),)


def shown_columns(parts: SessionParts, plan: plans.DefineStream, statement: Statement) -> tuple[Column, ...]:
    """The columns that the source of a stream shows. Raises InputFault where there are no rows yet."""
    assert plan.infer is not None
    try:
        fields = _schema(parts, plan.infer)
    except Exception as error:
        fault = translate(error, statement)
        if fault.condition != "UNABLE_TO_INFER_SCHEMA":
            raise _at_option(fault, statement) from error
        fields = []
    if not fields:
        raise InputFault(
            f"the columns of {plan.stream.name} cannot be inferred: there are no rows yet",
            hint=f"declare them: CREATE STREAM {quote_name(plan.stream.name)} (id INT, ts TIMESTAMP) USING …",
            span=plan.path.span if plan.path else None,
            code="MISSING_COLUMNS",
        )
    return tuple(Column(f.name, f.dataType.simpleString()) for f in fields)


_ABOUT = {UNKNOWN_FORMAT: "format", "PACKAGE_NOT_AVAILABLE": "packages"}
"""The code of an error → the option that it is about."""


def _at_option(fault: StreamsqlError, statement: Statement) -> StreamsqlError:
    """The error, at the place of the option that it is about if it has none."""
    options: tuple[Option, ...] = getattr(statement, "options", ())
    about = (o.value.span for o in options if o.key.value.casefold() == _ABOUT.get(fault.code))
    fault.span = fault.span or next(about, None)
    return fault


def _inferred(
    parts: SessionParts, plan: plans.DefineStream, statement: Statement
) -> tuple[Stream, tuple[Note, ...]]:
    """(the stream of a statement without columns, with those that its source shows; notes about them)."""
    entry, notes = plan.stream, tuple[Note, ...]()
    source = connector(Name(entry.connector))
    if entry.connector == "csv" and (lines := source.records(entry)) is not None:
        try:
            entry, notes = with_quoting(entry, _frame(parts, lines))
        except Exception as error:
            raise translate(error, statement) from error
    plan = replace(plan, stream=entry, infer=source.infer(entry))
    columns = _with_event_time(parts, plan, shown_columns(parts, plan, statement))
    if entry.connector == "csv":
        texts = source.infer(replace(entry, options=(*entry.options, ("inferSchema", "false"))))
        assert texts is not None
        columns, changed = exact_columns(columns, _frame(parts, texts))
        notes += changed
    check_watermark(entry.watermark, columns)
    listed = ", ".join(f"{c.name} {c.type}" for c in columns)
    inferred = Note("COLUMNS_INFERRED", f"columns of {entry.name}, as inferred and recorded: {listed}")
    return replace(entry, columns=columns, inferred=True), (inferred, *notes)


def _frame(parts: SessionParts, node: Node) -> Any:
    return evaluate(node, parts.env((Assign("", node),)))


def _schema(parts: SessionParts, frame: Node) -> list[Any]:
    """The fields of a DataFrame."""
    return list(_frame(parts, frame).schema.fields)


def _with_event_time(
    parts: SessionParts, plan: plans.DefineStream, columns: tuple[Column, ...]
) -> tuple[Column, ...]:
    """Inferred columns; that of the watermark as a timestamp if its strings are timestamps."""
    watermark = plan.stream.watermark
    column = next(
        (c for c in columns if watermark and c.name.casefold() == watermark.column.value.casefold()), None
    )
    if plan.infer_times is None or column is None or column.type != "string":
        return columns
    times = {f.name: f.dataType.simpleString() for f in _schema(parts, plan.infer_times)}
    event_time = replace(column, type=times.get(column.name, column.type))
    return tuple(event_time if c is column else c for c in columns)


def _define_sink(parts: SessionParts, plan: plans.DefineSink, statement: Statement) -> Result:
    if plan.exists(parts.catalog):
        return Done(message=f"sink {plan.sink.name} already exists")
    if parts.config.stand_ins:
        plan = replace(plan, sink=stand_in_sink(plan.sink), code=None, schema_file=None)
    if plan.code:
        check_code(plan.code, plan.sink.option("folder"), connector(Name(plan.sink.connector)), "write")
    _check_charsets(parts, plan.sink, statement)
    entry = with_schema_file(plan.sink, plan.schema_file)
    parts.update(replace(plan, sink=placed(entry) if parts.store else entry).applied)
    kind = "live table" if entry.is_live else "sink"
    return Done(_unsaved_secrets(parts, entry), f"{kind} {entry.name} created")


def _unsaved_secrets(parts: SessionParts, entry: Stream | Sink) -> tuple[Note, ...]:
    """Notes about the secrets of a stream or sink that a workspace does not save."""
    names = secret_options(entry) if parts.store else []
    text = "the workspace does not save the {0}; it saves a reference: {0} '${{env:NAME}}'"
    return tuple(Note("SECRET_NOT_KEPT", text.format(n)) for n in names)


def _define_change(parts: SessionParts, plan: plans.DefineChange, statement: Statement) -> Result:
    parts.update(plan.applied)
    return Done(message=f"change {plan.change.name} created")


def _define_function(parts: SessionParts, plan: plans.DefineFunction, statement: Statement) -> Result:
    key = plan.function.name.casefold()
    if plan.exists(parts.catalog):
        return Done(message=f"function {plan.function.name} already exists")
    others = [f for k, f in parts.catalog.functions.items() if k != key]
    before = informing(lambda: users_of(parts, Definition(key, kind="function")), [])
    entry = parts.modules.find(plan.function, plan.target, parts.variables.get("here", ""), others)
    parts.update(replace(plan, function=entry).applied)
    what = WHAT[entry.kind]
    return Done(go_on(before, f"the {what} {entry.name}"), f"{what} {entry.name} created")


def _drop(parts: SessionParts, plan: plans.Drop, statement: Statement) -> Result:
    if not plan.entries:
        none = f"is no {plan.kind} {plan.name}" if plan.name else f"are no {plan.kind}"
        return Done(message=f"there {none}")
    if isinstance(statement, DropQuery):
        for field, name in plan.entries:
            query = parts.catalog.queries[name.casefold()] if field == "queries" else None
            generation = generations_of(parts.places, name).current if query else None
            if query and generation:
                check_written(name, query.sink, generation, statement.span)
    kind, removed = plan.kind, list[tuple[str, str]]()
    notes = informing(lambda: still_called(parts, plan), ())
    trash = _trash_folder(parts, plan, statement)
    try:
        for field, name in plan.entries:
            if field == "queries":
                forget_query(parts, name, files=trash is None or is_staged(name))
                if trash is not None and not is_staged(name):
                    dropped.put(trash, Path(parts.places.query(name)))
            elif field == "sinks":
                parts.live.forget(name.casefold())
            elif field == "functions":
                kind = _forget_function(parts, parts.catalog.functions[name.casefold()])
            elif field == "aside":
                forget_aside(parts, name)
            removed.append((field, name))
    finally:  # a statement that is cancelled leaves the rest
        parts.current.update(replace(plan, entries=tuple(removed)).applied)
    cascaded = {name for field, name in removed if name != plan.name and "$" not in name}
    too = f", with {', '.join(sorted(cascaded))}" if kind == "stream" and cascaded else ""
    tables = [name for field, name in removed if field == "sinks" and "$" not in name]
    if kind in ("query", "queries") and tables:
        too = f", with the live table{'s' * (len(tables) > 1)} {', '.join(tables)}"
    back = "; UNDROP; brings it back" if len(plan.entries) == 1 else "; UNDROP; brings them back"
    return Done(notes, f"{kind} {plan.name} dropped{too}{back if trash is not None else ''}")


def _trash_folder(parts: SessionParts, plan: plans.Drop, statement: Statement) -> Path | None:
    """The folder in the trash that takes what DROP QUERY removes; None for other statements."""
    if not isinstance(statement, DropQuery):
        return None
    names = {name.casefold() for field, name in plan.entries if field == "queries"}
    dropped_now = (query for name, query in parts.catalog.queries.items() if name in names)
    queries = [query for query in dropped_now if not query.owner and not is_staged(query.name)]
    return dropped.begin(parts, queries) if queries else None


def _undrop(parts: SessionParts, statement: session_statements.Undrop) -> Result:
    if parts.store is None:
        return Done(message="this console has no workspace and no trash")
    names = dropped.undrop(parts)
    if not names:
        return Done(message="no dropped query is in the trash")
    again = "START QUERY ALL; resumes them"
    if len(names) == 1:
        again = f"START QUERY {quote_name(names[0])}; resumes it"
    parts.workspace.save()
    return Done(message=f"{', '.join(names)} restored; {again}")


def _forget_function(parts: SessionParts, function: Function) -> str:
    """Remove a function from Spark, if it is started. Returns what the function is."""
    if parts.engine.started and function.kind != "processor":
        parts.spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {quote_name(function.name)}")
    return WHAT[function.kind]


def forget_aside(parts: SessionParts, name: str) -> None:
    """Remove a view or function that is not in use from Spark, if it is started."""
    entry = parts.catalog.aside.get(name.casefold())
    if isinstance(entry, Function):
        _forget_function(parts, entry)
    elif isinstance(entry, OfSpark):
        spark = parts.engine.wait(CancelToken()) if parts.engine.started else None
        parts.temporary.drop(definition_of(entry.text).key, spark)


def _empty_trash(parts: SessionParts, statement: session_statements.EmptyTrash) -> Result:
    if parts.store is None:
        return Done(message="this console has no workspace and no trash")
    removed, left = empty_trash(parts.store.folder)
    text = f"kept in the trash, because streamsql did not create it: {', '.join(left)}"
    notes = (Note("NOT_DELETED", text),) if left else ()
    return Done(notes, f"{removed} folder{'' if removed == 1 else 's'} deleted")


PLANS: Answers = {
    plans.DefineStream: _define_stream,
    plans.DefineSink: _define_sink,
    plans.DefineFunction: _define_function,
    plans.DefineChange: _define_change,
    plans.Drop: _drop,
}
DIRECT: Answers = {
    session_statements.EmptyTrash: _empty_trash,
    session_statements.Undrop: _undrop,
}
