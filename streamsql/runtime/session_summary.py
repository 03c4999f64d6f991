"""What a console shows of a session beside its results: the toolbar, completion. None of it calls Spark."""

from __future__ import annotations

import time

from streamsql.query_facts import NONE, Amount
from streamsql.runtime.console_session import Summary
from streamsql.runtime.parts import SessionParts

SILENT = 60.0
"""Seconds after which a query that has read rows and given none is named in the toolbar."""
BEHIND = 10.0
"""Seconds after which a live table that is behind its inputs is named in the toolbar."""


def summary(parts: SessionParts) -> Summary:
    """The toolbar's facts."""
    running, failed, rate = toolbar_numbers(parts)
    late, malformed = lost_rows(parts)
    return Summary(
        spark_state(parts), running, failed, rate, silent_query(parts), stale_table(parts),
        late=late, malformed=malformed,
    )  # fmt: skip


def lost_rows(parts: SessionParts) -> tuple[Amount, Amount]:
    """The rows that the queries started here have dropped as late, and as malformed."""
    known = (parts.queries.all.get(key) for key in parts.catalog.queries)
    accounts = [query.reports.account for query in known if query is not None]
    return sum((a.late for a in accounts), NONE), sum((a.malformed for a in accounts), NONE)


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
    known = [parts.queries.all.get(key) for key in parts.catalog.queries]
    waiting = [(q.reports.waiting or 0.0, q.name) for q in known if q is not None and not q.over]
    seconds, name = max(waiting, default=(0.0, ""))
    return (name, seconds) if seconds >= SILENT else None


def stale_table(parts: SessionParts) -> tuple[str, float] | None:
    """The live table over live tables that is behind its inputs for the longest time: its name, and for how
    many seconds. None if that is no time to speak of.
    """
    running = [parts.queries.all.get(key) for key in parts.catalog.queries]
    refreshed = [q for q in running if q is not None and q.is_refresh and not q.over]
    stale, name = max(((q.handle.stale, q.name) for q in refreshed), default=(0.0, ""))
    return (name, stale) if stale >= BEHIND else None


def toolbar_numbers(parts: SessionParts) -> tuple[int, int, float]:
    """(running queries, failed queries, rows per second read by all)."""
    known = [
        parts.queries.all.get(key) for key in map(str.casefold, (q.name for q in parts.catalog.named(None)))
    ]
    running = [q for q in known if q is not None and not q.over]
    failed = sum(q is not None and q.fault is not None and q.again_at is None for q in known)
    return len(running), failed, sum(q.reports.rate() for q in running)


def columns_of(parts: SessionParts, name: str) -> list[tuple[str, str]]:
    """(name, type) of the columns of a live table that is loaded."""
    rows = parts.live.loaded(name.casefold())
    fields = rows.schema.fields if rows is not None and rows.schema is not None else ()
    return [(f.name, f.dataType.simpleString()) for f in fields]


def query_state(parts: SessionParts, name: str) -> str:
    """What completion shows beside the name of a query."""
    running = parts.queries.all.get(name.strip("`").casefold())
    going = running is not None and not running.over
    return "running query" if going else "FAILED query" if running and running.fault else "stopped query"
