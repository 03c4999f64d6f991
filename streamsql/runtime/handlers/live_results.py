"""Results that refresh: WATCH of a live table, and at a prompt a SELECT over a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from streamsql.calls import Call, Lit
from streamsql.errors import NameFault, QueryFault, RuleFault, Span, did_you_mean
from streamsql.language.statements.base import Name
from streamsql.language.statements.watch import Chart, Watch
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.query_facts import QueryFacts
from streamsql.results import COMBINING, Live, Snapshot
from streamsql.runtime.engine.arrow_rows import live_table_arrow
from streamsql.runtime.explanations import explanations
from streamsql.runtime.handlers.refresh_remarks import remark_line
from streamsql.runtime.live.result_views import (
    RETAINED_CHANGES,
    RETAINED_FOR_PROGRAM,
    ChangesView,
    TableView,
)
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.facts import facts_of
from streamsql.runtime.queries.run import GOING_ON, Running
from streamsql.runtime.queries.start import end_transient, start_query
from streamsql.runtime.staged_progress import percent_staged
from streamsql.runtime.workspace.generations import Generations, rows_in
from streamsql.runtime.workspace.owned_folders import write_owner_file

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import LiveRows

SELECT = "SELECT"
"""The title of the result of a SELECT, whose query has a name that nobody has typed."""
STOPPED = "its query was stopped; CREATE LIVE TABLE name AS SELECT … keeps one running"
TRANSIENT_ROWS = 100_000
"""The number of rows that a SELECT over a stream keeps at a prompt; older ones are only counted."""


class Tables(Protocol):
    """The live tables that can be watched."""

    def get(self, name: str) -> Any:
        """The rows of a live table; None if it has no query."""

    def follow(self, name: str) -> Callable[[], None]:
        """Follow what others write into its rows. Returns the function that ends that."""


def watch(statement: Watch, parts: SessionParts, tables: Tables | None = None) -> Live:
    """WATCH name. tables: instead of those of the session. Raises NameFault when it is not a live table, or
    does not have a column of CHART.
    """
    assert statement.name is not None
    entry, tables = parts.catalog.live_table(statement.name), tables or parts.live
    rows = tables.get(entry.name.casefold())
    if rows is None:
        raise NameFault(
            f"the live table {entry.name} has no query yet",
            hint=f"INSERT INTO {quote_name(entry.name)} SELECT …",
            span=statement.name.span,
            code="NO_QUERY",
        )
    feeding = parts.catalog.writers_of(entry.name)[0]
    current = lambda: parts.queries.all.get(feeding.name.casefold())  # noqa: E731  a restart is another run

    key = entry.name.casefold()
    newest = (lambda: parts.live.loaded(key)) if tables is parts.live else lambda: None
    live = shown_as(live_of(entry.name, rows, current, parts, newest), statement, rows, entry.name)
    ends = tables.follow(key)

    def close() -> None:
        ends()
        live.close()

    def stays() -> str:
        running = current()
        if running is None or running.status() not in GOING_ON:
            return ""
        return f"{entry.name} keeps refreshing; WATCH {quote_name(entry.name)}; shows it again"

    if parts.config.read_only:
        # "running elsewhere" is shown as running: the status has no room for more.
        word = lambda: parts.workspace.past(feeding.name).status.partition(" ")[0]  # noqa: E731
        live = replace(live, status=lambda: QueryFacts(entry.name, word()))
    return replace(live, close=close, said=stays)


def shown_as(live: Live, statement: Watch, rows: LiveRows, title: str) -> Live:
    """A result in the form that WATCH asks for. Raises NameFault or RuleFault for a chart that it has not."""
    if statement.chart is None:
        return replace(live, every=statement.every, mode="changes" if statement.changes else "table")
    columns, combine = _drawn(statement.chart, rows, title)
    return replace(live, every=statement.every, mode="chart", chart=columns, combine=combine)


def _drawn(chart: Chart, rows: LiveRows, title: str) -> tuple[tuple[str, ...], str]:
    """(the columns of a chart: x, y and those that tell its lines apart; how values with equal x on a line
    become one, "" for the default). The y of count(*) is x.
    """
    if chart.x is None:
        columns: tuple[str, ...] = _two_columns(title, rows, chart.span)
    else:
        written = f"{chart.how}({chart.y})"
        if chart.how and written.casefold() in (f.name.casefold() for f in rows.schema.fields):
            chart = replace(chart, y=replace(chart.how, value=written), how=None)  # a column of that name
        named = (chart.x, chart.y or chart.x, *((chart.series,) if chart.series else ()))
        columns = tuple(_column(name, rows, title) for name in named)
    combine = _combining(chart.how, of_rows=chart.y is None) if chart.how else ""
    if chart.y is not None and not combine.startswith("count"):
        _check_number(chart.y, columns[1], rows)
    if combine:
        return columns, combine
    if len(columns) == 2 and not rows.hidden:
        # A line for each of the other keys: else values of several keys would be joined to one line.
        columns += tuple(key for key in rows.keys or () if key not in columns)
    return columns, ""


def _combining(how: Name, *, of_rows: bool) -> str:
    """The function that makes one value of several. of_rows: its argument is `*`. Raises RuleFault."""
    word = how.value.casefold()
    if word not in COMBINING or (of_rows and word != "count"):
        raise RuleFault(
            f"a chart has no {word}(*)" if of_rows else f"a chart has no function {how}",
            hint=f"it has {', '.join(COMBINING)} of a column, and count(*)",
            span=how.span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    return "count(*)" if of_rows else word


def _of_refresh(running: Running, parts: SessionParts, zone: str) -> QueryFacts:
    """What a footer says of a live table over live tables. In a script it is over once nothing more comes."""
    status, refreshes = facts_of(running, zone), parts.queries.refreshes
    if status.over:
        return status
    status = replace(status, error=remark_line(running.name, parts))
    feeding = [parts.queries.all.get(key) for key in refreshes.feeding(*running.plan.query.inputs)]
    ended = all(query is None or query.over for query in feeding)
    over = ended and not parts.config.interactive and refreshes.settled(running.handle)
    return replace(status, status="finished") if over else status


def _column(name: Name, rows: LiveRows, table: str) -> str:
    """The name of a column as the table spells it. Raises NameFault."""
    columns = {f.name.casefold(): f.name for f in rows.schema.fields}
    column = columns.get(name.value.casefold())
    if column is None:
        raise NameFault(
            f"{table} has no column {name}",
            hint=did_you_mean(name.value, columns.values()) or f"columns: {', '.join(columns.values())}",
            span=name.span,
            code="UNKNOWN_COLUMN",
        )
    return column


def _check_number(written: Name, column: str, rows: LiveRows) -> None:
    """Raise RuleFault for a y that is no number."""
    from pyspark.sql.types import NumericType

    kind = rows.schema[column].dataType
    if not isinstance(kind, NumericType):
        raise RuleFault(
            f"the y of a chart is a number, and {column} is {kind.simpleString()}",
            hint=f"count({quote_name(column)}) draws the number of its rows",
            span=written.span,
            code="WRONG_TYPE",
        )


def _two_columns(title: str, rows: LiveRows, place: Span) -> tuple[str, str]:
    """The columns x and y of a chart without named ones: the first time, else key, else column, and the first
    number that is no key. place: of the chart in its statement. Raises RuleFault.
    """
    from pyspark.sql import types as t

    def is_time(kind: Any) -> bool:
        windowed = isinstance(kind, t.StructType) and kind.fieldNames()[:1] == ["start"]
        return windowed or isinstance(kind, (t.TimestampType, t.TimestampNTZType, t.DateType))

    fields, keys = rows.schema.fields, set(rows.keys or ())
    wanted = [
        [f.name for f in fields if f.name in keys and is_time(f.dataType)],
        [f.name for f in fields if is_time(f.dataType)],
        [f.name for f in fields if f.name in keys],
        [f.name for f in fields],
    ]
    x = next(names[0] for names in wanted if names)
    numbers = [f.name for f in fields if isinstance(f.dataType, t.NumericType) and f.name not in {x, *keys}]
    if not numbers:
        raise RuleFault(
            f"{title} has no column of numbers to draw",
            hint=f"WATCH {title}; shows its rows" if title != SELECT else "leave AS CHART out",
            span=place,
            code="WRONG_TYPE",
        )
    return x, numbers[0]


def follow(plan: plans.Run, parts: SessionParts) -> Live:
    """A SELECT over a stream at a prompt: its query runs while the result is shown."""
    with reserved_name(parts) as name:
        return _follow(plan, parts, name)


@contextmanager
def reserved_name(parts: SessionParts) -> Iterator[str]:
    """A free name for a query that is only shown: no other one takes it while this one is being started."""
    with parts.cancel.holding(parts.queries.starting):  # another client may look for a name, too
        name = _free_name(parts)
        parts.queries.reserved.add(name)
    try:
        yield name
    finally:
        parts.queries.reserved.discard(name)


def _follow(plan: plans.Run, parts: SessionParts, name: str) -> Live:
    plan = plan.named(name, parts.places.transient(name), retain=TRANSIENT_ROWS)
    plan = replace(plan, query=replace(plan.query, trigger=None, live_table=True))
    running = parts.newest.started(start_query(parts, plan, replaces=True))
    rows = parts.live[name.casefold()]
    tables: list[str] = []

    def keep() -> str:
        parts.current.update(lambda catalog: catalog.having(plan.sink, plan.query))
        generation = Path(plan.checkpoint).parent
        write_owner_file(generation)
        parts.live.begin(name, rows, rows_in(generation, name))
        Generations(generation.parent).publish(generation)
        parts.workspace.save()
        tables.append(name)
        return (
            f"kept as the live table {name}: WATCH {name}; shows it again, DROP LIVE TABLE {name}; removes it"
        )

    def leave() -> str:
        if tables:
            running.record()
            return ""
        over = running.over
        end_transient(parts, running)
        return "" if over else STOPPED

    live = live_of(SELECT, rows, lambda: running, parts)
    enough = limit_of(plan) if running.mode == "append" else 0
    may_keep = None if parts.config.read_only else keep
    return replace(live, notes=running.mode_notes, said=leave, keep=may_keep, enough=enough)


def _free_name(parts: SessionParts) -> str:
    """The first of q1, q2, … that is not in use."""
    catalog = parts.catalog
    taken = {
        *catalog.streams,
        *catalog.sinks,
        *catalog.queries,
        *catalog.tables,
        *parts.queries.all,
        *parts.queries.reserved,
    }
    return next(f"q{n}" for n in range(1, len(taken) + 2) if f"q{n}" not in taken)


def limit_of(plan: plans.Run) -> int:
    """The number of the query's LIMIT, or 0."""
    node: Any = plan.program[-1].node
    if isinstance(node, Call) and node.method == "limit":
        number = node.args[0] if node.args else None
        return int(number.value) if isinstance(number, Lit) else 0
    return 0


