"""Infers columns, types and reading options from the first records of a source, with Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from streamsql.connectors.registry import connector
from streamsql.definitions import Stream
from streamsql.errors import InputFault, Note
from streamsql.language.statements.base import Column, Name
from streamsql.language.tokens import quote
from streamsql.plan.statements.csv_guesses import separator
from streamsql.plan.statements.queries import SAMPLE
from streamsql.plan.statements.schema_guesses import (
    Leaf,
    Typed,
    event_time,
    in_order,
    typed,
)
from streamsql.runtime.preflight.csv_inference import of_csv, of_csv_files
from streamsql.runtime.preflight.samples import Seen, as_frame, first_file, first_texts

# The replacement character of invalid UTF-8, and control characters that a text does not contain.
_BINARY = re.compile(r"[\ufffd\x00-\x08\x0e-\x1f]")
_CORRUPT = "_corrupt_record"


def of_lines(stream: Stream, frame: Any) -> Seen | None:
    """The schema of lines of files, in the format of their connector; None when there are none."""
    if stream.connector == "csv":
        return of_csv_files(stream, frame)
    texts = [text for text in first_texts(frame) if text.strip()]
    if not texts:
        return None
    # A list, or an object that begins on a line of its own, is not one record a line.
    long = texts[0].lstrip().startswith("[") or texts[0].strip() == "{"
    seen = (_of_long_json(stream, frame) if long else None) or of_json(stream, texts, frame.sparkSession)
    if seen is None:
        raise InputFault(
            "the records are not JSON objects",
            detail=f"the first is {texts[0][:80]}",
            hint="PREVIEW USING csv or text shows them in another format",
            code="MISSING_COLUMNS",
        )
    return seen


def of_messages(stream: Stream, texts: list[str], spark: Any) -> tuple[str, Seen | None]:
    """(format, schema) of messages; the schema is None for a format without columns. A given format is
    kept.
    """
    if stream.format not in ("", "json", "csv"):
        return stream.format, None
    if not stream.format and any(map(_BINARY.search, texts)):
        return "raw", None
    if stream.format != "csv":
        seen = of_json(stream, texts, spark)
        if seen and (stream.format or seen.missed * 2 <= len(texts)):
            return "json", seen
        if stream.format:
            raise InputFault(
                "the messages are not JSON objects",
                detail=f"the first is {texts[0][:80]}",
                code="MISSING_COLUMNS",
            )
    fields_alike = len(texts) > 1 and bool(separator(texts))
    if stream.format == "csv" or (fields_alike and not stream.format):
        return "csv", of_csv(stream, texts, spark, header=False)
    return stream.format, None


def of_frame(frame: Any) -> Seen | None:
    """The schema of a DataFrame of a source that knows its columns; None when it has none."""
    if not frame.schema.fields:
        return None
    values = [] if frame.isStreaming else [tuple(row) for row in frame.limit(SAMPLE).collect()]
    return Seen(frame.schema, values)


def of_json(stream: Stream, texts: list[str], spark: Any) -> Seen | None:
    """The schema of JSON objects; None when no text is one."""
    frame = spark.read.options(**dict(stream.options)).json(as_frame(texts, spark))
    types, values = _without_corrupt(frame)
    if not types.fields:
        return None
    wrong = sum(all(v is None for v in row) for row in values)
    text = f"{wrong} of the first {len(texts)} records are not JSON objects, or are empty"
    notes = (Note("MALFORMED_RECORDS", text),) if wrong else ()
    return Seen(types, values, (), notes, wrong, tuple(in_order([f.name for f in types.fields], texts)))


def _without_corrupt(frame: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    """(the columns, the rows) without Spark's own column for malformed records."""
    from pyspark.sql.types import StructType

    places = [i for i, f in enumerate(frame.schema.fields) if f.name != _CORRUPT]
    types = StructType([frame.schema.fields[i] for i in places])
    if not places:
        return types, []
    return types, [tuple(row[i] for i in places) for row in frame.limit(SAMPLE).collect()]


def _of_long_json(stream: Stream, frame: Any) -> Seen | None:
    """The schema of the first file, read as JSON objects of several lines, or as a list of them."""
    first = first_file(frame)
    if not first:
        return None
    option = ("multiLine", "true")
    options = {k: v for k, v in (*stream.options, option) if k.casefold() != "path"}
    types, values = _without_corrupt(frame.sparkSession.read.options(**options).json(first))
    return Seen(types, values, (option,)) if types.fields else None


def type_sql(kind: Any) -> str:
    """A type of Spark as DDL, with the names in it quoted if necessary."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField("x", kind)]).toDDL().removeprefix("x ")


# ---- the proposed stream -------------------------------------------------------------------------


def suggested(stream: Stream, seen: Seen, folders: Sequence[Any] = ()) -> tuple[Stream, tuple[Note, ...]]:
    """(the stream with the inferred columns, options and event time; notes about it).

    folders: the fields of partition folders.
    """
    notes = list(seen.notes)
    listed = list(enumerate(seen.types.fields))
    if seen.order:
        listed.sort(key=lambda f: seen.order.index(f[1].name))
    columns: dict[str, Column] = {}
    types: dict[str, Any] = {}
    values: dict[str, Sequence[Any]] = {}
    for at, field in [*listed, *((-1, f) for f in folders)]:
        twin = columns.get(field.name.casefold())
        if twin:
            text = f"{field.name} is omitted: Spark does not distinguish it from {twin.name}"
            notes.append(Note("COLUMN_OMITTED", text))
            continue
        columns[field.name.casefold()] = Column(field.name, type_sql(field.dataType))
        types[field.name] = field.dataType
        values[field.name] = [row[at] for row in seen.values] if at >= 0 else ()
    # A number in quotes is no number in JSON.
    guesses = typed(tuple(columns.values()), values, numbers="csv" in (stream.connector, stream.format))
    for guess in guesses:
        if guess.many in ("TIMESTAMP", "DATE"):
            name = guess.column.name
            values[name] = [None if v in guess.odd else v for v in values[name]]
    named = tuple(t.column for t in guesses)
    leaves = [leaf for c in named for leaf in _leaves((c.name,), c.type, types[c.name], values[c.name])]
    proposal = replace(
        stream,
        # A source that knows its columns itself does not need them.
        columns=() if connector(Name(stream.connector)).open_options else named,
        options=(*stream.options, *seen.options),
        watermark=event_time(leaves, [c.name for c in named], odd=[t.column.name for t in guesses if t.many]),
    )
    return proposal, (*notes, *(_odd_values(t) for t in guesses if t.many))


def _odd_values(typed: Typed) -> Note:
    """The note about values that do not have the type of the others in their column."""
    shown = ", ".join(quote(v) for v in typed.odd[:3]) + (", …" if len(typed.odd) > 3 else "")
    of, kind = f"many of {typed.of} records", typed.many
    text = f"{typed.column.name} stays STRING: {of} have a {kind}, but not {shown}"
    return Note("ODD_VALUES", f"{text}; as a {kind}, ON MALFORMED SKIP leaves their rows out")


def _leaves(path: tuple[str, ...], kind: str, type: Any, values: Sequence[Any]) -> Iterator[Leaf]:
    """A column, or the fields inside it."""
    from pyspark.sql.types import StructType

    if not isinstance(type, StructType):
        yield Leaf(path, kind, tuple(values))
        return
    for at, field in enumerate(type.fields):
        inside = [None if v is None else v[at] for v in values]
        yield from _leaves((*path, field.name), type_sql(field.dataType), field.dataType, inside)
