"""Compares the columns of a stream with those that its source shows now."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from streamsql.definitions import Stream
from streamsql.errors import InputFault, RuleFault, Span
from streamsql.language.statements.base import Column
from streamsql.language.struct_types import is_wider
from streamsql.language.tokens import quote_name


def merged(before: Iterable[Column], found: Iterable[Column]) -> tuple[Column, ...]:
    """The columns of before, with wider types where found has these, and the new ones behind them."""
    by_name = {c.name.casefold(): c for c in found}
    kept = [replace(c, type=by_name.pop(c.name.casefold(), c).type) for c in before]
    return (*kept, *by_name.values())


def gone(before: Iterable[Column], found: Iterable[Column]) -> list[str]:
    """The names of the columns of before that found does not have."""
    names = {c.name.casefold() for c in found}
    return [c.name for c in before if c.name.casefold() not in names]


def with_fields(schema: str, before: str, names: Iterable[str]) -> str:
    """An Avro schema of a record with fields of an older one, so that both are read by it: NULL where they
    are missing. names: of the fields.
    """
    wanted, now = {name.casefold() for name in names}, json.loads(schema)
    for field in json.loads(before)["fields"]:
        if field["name"].casefold() in wanted:
            kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
            kinds = ["null", *(kind for kind in kinds if kind != "null")]
            now["fields"].append(field | {"type": kinds, "default": None})
    return json.dumps(now)


def check_types(stream: Stream, found: tuple[Column, ...], span: Span) -> None:
    """Raise RuleFault where a column has another type now, which does not hold all values that it had."""
    by_name = {c.name.casefold(): c for c in found}
    pairs = [(c, by_name[c.name.casefold()]) for c in stream.columns if c.name.casefold() in by_name]
    retyped = [(old, new) for old, new in pairs if not is_wider(old.type, new.type)]
    if not retyped:
        return
    columns = merged(stream.columns, found)
    proposed = replace(stream, columns=columns).sql().removeprefix("CREATE")
    listed = ", ".join(f"{old.name} {old.type} → {new.type}" for old, new in retyped)
    raise RuleFault(
        f"columns of {stream.name} have another type now: {listed}",
        detail="rows that queries have kept are of the old type; the stream and its queries are as before",
        hint=f"CREATE OR REPLACE STREAM {quote_name(stream.name)} with the new types, and START QUERY … FROM "
        "BEGINNING for each query that reads it",
        proposal=f"CREATE OR REPLACE{proposed};",
        span=span,
        code="WRONG_TYPE",
    )


def check_places(stream: Stream, found: tuple[Column, ...], file: str, span: Span) -> None:
    """Raise InputFault where the columns of a csv file, which are taken by their places, are not those of the
    stream and others behind them. found: its columns; file: its name.
    """
    names, declared = ([c.name.casefold() for c in columns] for columns in (found, stream.columns))
    if names[: len(declared)] == declared:
        return
    header, columns = ", ".join(c.name for c in found), ", ".join(c.name for c in stream.columns)
    moved = sorted(names) == sorted(declared)
    raise InputFault(
        f"the columns of {file} are in another order than those of {stream.name}"
        if moved
        else f"the columns of {file} are not those of {stream.name}, with new ones behind them",
        detail=f"the header: {header}\nthe columns: {columns}",
        hint="a stream reads files with one header: move the file to a folder of its own, for another stream",
        span=span,
        code="HEADER_MISMATCH",
    )
