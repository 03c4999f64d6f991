"""COMPARE: the rows of a live table against those of its staged change, at the same point of their input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamsql.connectors.registry import ENDLESS
from streamsql.definitions import before_name, staged_name
from streamsql.errors import NameFault, Note, RuleFault, did_you_mean
from streamsql.features.change.promote_query import check_runs
from streamsql.features.change.statement import Compare
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.results import Compared, counted, unique_names
from streamsql.runtime.engine.row_differences import differences, same, with_counts
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.parts import SessionParts

MOST = 10_000
"""Up to so many rows that differ are compared to a tolerance of floating-point numbers, and can be shown."""
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Comparison:
    """rows: how many there are before and after; gone, new, changed: how many are only before, only after,
    and in both with other values; pairs: of these, (the row before or None, the row after or None), the
    first ones; columns: those that are compared.
    """

    rows: tuple[int, int]
    gone: int
    new: int
    changed: int
    pairs: Sequence[tuple[Row | None, Row | None]]
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]

    @property
    def size(self) -> int:
        return self.gone + self.new + self.changed


def compare(parts: SessionParts, statement: Compare) -> Compared:
    """The differences as a table. Raises faults, Cancelled."""
    notes, comparison = comparison_of(parts, statement)
    rows = list(_shown(comparison, statement.limit))
    columns = unique_names(("change", "differs", *comparison.columns))
    numeric = (False, False, *comparison.numeric)
    return Compared((*notes, _summary(comparison, statement.limit)), columns, rows, numeric,
                    differing=comparison.size)  # fmt: skip


def comparison_of(parts: SessionParts, statement: Compare) -> tuple[list[Note], Comparison]:
    """(notes about the columns, the differences). Raises faults, Cancelled."""
    names = _sides(parts, statement)
    before, after = at_same_point(parts, names, statement)
    common, notes = _common_columns(before, after, statement)
    keys = _keys(parts, names, statement, common)
    return notes, _comparison(parts, before, after, common, keys)


def rows_of_new(parts: SessionParts, statement: Compare) -> int:
    """How many rows a live table has that a set of changes creates, once it has processed all available
    input. Raises faults, Cancelled.
    """
    name = staged_name(statement.name.value).casefold()
    _check_comparable(parts, name, statement)
    parts.queries.wait([name], parts.cancel, idle=True, timeout=None)
    return int(parts.live[name].now().count)


def _sides(parts: SessionParts, statement: Compare) -> list[str]:
    """The folded names of the live tables that are compared. Of a query into a sink they are hidden: the
    rows that it writes, and those that its staged change would write.
    """
    if statement.query:
        query = parts.catalog.query(statement.name).name
        return [staged_name(before_name(query)).casefold(), staged_name(query).casefold()]
    table = parts.catalog.live_table(statement.name).name
    return [table.casefold(), staged_name(table).casefold()]


def at_same_point(parts: SessionParts, names: list[str], statement: Compare) -> tuple[Any, Any]:
    """(the rows before, those of the staged change), when both have processed the same input: both
    were idle, and then idle again without a micro-batch in between. Raises faults, Cancelled.
    """
    for name in names:
        _check_comparable(parts, name, statement)
    changed = statement.name.value
    parts.engine.doing = f"waiting until {changed} and its staged change have read the same input"
    try:
        seen: list[Any] = []
        while True:
            parts.queries.wait(names, parts.cancel, idle=True, timeout=None)
            now = [parts.live[name].now() for name in names]
            if seen and all(at is before for at, before in zip(now, seen, strict=True)):
                return now[0], now[1]
            seen = now
    finally:
        parts.engine.doing = ""


def _check_comparable(parts: SessionParts, name: str, statement: Compare) -> None:
    """Raise RuleFault for a query that is not to be compared."""
    query = parts.catalog.query(Name(name)).name
    why = "both queries must run, to be compared at the same point of their input"
    check_runs(parts, query, f"the query {query}", why, statement.name.span)
    runs = (parts.queries.all.get(q.name.casefold()) for q in parts.catalog.upstream(query))
    streams = (s for run in runs if run is not None for s in run.plan.reads.streams)
    endless = next((s for s in streams if s.connector in ENDLESS), None)
    if endless is not None:
        raise RuleFault(
            f"{query} cannot be compared: {endless.name} always has new rows",
            detail="the two queries never stand at the same point of their input",
            hint=f"SELECT * FROM {quote_name(staged_name(query))};",
            span=statement.name.span,
            code="QUERY_RUNNING",
        )


def _common_columns(before: Any, after: Any, statement: Compare) -> tuple[list[str], list[Note]]:
    """(the columns that both have, notes about the others). Raises RuleFault without any."""
    old = {field.name.casefold(): field for field in before.schema.fields}
    new = {field.name.casefold(): field for field in after.schema.fields}
    common = [field.name for key, field in new.items() if key in old]
    if not common:
        raise RuleFault(
            "the live table and its staged change have no column in common",
            hint=f"SELECT * FROM {quote_name(staged_name(statement.name.value))};",
            span=statement.name.span,
            code="WRONG_COLUMNS",
        )
    notes = []
    for what, one, other in (("only before", old, new), ("only after", new, old)):
        names = [field.name for key, field in one.items() if key not in other]
        if names:
            notes.append(Note("COLUMNS_DIFFER", f"columns {what}, not compared: {', '.join(names)}"))
    for name in common:
        types = [fields[name.casefold()].dataType.simpleString() for fields in (old, new)]
        if types[0] != types[1]:
            notes.append(Note("COLUMNS_DIFFER", f"{name} is {types[0]} before and {types[1]} after"))
    return common, notes


def _keys(parts: SessionParts, names: list[str], statement: Compare, common: list[str]) -> list[int]:
    """The places of the columns that identify a row: those of KEY, else the keys of the live table or sink.
    Raises NameFault.
    """
    places = {name.casefold(): place for place, name in enumerate(common)}
    for name in statement.key:
        if name.value.casefold() not in places:
            raise NameFault(
                f"there is no column {name} to compare",
                hint=did_you_mean(name.value, common) or f"columns: {', '.join(common)}",
                span=name.span,
                code="UNKNOWN_COLUMN",
            )
    if statement.key:
        return [places[name.value.casefold()] for name in statement.key]
    rows = [parts.live[name] for name in names]
    keys = [{key.casefold() for key in of.keys or ()} for of in rows]
    own = keys[0] if keys[0] == keys[1] and not rows[0].hidden else set()
    own = own or {key.casefold() for key in parts.catalog.sinks[names[0]].key}
    return [places[key] for key in own if key in places] if own <= places.keys() else []


def _comparison(
    parts: SessionParts, before: Any, after: Any, common: list[str], keys: list[int]
) -> Comparison:
    """The differences in the common columns. keys: the places of those that identify a row, [] for none."""
    from pyspark.sql import functions as F

    frames = [at.frame(parts.spark).select(*map(quote_name, common)) for at in (before, after)]
    first, second = _of_same_types(frames)
    different = with_counts(first, second).where("in_first <> in_second")
    order = [F.col(f"c{n}") for n in keys] or [F.col(f"c{n}") for n in range(len(common))]
    rows = collect(different.orderBy(*order).limit(MOST + 1))
    pairs = _pairs(rows.rows[:MOST], keys, len(common))
    numeric = tuple(rows.numeric[: len(common)])
    counts = (before.count, after.count)
    if len(rows.rows) <= MOST:
        gone = sum(new is None for _, new in pairs)
        new = sum(old is None for old, _ in pairs)
        return Comparison(counts, gone, new, len(pairs) - gone - new, pairs, tuple(common), numeric)
    per_key = different.groupBy(*[f"c{n}" for n in keys or range(len(common))]).agg(
        F.expr("sum(greatest(in_first - in_second, 0)) AS gone"),
        F.expr("sum(greatest(in_second - in_first, 0)) AS new"),
    )
    changed = "least(gone, new)" if keys else "0"
    gone, new, both = per_key.selectExpr(
        f"sum(gone - {changed})", f"sum(new - {changed})", f"sum({changed})"
    ).first()
    return Comparison(counts, gone, new, both, pairs, tuple(common), numeric)


def _of_same_types(frames: list[Any]) -> list[Any]:
    """The frames with one type for each column: where these are no two numbers, as text."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as t

    columns: list[list[Any]] = [[], []]
    for one, other in zip(*(frame.schema.fields for frame in frames), strict=True):
        kinds = (one.dataType, other.dataType)
        as_text = kinds[0] != kinds[1] and not all(isinstance(kind, t.NumericType) for kind in kinds)
        for of, field in zip(columns, (one, other), strict=True):
            column = F.col(quote_name(field.name))
            of.append(column.cast("string").alias(field.name) if as_text else column)
    return [frame.select(*of) for frame, of in zip(frames, columns, strict=True)]


