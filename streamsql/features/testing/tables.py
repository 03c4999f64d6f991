"""The rows that a test compares: those of tables, and the expected ones under the types of the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamsql.calls import run
from streamsql.definitions import Sink, Stream
from streamsql.errors import NameFault, RuleFault, StreamsqlError, did_you_mean
from streamsql.features.testing.bench import Bench
from streamsql.features.testing.further_rows import all_rows
from streamsql.language.statements.base import Fragment, Name
from streamsql.language.statements.select import Select
from streamsql.language.tokens import quote_name
from streamsql.language.values_rows import rows_of_values
from streamsql.plan import planner, plans
from streamsql.results import Result, Rows, RowStream
from streamsql.runtime.engine.row_differences import DOUBLE, FLOAT
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.live.result_views import values

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """columns: names and types; rows: at this moment. numeric: of each column."""

    columns: tuple[tuple[str, str], ...]
    rows: Sequence[Row]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def digits(self) -> tuple[int, ...]:
        """How many digits of the floating-point numbers of each column count."""
        return tuple(FLOAT if "float" in kind else DOUBLE for _, kind in self.columns)

    def of(self, columns: Sequence[Name], place: Name) -> Table:
        """These columns of the table, all without any. Raises NameFault. place: the name of the table."""
        if not columns:
            return self
        by_name = {name.casefold(): at for at, name in enumerate(self.names)}
        for column in columns:
            if column.value.casefold() not in by_name:
                raise NameFault(
                    f"{place} has no column {column}",
                    hint=did_you_mean(column.value, self.names) or f"columns: {', '.join(self.names)}",
                    span=column.span,
                    code="UNKNOWN_COLUMN",
                )
        chosen = [by_name[c.value.casefold()] for c in columns]
        rows = [tuple(row[at] for at in chosen) for row in self.rows]
        return Table(tuple(self.columns[at] for at in chosen), rows)


def table_of(bench: Bench, name: Name) -> Table:
    """The rows of a live table, sink, table or view. Raises NameFault or RuleFault at the name."""
    catalog = bench.session.catalog
    sink = catalog.sinks.get(name.value.casefold())
    if sink is not None:
        return _table_of_sink(bench, sink, name)
    if isinstance(catalog.relation(name.value), Stream):
        raise RuleFault(
            f"{name} is a stream: EXPECT compares live tables, sinks, tables and views",
            hint=f"CREATE LIVE TABLE its_rows AS SELECT * FROM {quote_name(name.value)};",
            span=name.span,
            code="WRONG_KIND",
        )
    spark = bench.session.spark
    if name.value.casefold() not in catalog.tables and not spark.catalog.tableExists(name.value):
        names = [s.name for s in catalog.sinks.values() if not s.owner]
        names += [t.name for t in catalog.tables.values()]
        raise NameFault(
            f"there is no live table, sink, table or view {name}",
            hint=did_you_mean(name.value, names) or _listed(names),
            span=name.span,
            code="UNKNOWN_RELATION",
        )
    frame = spark.table(name.value)
    return Table(_columns(frame.schema), collect(frame).rows)


def rows_of_sink(bench: Bench, name: Name) -> tuple[Sink, Any]:
    """The live table or sink of that name, with its LiveRows. Raises NameFault or RuleFault at the name."""
    catalog = bench.session.catalog
    sink = catalog.sinks.get(name.value.casefold())
    if sink is None:
        names = [s.name for s in catalog.sinks.values() if not s.owner]
        raise NameFault(
            f"there is no live table or sink {name}",
            hint=did_you_mean(name.value, names) or _listed(names),
            span=name.span,
            code="UNKNOWN_LIVE_TABLE",
        )
    rows = all_rows(bench.session, sink.name)
    if not rows:
        raise RuleFault(
            f"no query of the pipeline writes into {sink.name}",
            hint=f"INSERT INTO {quote_name(sink.name)} SELECT …;",
            span=name.span,
            code="NO_QUERY",
        )
    return sink, rows[0]


def _table_of_sink(bench: Bench, sink: Sink, name: Name) -> Table:
    columns = _columns(rows_of_sink(bench, name)[1].schema)
    names = [n for n, _ in columns]
    written = [
        row for rows in all_rows(bench.session, sink.name) for row in _in_columns(rows, names, bench.zone)
    ]
    if sink.stands_for and sink.stands_for.keeps_in_step and columns[0][0] == "_op":
        return Table(columns[1:], _applied(written))
    return Table(columns, written)


def _in_columns(rows: Any, names: list[str], zone: str) -> list[Row]:
    """The rows of one writer in the columns of a sink; a column that it has not is NULL."""
    table = rows.rows()[0]
    values_of_rows = [] if table is None else values(table, rows.schema, zone)
    own = [f.name for f in rows.schema.fields]
    if own == names or len(own) == len(names) and not set(own) & set(names):
        return [tuple(row) for row in values_of_rows]
    return [tuple(row[own.index(n)] if n in own else None for n in names) for row in values_of_rows]


def _applied(changes: Sequence[Row]) -> list[Row]:
    """The rows of a sink to which changes were applied."""
    rows: list[Row] = []
    for op, *values_of_row in changes:
        row = tuple(values_of_row)
        if op in ("+I", "+U"):
            rows.append(row)
        elif row in rows:
            rows.remove(row)
    return rows


def selected(bench: Bench, text: str) -> Table:
    """The rows of a query over tables. Raises what the query raises."""
    parts = bench.parts
    plan = planner.plan(Select(query=Fragment(text), text=text), parts.context())
    assert isinstance(plan, plans.Collect)
    frame = run(plan.program, parts.env(plan.program, plan.reads))
    return Table(_columns(frame.schema), collect(frame).rows)


def _listed(names: list[str]) -> str:
    return f"there are: {', '.join(names[:8])}" if names else "the pipeline defines none"


def _columns(schema: Any) -> tuple[tuple[str, str], ...]:
    return tuple((f.name, f.dataType.simpleString()) for f in schema.fields)


def expected_rows(
    bench: Bench, query: Fragment | None, columns: Sequence[tuple[str, str]], place: Name
) -> Sequence[Row]:
    """The rows of a query under these columns (name and type). place: the table that is compared. Raises
    RuleFault for another number of columns, and what the query raises.
    """
    if query is None:
        return []
    for width, span in rows_of_values(query.text):
        if width != len(columns):
            raise _wrong_width(width, columns, place, Name("", query.origin.span(span)))
    select = Select(query=query, text=query.text, span=query.span, origin=query.origin)
    parts = bench.parts
    with query.origin.errors():
        plan = planner.plan(select, parts.context())
    if not isinstance(plan, plans.Collect):  # over a stream
        result = _whole(bench.execute(select))
        if len(result.columns) != len(columns):
            raise _wrong_width(len(result.columns), columns, place, Name("", query.span))
        return result.rows
    try:
        frame = run(plan.program, parts.env(plan.program, plan.reads))
        if len(frame.columns) != len(columns):
            raise _wrong_width(len(frame.columns), columns, place, Name("", query.span))
        names = frame.columns
        if len({n.casefold() for n in names}) < len(names):
            names = [f"c{at}" for at in range(len(columns))]
            frame = frame.toDF(*names)
        casts = (
            f"CAST({quote_name(n)} AS {kind}) AS c{at}"
            for at, (n, (_, kind)) in enumerate(zip(names, columns, strict=True))
        )
        return collect(frame.selectExpr(*casts)).rows
    except StreamsqlError:
        raise
    except Exception as error:
        fault = translate(error, select, parts.catalog.relation_names())
        fault.span = fault.span or query.span
        raise fault from error


def _whole(result: Result) -> Rows:
    """All rows of a SELECT."""
    if isinstance(result, RowStream):
        result = result.whole()
    assert isinstance(result, Rows)
    return result


def _wrong_width(width: int, columns: Sequence[tuple[str, str]], place: Name, at: Name) -> RuleFault:
    listed = ", ".join(name for name, _ in columns)
    return RuleFault(
        f"the expected rows have {width} column{'' if width == 1 else 's'}, and {place} has {len(columns)}",
        hint=f"EXPECT {quote_name(place.value)} ({listed}) VALUES (…)",
        span=at.span,
        code="WRONG_COLUMNS",
    )
