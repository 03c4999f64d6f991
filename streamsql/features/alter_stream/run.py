"""Alters streams: defines the stream with its new columns, and starts the queries that read it again."""

from __future__ import annotations

import json
from dataclasses import replace

from streamsql.connectors import schema_registry
from streamsql.connectors.messages import SCHEMA
from streamsql.definitions import Stream
from streamsql.errors import Note
from streamsql.features.alter_stream.new_schema import check_places, check_types, gone, merged, with_fields
from streamsql.features.alter_stream.plan import Altered, NothingAdded
from streamsql.features.alter_stream.restarts import restarted
from streamsql.features.alter_stream.statement import AlterStream
from streamsql.language.statements.base import Column
from streamsql.language.tokens import quote_name
from streamsql.results import Done, Result
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.create_drop import checked_stream
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.csv_headers import header_notes, newest_file, of_folders


def _alter(parts: SessionParts, plan: Altered, statement: AlterStream) -> Result:
    stream = plan.stream
    if plan.added:
        entry, _ = checked_stream(parts, plan.define, statement)
        notes = () if parts.config.stand_ins else header_notes(entry)
    elif parts.config.stand_ins:
        return Done(message=f"the columns of {stream.name} are as a test gives them")
    else:
        entry, notes = _read_again(parts, plan, statement)
    if entry == stream:
        return Done(notes, f"the columns of {stream.name} are as they were: {_listed(stream.columns)}")
    parts.update(plan.of(entry).applied)
    parts.workspace.save()  # a console that is killed now starts the queries with the new columns
    notes = (*notes, *restarted(parts, entry.name, plan.readers))
    return Done(notes, f"stream {entry.name} altered: {_changes(stream, entry)}")


def _listed(columns: tuple[Column, ...]) -> str:
    return ", ".join(f"{c.name} {c.type}" for c in columns)


def _changes(before: Stream, after: Stream) -> str:
    types = {c.name.casefold(): c.type for c in before.columns}
    changes = []
    for column in after.columns:
        old = types.get(column.name.casefold())
        if old is None:
            changes.append(f"{column.name} {column.type} added")
        elif old.casefold() != column.type.casefold():
            changes.append(f"{column.name} {old} → {column.type}")
    return ", ".join(changes) or "the schema of its messages"


_OF_ONE_FILE = ("csv", "avro", "parquet", "orc")
"""Formats whose columns Spark takes from one of the files: here, from the newest."""


def _read_again(
    parts: SessionParts, plan: Altered, statement: AlterStream
) -> tuple[Stream, tuple[Note, ...]]:
    """(the stream with what its files or its registry show now, notes). Raises InputFault or RuleFault for
    columns that are not as they were.
    """
    stream, define = plan.stream, plan.define
    file = newest_file(stream) if stream.connector in _OF_ONE_FILE else None
    if file is not None:
        others = ((k, v) for k, v in stream.options if k.casefold() != "pathglobfilter")
        define = plan.of(replace(define.stream, options=(*others, ("pathGlobFilter", file.name))))
    elif stream.connector in ("parquet", "orc"):
        define = plan.of(replace(define.stream, options=(*stream.options, ("mergeSchema", "true"))))
    found, _ = checked_stream(parts, define, statement)
    if schema_registry.uses(stream) and not stream.inferred:
        return _with_declared(stream, found)
    names = gone(stream.columns, found.columns)
    if schema_registry.uses(stream) and names:
        schema = with_fields(found.option(SCHEMA), stream.option(SCHEMA), names)
        options = tuple((k, schema if k == SCHEMA else v) for k, v in found.options)
        found, _ = checked_stream(parts, plan.of(replace(define.stream, options=options)), statement)
    if stream.connector == "csv" and file is not None:
        folders = of_folders(file)
        of_file = (
            replace(s, columns=tuple(c for c in s.columns if c.name.casefold() not in folders))
            for s in (stream, found)
        )
        own, new = of_file
        check_places(own, new.columns, str(file), statement.clause)
    check_types(stream, found.columns, statement.clause)
    entry = replace(stream, columns=merged(stream.columns, found.columns))
    if schema_registry.uses(stream) and stream.option(SCHEMA) != found.option(SCHEMA):
        entry = replace(entry, options=found.options)
    return entry, _notes_of_gone(stream, names)


def _notes_of_gone(stream: Stream, names: list[str]) -> tuple[Note, ...]:
    if not names:
        return ()
    what, is_are = ", ".join(names), "is" if len(names) == 1 else "are"
    text = (
        f"{what} {is_are} no longer in the source of {stream.name}: it stays, and is NULL where it is missing"
    )
    return (Note("COLUMNS_GONE", text),)


def _with_declared(stream: Stream, found: Stream) -> tuple[Stream, tuple[Note, ...]]:
    """The same for a stream that declares columns of the schema of a registry: it has the newest schema, and
    its columns stay.
    """
    before, now = (_fields(s.option(SCHEMA)) for s in (stream, found))
    names = {c.name.casefold() for c in stream.columns}
    new = [name for name in now if name.casefold() not in names and name not in before]
    notes: tuple[Note, ...] = ()
    if new:
        add = f"ALTER STREAM {quote_name(stream.name)} ADD COLUMN {quote_name(new[0])} …"
        fields = f"the schema of {stream.name} has new fields, which it does not declare"
        text = f"{fields}: {', '.join(new)}; {add} adds one"
        notes = (Note("NEW_FIELDS", text),)
    if stream.option(SCHEMA) == found.option(SCHEMA):
        return stream, notes
    return replace(stream, options=found.options), notes


def _fields(schema: str) -> list[str]:
    """The names of the fields of an Avro schema that has been checked."""
    return [field["name"] for field in json.loads(schema)["fields"]] if schema else []


def _nothing_added(parts: SessionParts, plan: NothingAdded, statement: AlterStream) -> Result:
    return Done(message=f"{plan.stream.name} has these columns already")


PLANS: Answers = {Altered: _alter, NothingAdded: _nothing_added}