def _pairs(rows: Sequence[Row], keys: list[int], width: int) -> list[tuple[Row | None, Row | None]]:
    """(row before, row after) of rows that differ, None where there is none. With keys, those with the same
    key are one pair; equal to a tolerance, they do not differ.
    """
    sides: dict[str, tuple[list[Row], list[Row]]] = {}
    for row in rows:
        values, (first, second) = row[:width], row[width:]
        old, new = sides.setdefault(repr([values[n] for n in keys]), ([], []))
        old += [values] * max(0, first - second)
        new += [values] * max(0, second - first)
    pairs: list[tuple[Row | None, Row | None]] = []
    if not keys:
        old, new = differences(*sides.get("[]", ([], [])))
        return [*((row, None) for row in old), *((None, row) for row in new)]
    for old, new in sides.values():
        both = min(len(old), len(new))
        for one, other in zip(old[:both], new[:both], strict=True):
            if not all(same(a, b) for a, b in zip(one, other, strict=True)):
                pairs.append((one, other))
        pairs += [(row, None) for row in old[both:]] + [(None, row) for row in new[both:]]
    return pairs


def _shown(comparison: Comparison, limit: int) -> Sequence[Row]:
    """The rows of the table, of the first pairs."""
    rows: list[Row] = []
    for old, new in comparison.pairs[:limit]:
        if old is None or new is None:
            rows.append(("only after" if old is None else "only before", "", *(new or old or ())))
            continue
        places = [n for n, (a, b) in enumerate(zip(old, new, strict=True)) if not same(a, b)]
        differs = ", ".join(comparison.columns[n] for n in places)
        rows += [("before", differs, *old), ("after", differs, *new)]
    return rows


def _summary(comparison: Comparison, limit: int) -> Note:
    """The totals in words."""
    before, after = comparison.rows
    rows = f"{counted(before, 'row')} before, {after:,} after"
    if not comparison.size:
        return Note("COMPARED", f"{rows}: no difference")
    kinds = (
        (comparison.gone, "only before"),
        (comparison.new, "only after"),
        (comparison.changed, "changed"),
    )
    text = ", ".join(f"{number:,} {what}" for number, what in kinds if number)
    shown = min(limit, len(comparison.pairs))
    more = f"; the first {shown:,} are shown: LIMIT" if comparison.size > shown else ""
    return Note("COMPARED", f"{rows}: {text}{more}")
