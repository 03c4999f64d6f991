"""The rows of the live tables that a query writes: those that are kept, or new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from streamsql.errors import RuleFault
from streamsql.language.tokens import quote_name
from streamsql.plan.plans import Run
from streamsql.runtime.checkpoints.query_marker import ANEW
from streamsql.runtime.live.journal import LiveTables, UnfitRows
from streamsql.runtime.live.kept_columns import Misfit
from streamsql.runtime.live.recorded_progress import Recorded, misfit
from streamsql.runtime.queries.new_generations import Generation
from streamsql.runtime.workspace.generations import rows_in

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import LiveRows


def check_rows(live: LiveTables, name: str, plan: Run, recorded: Recorded, *, continued: bool) -> None:
    """Raise UnfitRows when a query cannot continue the rows of a live table that it writes. continued: it
    goes on with the rows that are there; else it begins without rows.
    """
    reason = misfit(live.get(name.casefold()) if continued else None, recorded)
    if reason:
        fault = live.unusable(name, UnfitRows(reason))
        if not continued:
            fault.hint = "add FROM BEGINNING before its SELECT, or name another folder as its CHECKPOINT"
        fault.span = plan.body_span
        raise fault


def rows_to_write(
    live: LiveTables,
    name: str,
    fresh: LiveRows,
    plan: Run,
    record: Callable[[], Recorded],
    generation: Generation,
) -> LiveRows:
    """The rows of a live table that is written from now on: those that are there (`check_rows` has passed),
    with the columns of the query as it is now, or fresh ones. record: reads what the query has recorded.
    Raises RuleFault for rows that it does not continue.
    """
    key = name.casefold()
    known: LiveRows | None = None if generation.new else live.get(key)
    if known is None:
        live.begin(key, fresh, rows_in(generation.folder, name))
        return fresh
    was, now = _how(known), _how(fresh)
    if was != now:
        raise _not_continued(name, plan, f"they were kept {was}, and now it keeps them {now}")
    if known.query is None and known.last_batch >= 0:
        known.query = record().query  # an earlier version has written them
        live.renew(key)
    if (known.retain, _columns(known)) != (fresh.retain, _columns(fresh)):
        try:
            live.fit(key, fresh.schema, fresh.retain)
        except Misfit as column:
            raise _not_continued(name, plan, f"its column {column} has other values now") from None
    return known


def _how(rows: LiveRows) -> str:
    keys = f" by the key ({', '.join(rows.keys)})" if rows.keys else ""
    having = ", as far as HAVING keeps them" if rows.kept else ""
    return f"in output mode {rows.mode}{keys}{having}"


def _columns(rows: LiveRows) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in rows.schema.fields]


def _not_continued(name: str, plan: Run, why: str) -> RuleFault:
    query = plan.query.owner or plan.query.name
    return RuleFault(
        f"the changed query cannot go on with the rows of {name}",
        detail=why,
        hint="\n".join((f"START QUERY {quote_name(query)} with one of", *ANEW)),
        span=plan.body_span,
        code="CHECKPOINT_CHANGED",
    )
