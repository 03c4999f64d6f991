"""CREATE and DROP of streams, sinks and functions."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.calls import Assign, Node, evaluate
from streamsql.catalog import Sink, Stream
from streamsql.connectors.registry import connector
from streamsql.errors import InputFault, NameFault
from streamsql.language.statements import function, live_table, sink, stream
from streamsql.language.statements.base import Column, Name, Statement
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.plan.definitions import check_watermark
from streamsql.results import Done, Result
from streamsql.runtime.faults import translate
from streamsql.runtime.functions import WHAT
from streamsql.runtime.paths import check_path
from streamsql.runtime.starting import forget_query
from streamsql.runtime.statements import Answers
from streamsql.runtime.store import placed, secrets
from streamsql.runtime.subjects import with_schema
from streamsql.runtime.userlib import check_code

if TYPE_CHECKING:
    from streamsql.runtime.session import Session


def _define_stream(session: Session, made: plans.DefineStream, statement: Statement) -> Result:
    name = made.stream.name
    key = name.casefold()
    if made.skip_existing and (key in session.catalog.streams or key in session.catalog.sinks):
        return Done(message=f"stream {name} is there already")
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
        notes = (f"columns of {name}, as inferred and kept: {listed}",)
    if made_stream.connector == "values":
        folder = Path(session.places.values(name))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    session.catalog.streams[key] = placed(made_stream) if session.store else made_stream
    return Done((*notes, *_not_kept(session, made_stream)), f"stream {name} created")


def _infer(session: Session, made: plans.DefineStream, statement: Statement) -> tuple[Column, ...]:
    assert made.infer is not None
    try:
        fields = _schema(session, made.infer)
    except Exception as error:
        fault = translate(error, statement.text)
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


def _schema(session: Session, frame: Node) -> list[Any]:
    """The fields of a DataFrame."""
    return list(evaluate(frame, session.env((Assign("", frame),))).schema.fields)


def _with_event_time(
    session: Session, made: plans.DefineStream, columns: tuple[Column, ...]
) -> tuple[Column, ...]:
    """Inferred columns, the watermark's as a timestamp where its texts are times."""
    mark = made.stream.watermark
    found = next((c for c in columns if mark and c.name.casefold() == mark.column.value.casefold()), None)
    if made.infer_times is None or found is None or found.type != "string":
        return columns
    times = {f.name: f.dataType.simpleString() for f in _schema(session, made.infer_times)}
    event_time = replace(found, type=times.get(found.name, found.type))
    return tuple(event_time if c is found else c for c in columns)


def _define_sink(session: Session, made: plans.DefineSink, statement: Statement) -> Result:
    key = made.sink.name.casefold()
    if made.skip_existing and key in session.catalog.sinks:
        return Done(message=f"sink {made.sink.name} is there already")
    if made.code:
        check_code(made.code, made.sink.option("folder"), connector(Name(made.sink.connector)), "write")
    session.catalog.sinks[key] = placed(made.sink) if session.store else made.sink
    kind = "live table" if made.sink.is_live else "sink"
    return Done(_not_kept(session, made.sink), f"{kind} {made.sink.name} created")


def _not_kept(session: Session, entry: Stream | Sink) -> tuple[str, ...]:
    """What a workspace does not keep of a stream or sink."""
    names = sorted(secrets(entry) & {k.casefold() for k, _ in entry.options}) if session.store else []
    return tuple(
        f"the workspace does not keep the {n}; it keeps where it lies: {n} '${{env:NAME}}'" for n in names
    )


def _define_function(session: Session, made: plans.DefineFunction, statement: Statement) -> Result:
    key = made.function.name.casefold()
    if made.skip_existing and key in session.catalog.functions:
        return Done(message=f"function {made.function.name} is there already")
    others = [f for k, f in session.catalog.functions.items() if k != key]
    found = session.modules.find(made.function, made.target, session.variables.get("here", ""), others)
    session.catalog.functions[key] = found
    return Done(message=f"{WHAT[found.kind]} {found.name} created")


def _drop_function(session: Session, statement: function.DropFunction) -> Result:
    found = session.catalog.function(statement.name)
    del session.catalog.functions[found.name.casefold()]
    if session.engine.started and found.kind != "processor":
        session.spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {quote_name(found.name)}")
    return Done(message=f"{WHAT[found.kind]} {found.name} dropped")


def _drop_stream(session: Session, statement: stream.DropStream) -> Result:
    key = statement.name.value.casefold()
    if statement.if_exists and key not in session.catalog.streams:
        return Done(message=f"there is no stream {statement.name}")
    found = session.catalog.stream(statement.name)
    del session.catalog.streams[key]
    return Done(message=f"stream {found.name} dropped")


def _drop_sink(session: Session, statement: sink.DropSink) -> Result:
    key = statement.name.value.casefold()
    if statement.if_exists and key not in session.catalog.sinks:
        return Done(message=f"there is no sink {statement.name}")
    found = session.catalog.sink(statement.name)
    feeding = [q.name for q in session.catalog.queries_into(found.name)]
    if feeding:
        raise NameFault(
            f"the query {feeding[0]} writes into {found.name}",
            hint=f"DROP QUERY {feeding[0]};",
            span=statement.name.span,
        )
    del session.catalog.sinks[key]
    session.live.forget(key)
    return Done(message=f"sink {found.name} dropped")


def _drop_live_table(session: Session, statement: live_table.DropLiveTable) -> Result:
    key = statement.name.value.casefold()
    if statement.if_exists and key not in session.catalog.sinks:
        return Done(message=f"there is no live table {statement.name}")
    found = session.catalog.live_table(statement.name)
    for feeding in session.catalog.queries_into(found.name):
        if len(feeding.sinks) > 1:
            raise NameFault(
                f"the query {feeding.name} writes into {feeding.sink}",
                hint=f"DROP QUERY {feeding.name};",
                span=statement.name.span,
            )
        forget_query(session, feeding.name)
    del session.catalog.sinks[key]
    session.live.forget(key)
    return Done(message=f"live table {found.name} dropped")


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
}
