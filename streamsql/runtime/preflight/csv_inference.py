"""Infers columns, types and reading options of delimited text, with Spark's own csv reader."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamsql.connectors.base import schema_text
from streamsql.definitions import Stream
from streamsql.errors import Note
from streamsql.language.statements.base import Column
from streamsql.language.tokens import quote as quoted
from streamsql.plan.statements.csv_guesses import decoded, fields, has_header, notes_of, quoting, separator
from streamsql.runtime.preflight.samples import Seen, as_frame, first_file, first_records


def csv_lines(stream: Stream, frame: Any) -> tuple[list[str], dict[str, str]]:
    """(the first lines of csv files as texts, the options under which Spark decodes the files).

    frame: the lines as a DataFrame of texts.
    """
    given = {k.casefold() for k, _ in stream.options}
    lines = first_records(frame)
    if given & {"encoding", "charset"}:
        encoding = stream.option("encoding") or stream.option("charset")
        return [line.decode(encoding, "replace") for line in lines], {}
    texts, encoding = decoded(lines)
    options = {"encoding": encoding} if encoding else {}
    if encoding.startswith("UTF-16"):  # Spark splits lines at single bytes, unless it reads a file as a whole
        first = first_file(frame)
        files = frame.sparkSession.read.format("binaryFile").load(first).collect() if first else []
        texts = bytes(files[0]["content"]).decode(encoding).lstrip("\ufeff").splitlines() if files else []
        options["multiLine"] = "true"
    return [text for text in texts if text.strip()], options


def of_csv_files(stream: Stream, frame: Any) -> Seen | None:
    """The schema of csv files; None when they have no lines. frame: their lines as a DataFrame of texts."""
    texts, options = csv_lines(stream, frame)
    return of_csv(stream, texts, frame.sparkSession, options) if texts else None


def of_csv(
    stream: Stream,
    texts: list[str],
    spark: Any,
    guessed: dict[str, str] | None = None,
    *,
    header: bool = True,
) -> Seen:
    """The schema of delimited lines; the options that are not given are inferred.

    guessed: options that are inferred already; header: whether the first line may be one.
    """
    given, guessed = {k.casefold() for k, _ in stream.options}, dict(guessed or {})
    quote = stream.option("quote", '"')[:1]
    sign = stream.option("sep") or stream.option("delimiter")
    if not given & {"sep", "delimiter"}:
        sign = separator(texts, quote)
        if sign not in ("", ","):
            guessed["sep"] = sign
    sign = sign if len(sign) == 1 else ","
    quotes = quoting(texts, sign, given, quote)
    guessed |= quotes.options
    lines = as_frame(quotes.records, spark)

    def read(**options: str) -> Any:
        reader = spark.read.options(inferSchema="true").options(**dict(stream.options))
        return reader.options(**guessed).options(**options).csv(lines)

    if header and "header" not in given:
        typed = _kinds(read(header="true")) != _kinds(read())
        if has_header(fields(quotes.records[:100], sign, quote), typed):
            guessed["header"] = "true"
    frame = read()
    types, changed = exact_types(frame.schema, read(inferSchema="false"))
    if changed:
        frame = spark.read.schema(types).options(**dict(stream.options)).options(**guessed).csv(lines)
    rows = [tuple(row) for row in frame.collect()]
    return Seen(types, rows, tuple(guessed.items()), (*notes_of(guessed), *changed))


def _kinds(frame: Any) -> list[str]:
    return [f.dataType.simpleString() for f in frame.schema.fields]


_WHOLE = "{c} RLIKE '^(0|-?[1-9][0-9]*)$'"
_DIGITS = "length(regexp_replace(regexp_replace({c}, '[eE].*$|[-.]', ''), '^0+', ''))"
_EXACT = {
    "tinyint": _WHOLE,
    "smallint": _WHOLE,
    "int": _WHOLE,
    "bigint": _WHOLE,
    "decimal": _WHOLE,
    # A DOUBLE holds each number of 15 digits; programs print its fractions with up to 17.
    "double": f"{{c}} RLIKE '^-?(0|[1-9][0-9]*)?([.][0-9]*)?([eE][-+]?[0-9]+)?$'"
    f" AND {_DIGITS} <= IF({{c}} RLIKE '[.eE]', 17, 15) OR NOT {{c}} RLIKE '^[-+.0-9]'",
    "timestamp": "NOT {c} RLIKE '[.][0-9]{{6}}[0-9]*[1-9]'",
}
"""For the types that Spark infers, the condition of the texts that come back from such a value: leading
zeros, plus signs, and digits that the type does not hold, would be lost.
"""


def exact_types(types: Any, texts: Any) -> tuple[Any, tuple[Note, ...]]:
    """(inferred types, in which a column is a STRING if one of its texts would be changed; notes about them).

    types: a StructType; texts: the same rows as a DataFrame with all columns as texts.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    short = {f.name: f"c{at}" for at, f in enumerate(types.fields)}
    measures = []
    for field in types.fields:
        exact, c = _EXACT.get(field.dataType.simpleString().partition("(")[0]), short[field.name]
        if exact:
            measures.append(f"min_by({c}, length({c})) FILTER (WHERE NOT ({exact.format(c=c)})) AS {c}")
    if not measures:
        return types, ()
    found = texts.toDF(*short.values()).selectExpr(*measures).collect()[0].asDict()
    changed = [f for f in types.fields if found.get(short[f.name]) is not None]
    fields = [StructField(f.name, StringType()) if f in changed else f for f in types.fields]
    return StructType(fields), tuple(_changed(f, found[short[f.name]]) for f in changed)


def exact_columns(columns: tuple[Column, ...], texts: Any) -> tuple[tuple[Column, ...], tuple[Note, ...]]:
    """The same as exact_types for inferred columns of a stream."""
    from pyspark.sql.types import StructType

    types, notes = exact_types(StructType.fromDDL(schema_text(columns)), texts)
    return tuple(Column(f.name, f.dataType.simpleString()) for f in types.fields), notes


def _changed(field: Any, text: str) -> Note:
    """The note about a column that stays a STRING, and one of the texts for which it does."""
    kind = field.dataType.simpleString().upper()
    return Note("ODD_VALUES", f"{field.name} stays STRING: as {kind}, {quoted(text)} would be changed")


def with_quoting(stream: Stream, frame: Any) -> tuple[Stream, tuple[Note, ...]]:
    """A stream of csv files without columns, with the encoding and the quotes that its lines show; and notes.

    frame: the lines of the files as a DataFrame of texts.
    """
    texts, options = csv_lines(stream, frame)
    given = {k.casefold() for k, _ in stream.options}
    sign = stream.option("sep") or stream.option("delimiter") or ","
    options |= quoting(texts, sign, given, stream.option("quote", '"')[:1]).options
    if not options:
        return stream, ()
    listed = ", ".join(f"{name} {quoted(value)}" for name, value in options.items())
    note = Note("CSV_OPTIONS", f"options of {stream.name}, as the lines of its files show: {listed}")
    return replace(stream, options=(*stream.options, *options.items())), (note,)
