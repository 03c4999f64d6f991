"""What the toolbar of a console shows of a session. None of it calls Spark."""

from __future__ import annotations

import time

from streamsql.query_facts import NONE
from streamsql.runtime.console_session import Summary
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running
from streamsql.runtime.staged_progress import newest_progress

SILENT = 60.0
"""Seconds after which a query that has read rows and given none is named in the toolbar."""
BEHIND = 10.0
"""Seconds after which a live table that is behind its inputs is named in the toolbar."""


def summary(parts: SessionParts) -> Summary:
    """The toolbar's facts."""
    runs = _runs(parts)
    listed = [run for run in runs if not run.plan.query.owner]
    going_on = [run for run in listed if not run.over]
    accounts = [run.reports.account for run in runs]
    return Summary(
        spark_state(parts),
        len(going_on),
        sum(run.fault is not None and run.again_at is None for run in listed),
        sum(run.reports.rate() for run in going_on),
        silent_query(parts),
        stale_table(parts),
        late=sum((account.late for account in accounts), NONE),
        malformed=sum((account.malformed for account in accounts), NONE),
        staged=newest_progress(parts),
        change=next(iter(parts.open_change), ""),
    )


def _runs(parts: SessionParts) -> list[Running]:
    """The newest runs of the queries of the catalog, as far as they were started here."""
    return [run for key in parts.catalog.queries if (run := parts.queries.all.get(key)) is not None]


def spark_state(parts: SessionParts) -> str:
    """A short text about Spark's state."""
    engine = parts.engine
    if engine.started:
        return "Spark ready"
    if engine.failed:
        return "Spark could not start"
    if engine.starting:
        return f"starting Spark… {time.monotonic() - engine.began:.0f} s"
    return "Spark not started"


def silent_query(parts: SessionParts) -> tuple[str, float] | None:
    """The running query that has had input and no output for the longest time, at least a minute: its name,
    and for how many seconds.
    """
    waiting = [(run.reports.waiting or 0.0, run.name) for run in _runs(parts) if not run.over]
    seconds, name = max(waiting, default=(0.0, ""))
    return (name, seconds) if seconds >= SILENT else None


def stale_table(parts: SessionParts) -> tuple[str, float] | None:
    """The live table over live tables that is behind its inputs for the longest time: its name, and for how
    many seconds. None if that is no time to speak of.
    """
    refreshed = [run for run in _runs(parts) if run.is_refresh and not run.over]
    stale, name = max(((run.handle.stale, run.name) for run in refreshed), default=(0.0, ""))
    return (name, stale) if stale >= BEHIND else None