def live_of(
    title: str,
    rows: LiveRows,
    current: Callable[[], Running | None],
    parts: SessionParts,
    newest: Callable[[], LiveRows | None] = lambda: None,
) -> Live:
    """The result that refreshes. current: returns the newest run of its query; newest: as for TableView."""
    zone = parts.spark.conf.get("spark.sql.session.timeZone") if parts.engine.started else "UTC"
    table = TableView(rows, zone, newest)
    retain = RETAINED_FOR_PROGRAM if parts.config.arrow else RETAINED_CHANGES
    changes: list[ChangesView] = []

    def take_changes(count: int, first: int | None, order: tuple[str, bool] | None) -> Snapshot:
        if not changes:
            changes.append(ChangesView(rows, zone, retain))
        return changes[0].take(count, first, order)

    def freeze(still: bool) -> None:
        table.freeze(still)
        for view in changes:
            view.freeze(still)

    verdict = explanations().watched(parts, current)

    def close() -> None:
        verdict.close()
        for view in changes:
            view.close()

    why = verdict.lines if parts.engine.started and parts.server() is None else tuple
    status = partial(_status, title, current, parts, zone)
    arrow = lambda: live_table_arrow(newest() or rows, parts.spark, parts.cancel)  # noqa: E731
    return Live(
        (), title, table.take, take_changes, freeze, arrow, status, close, _fault_of(current, parts), why=why,
        proposal=lambda: verdict.proposal,
    )  # fmt: skip


def _status(title: str, current: Callable[[], Running | None], parts: SessionParts, zone: str) -> QueryFacts:
    """Live.status of the newest run of a query, with its watermark in the session time zone."""
    running = current()
    if running is None:
        return QueryFacts(title, "stopped")
    if title == SELECT and isinstance(running.fault, QueryFault):
        running.fault.of("the query failed")
    facts = _of_refresh(running, parts, zone) if running.is_refresh else facts_of(running, zone)
    return replace(facts, staged=percent_staged(parts, title)) if title != SELECT else facts


def _fault_of(current: Callable[[], Running | None], parts: SessionParts) -> Callable[[], QueryFault | None]:
    """Live.fault of the newest run of a query: its failure, unless the prompt has reported it before."""
    given: list[QueryFault] = []

    def fault() -> QueryFault | None:
        running = current()
        if running is None or not running.over or running.status() != "FAILED":
            return None
        if not given and isinstance(running.fault, QueryFault):
            if running.reported and parts.config.interactive:
                return None  # above the prompt, before its result was asked for
            running.reported = True
            given.append(running.fault)
        return given[0] if given else None

    return fault
