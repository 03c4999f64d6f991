"""CREATE and DROP of streams, sinks and functions; EMPTY TRASH."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from streamsql.calls import Assign, Node, evaluate
from streamsql.catalog import Sink, Stream
from streamsql.connectors.option_values import not_kept, placed
from streamsql.connectors.registry import connector
from streamsql.errors import InputFault
from streamsql.language.statements import function, live_table, sink, stream
from streamsql.language.statements import session as session_statements
from streamsql.language.statements.base import Column, Name, Statement
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.plan.statements.definitions import check_watermark
from streamsql.results import Done, Result
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.handlers import Answers
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.function_kinds import WHAT
from streamsql.runtime.preflight.local_paths import check_path
from streamsql.runtime.preflight.python_code_checks import check_code
from streamsql.runtime.preflight.registry_subjects import with_schema
from streamsql.runtime.queries.start import forget_query
from streamsql.runtime.workspace.owned_folders import claim, empty_trash, remove


def _define_stream(session: SessionParts, made: plans.DefineStream, statement: Statement) -> Result:
    name = made.stream.name
    if made.exists(session.catalog):
        return Done(message=f"stream {name} already exists")
    if made.path:
        check_path(made.path)
    if made.code:
        check_code(made.code, made.stream.option("folder"), connector(Name(made.stream.connector)), "read")
    made_stream, notes = with_schema(made.stream), tuple[str, ...]()
    if made.infer is not None:
        infer = connector(Name(made_stream.connector)).infer(made_stream)
        made = replace(made, stream=made_stream, infer=infer)
        columns = _with_event_time(session, made, _infer(session, made, statement))
        made_stream = replace(made_stream, columns=columns, inferred=True)
        check_watermark(made_stream.watermark, columns)
        listed = ", ".join(f"{c.name} {c.type}" for c in made_stream.columns)
        notes = (f"columns of {name}, as inferred and recorded: {listed}",)
    if made_stream.connector == "values":
        folder = Path(session.places.values(name))
        remove(folder)
        claim(folder)
    made = replace(made, stream=placed(made_stream) if session.store else made_stream)
    session.update(made.applied)
    return Done((*notes, *_not_kept(session, made_stream)), f"stream {name} created")


def _infer(session: SessionParts, made: plans.DefineStream, statement: Statement) -> tuple[Column, ...]:
    assert made.infer is not None
    try:
        fields = _schema(session, made.infer)
    except Exception as error:
        fault = translate(error, statement)
        if fault.condition != "UNABLE_TO_INFER_SCHEMA":
            raise fault from error
        fields = []
    if not fields:
        raise InputFault(
            f"the columns of {made.stream.name} cannot be inferred: there are no rows yet",
            hint=f"declare them: CREATE STREAM {made.stream.name} (id INT, ts TIMESTAMP) USING …",
            span=made.path.span if made.path else None,
        )
    return tuple(Column(f.name, f.dataType.simpleString()) for f in fields)


def _schema(session: SessionParts, frame: Node) -> list[Any]:
    """The fields of a DataFrame."""
    return list(evaluate(frame, session.env((Assign("", frame),))).schema.fields)


def _with_event_time(
    session: SessionParts, made: plans.DefineStream, columns: tuple[Column, ...]
) -> tuple[Column, ...]:
    """Inferred columns, the watermark's as a timestamp where its texts are times."""
    mark = made.stream.watermark
    found = next((c for c in columns if mark and c.name.casefold() == mark.column.value.casefold()), None)
    if made.infer_times is None or found is None or found.type != "string":
        return columns
    times = {f.name: f.dataType.simpleString() for f in _schema(session, made.infer_times)}
    event_time = replace(found, type=times.get(found.name, found.type))
    return tuple(event_time if c is found else c for c in columns)


def _define_sink(session: SessionParts, made: plans.DefineSink, statement: Statement) -> Result:
    if made.exists(session.catalog):
        return Done(message=f"sink {made.sink.name} already exists")
    if made.code:
        check_code(made.code, made.sink.option("folder"), connector(Name(made.sink.connector)), "write")
    session.update(replace(made, sink=placed(made.sink) if session.store else made.sink).applied)
    kind = "live table" if made.sink.is_live else "sink"
    return Done(_not_kept(session, made.sink), f"{kind} {made.sink.name} created")


def _not_kept(session: SessionParts, entry: Stream | Sink) -> tuple[str, ...]:
    """What a workspace does not keep of a stream or sink."""
    names = not_kept(entry) if session.store else []
    return tuple(
        f"the workspace does not keep the {n}; it keeps a reference: {n} '${{env:NAME}}'" for n in names
    )


def _define_function(session: SessionParts, made: plans.DefineFunction, statement: Statement) -> Result:
    key = made.function.name.casefold()
    if made.exists(session.catalog):
        return Done(message=f"function {made.function.name} already exists")
    others = [f for k, f in session.catalog.functions.items() if k != key]
    found = session.modules.find(made.function, made.target, session.variables.get("here", ""), others)
    session.update(replace(made, function=found).applied)
    return Done(message=f"{WHAT[found.kind]} {found.name} created")


def _drop_function(session: SessionParts, statement: function.DropFunction) -> Result:
    found = session.catalog.function(statement.name)
    session.undefine("functions", found.name)
    if session.engine.started and found.kind != "processor":
        session.spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {quote_name(found.name)}")
    return Done(message=f"{WHAT[found.kind]} {found.name} dropped")


def _drop_stream(session: SessionParts, statement: stream.DropStream) -> Result:
    key = statement.name.value.casefold()
    if statement.if_exists and key not in session.catalog.streams:
        return Done(message=f"there is no stream {statement.name}")
    found = session.catalog.stream(statement.name)
    session.undefine("streams", key)
    return Done(message=f"stream {found.name} dropped")


def _drop_sink(session: SessionParts, statement: sink.DropSink) -> Result:
    key = statement.name.value.casefold()
    if statement.if_exists and key not in session.catalog.sinks:
        return Done(message=f"there is no sink {statement.name}")
    found = session.catalog.sink(statement.name)
    session.undefine("sinks", key)
    session.live.forget(key)
    return Done(message=f"sink {found.name} dropped")


def _drop_live_table(session: SessionParts, statement: live_table.DropLiveTable) -> Result:
    key = statement.name.value.casefold()
    if statement.if_exists and key not in session.catalog.sinks:
        return Done(message=f"there is no live table {statement.name}")
    found = session.catalog.live_table(statement.name)
    for feeding in session.catalog.queries_into(found.name):
        forget_query(session, feeding.name)
    session.undefine("sinks", key)
    session.live.forget(key)
    return Done(message=f"live table {found.name} dropped")


def _empty_trash(session: SessionParts, statement: session_statements.EmptyTrash) -> Result:
    if session.store is None:
        return Done(message="this console has no workspace, and so no trash")
    removed, left = empty_trash(session.store.folder)
    notes = (f"left in the trash, since streamsql did not create it: {', '.join(left)}",) if left else ()
    return Done(notes, f"{removed} folder{'' if removed == 1 else 's'} deleted")


PLANS: Answers = {
    plans.DefineStream: _define_stream,
    plans.DefineSink: _define_sink,
    plans.DefineFunction: _define_function,
}
DIRECT: Answers = {
    stream.DropStream: _drop_stream,
    sink.DropSink: _drop_sink,
    function.DropFunction: _drop_function,
    live_table.DropLiveTable: _drop_live_table,
    session_statements.EmptyTrash: _empty_trash,
}
