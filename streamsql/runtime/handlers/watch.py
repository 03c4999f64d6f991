"""Results that refresh: WATCH of a live table, and at a prompt a SELECT over a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.calls import Attr, Call, Lit
from streamsql.errors import NameFault, QueryFault, did_you_mean
from streamsql.language.statements.base import Name
from streamsql.language.statements.watch import Watch
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.results import Live, Snapshot, Status
from streamsql.runtime.live.result_views import ChangesView, TableView, status_of
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import GOING_ON, Running
from streamsql.runtime.queries.start import start_query
from streamsql.runtime.workspace.owned_folders import remove

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import LiveRows

TRANSIENT_ROWS = 100_000
"""Rows that a SELECT over a stream keeps at a prompt; what is older is counted and let go."""


def watch(statement: Watch, session: SessionParts) -> Live:
    """WATCH name. Raises NameFault for what is not a live table, or a column that it has not."""
    found = session.catalog.live_table(statement.name)
    rows = session.live.get(found.name.casefold())
    if rows is None:
        raise NameFault(
            f"the live table {found.name} has no query yet",
            hint=f"INSERT INTO {quote_name(found.name)} SELECT …",
            span=statement.name.span,
        )
    chart = tuple(_column(c, rows, found.name) for c in statement.chart)
    feeding = session.catalog.queries_into(found.name)[0]
    current = lambda: session.queries.all.get(feeding.name.casefold())  # noqa: E731  a restart is another run

    live = _live(found.name, rows, current, session)
    ends = session.live.follow(found.name.casefold())

    def close() -> None:
        ends()
        live.close()

    def stays() -> str:
        running = current()
        if running is None or running.status() not in GOING_ON:
            return ""
        return f"{found.name} keeps refreshing; WATCH {quote_name(found.name)}; shows it again"

    if session.config.read_only:
        # "running elsewhere" is running to the one who looks.
        word = lambda: session.workspace.past(feeding.name).status.partition(" ")[0]  # noqa: E731
        live = replace(live, status=lambda: Status(found.name, word()))
    return replace(
        live,
        close=close,
        said=stays,
        every=statement.every,
        chart=chart,
        mode="chart" if chart else "changes" if statement.changes else "table",
    )


def _column(name: Name, rows: LiveRows, table: str) -> str:
    """A column as the table spells it."""
    known = {f.name.casefold(): f.name for f in rows.schema.fields}
    found = known.get(name.value.casefold())
    if found is None:
        raise NameFault(
            f"{table} has no column {name}",
            hint=did_you_mean(name.value, known.values()) or f"columns: {', '.join(known.values())}",
            span=name.span,
        )
    return found


def follow(made: plans.Run, session: SessionParts) -> Live:
    """A SELECT over a stream at a prompt: a query that lives as long as somebody looks at it."""
    name = _free_name(session)
    made = made.named(name, session.places.transient(name), retain=TRANSIENT_ROWS)
    made = replace(made, query=replace(made.query, trigger=None, live_table=True))
    running = start_query(session, made, replaces=True)
    rows = session.live[name.casefold()]
    kept: list[str] = []

    def keep() -> str:
        session.current.update(lambda catalog: catalog.having(made.sink, made.query))
        session.live.begin(name, rows)
        session.workspace.save()
        kept.append(name)
        return (
            f"kept as the live table {name}: WATCH {name}; shows it again, DROP LIVE TABLE {name}; removes it"
        )

    def leave() -> str:
        if kept:
            return ""
        over = running.over
        session.queries.stop(running, session.cancel, 0)
        session.queries.forget(name)
        session.live.forget(name)
        remove(Path(made.checkpoint).parent)
        return "" if over else "its query was stopped; CREATE LIVE TABLE name AS SELECT … keeps one running"

    live = _live("SELECT", rows, lambda: running, session)
    notes = (f"output mode {running.mode}: {running.reason}",) if running.reason else ()
    enough = _limit(made) if running.mode == "append" else 0
    may_keep = None if session.config.read_only else keep
    return replace(live, notes=notes, said=leave, keep=may_keep, enough=enough)


def _free_name(session: SessionParts) -> str:
    """q1, q2, …: the first that nothing is called by."""
    catalog = session.catalog
    taken = {*catalog.streams, *catalog.sinks, *catalog.queries, *catalog.tables, *session.queries.all}
    return next(f"q{n}" for n in range(1, len(taken) + 2) if f"q{n}" not in taken)


def _limit(made: plans.Run) -> int:
    """The number of a LIMIT that the query ends with, else 0."""
    node: Any = made.program[-1].node
    if isinstance(node, Call) and isinstance(node.function, Attr) and node.function.name == "limit":
        number = node.args[0] if node.args else None
        return int(number.value) if isinstance(number, Lit) else 0
    return 0


def _live(title: str, rows: LiveRows, current: Callable[[], Running | None], session: SessionParts) -> Live:
    """current: the run of its query that is the newest."""
    zone = session.spark.conf.get("spark.sql.session.timeZone") if session.engine.started else "UTC"
    table = TableView(rows, zone)
    changes: list[ChangesView] = []

    def take_changes(count: int, first: int | None, order: tuple[str, bool] | None) -> Snapshot:
        if not changes:
            changes.append(ChangesView(rows, zone))
        return changes[0].take(count, first, order)

    def freeze(still: bool) -> None:
        table.freeze(still)
        for view in changes:
            view.freeze(still)

    def close() -> None:
        for view in changes:
            view.close()

    def status() -> Status:
        running = current()
        return status_of(running) if running else Status(title, "stopped")

    def fault() -> QueryFault | None:
        running = current()
        if running is None or not running.over or running.status() != "FAILED":
            return None
        running.reported = True
        return running.fault if isinstance(running.fault, QueryFault) else None

    return Live((), title, table.take, take_changes, freeze, status, close, fault)
