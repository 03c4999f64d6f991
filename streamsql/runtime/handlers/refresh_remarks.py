"""Why a live table over live tables is not as its inputs are, in words."""

from __future__ import annotations

from collections.abc import Iterator

from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import GOING_ON, Running


def refresh_remarks(name: str, parts: SessionParts) -> list[str]:
    """What keeps a live table over live tables from being up to date; nothing for others, and where nothing
    does.
    """
    query = parts.catalog.queries.get(name.casefold())
    if query is None or not query.inputs:
        return []
    running = parts.queries.all.get(name.casefold())
    said = list(_own(running)) if running else []
    feeding = parts.queries.refreshes.feeding(*query.inputs)
    for key in sorted(feeding):
        other = parts.queries.all.get(key)
        if other is not None and other.status() == "FAILED" and other.fault:
            said.append(f"an input does not change any more: {other.fault.message}")
        elif other is not None and other.status() == "stopped":
            said.append(f"an input does not change any more: the query {other.name} is stopped")
    return said


def _own(running: Running) -> Iterator[str]:
    if running.status() not in GOING_ON:
        if running.fault:
            again = f"START QUERY {running.name}; refreshes it again"
            limited = running.fault.code == "LIMIT_REACHED"
            yield f"{running.fault.message}; {running.fault.hint if limited else again}"
        return
    refresher = running.handle
    if refresher.waits_for:
        yield (
            f"waits for {refresher.waits_for}: its rows are not after the same micro-batch as those of the "
            "other inputs"
        )
    for table, at in refresher.renewed.items():
        yield f"{table} began anew at {at:%H:%M:%S}"
