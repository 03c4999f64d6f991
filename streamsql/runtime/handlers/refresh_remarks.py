"""Why a live table over live tables is not as its inputs are, in words."""

from __future__ import annotations

from collections.abc import Iterator

from streamsql.catalog import Catalog
from streamsql.definitions import Query
from streamsql.language.tokens import quote_name
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import GOING_ON, Running

LONG = 10.0
"""Seconds after which a refresh that is under way is a remark."""


def refresh_remarks(name: str, parts: SessionParts) -> list[str]:
    """What keeps a live table over live tables from being up to date; nothing for others, and where nothing
    does.
    """
    query = parts.catalog.queries.get(name.casefold())
    if query is None or not query.inputs:
        return []
    running = parts.queries.all.get(name.casefold())
    own = list(_own(running)) if running else []
    if running is None and not parts.config.read_only:
        own.append(f"it is stopped; {_again(query.name)}")
    said = []
    for feeding in _feeding(query, parts.catalog):
        other = parts.queries.all.get(feeding.name.casefold())
        status = other.status() if other is not None else "not running"
        if other is not None and status == "FAILED" and other.fault:
            start = f"START QUERY {quote_name(feeding.owner or feeding.name)}; runs it again"
            said.append(f"an input stands still: {other.fault.message}; {start}")
        elif running is not None and status in ("stopped", "not running"):
            start = f"START QUERY {quote_name(feeding.owner or feeding.name)};"
            said.append(f"an input stands still: the query {feeding.name} is {status}; {start}")
    # What can be resolved stands first: a footer is cut where the window ends.
    return [*own, *said] if running is None or not running.handle.isActive else [*said, *own]


def _again(name: str) -> str:
    return f"START QUERY {quote_name(name)}; refreshes it again"


def _feeding(query: Query, catalog: Catalog) -> list[Query]:
    """The queries whose rows reach a live table over live tables, by their names."""
    reached: dict[str, Query] = {}
    ahead = list(query.inputs)
    while ahead:
        for feeding in catalog.writers_of(ahead.pop()):
            if feeding.name not in reached:
                reached[feeding.name] = feeding
                ahead += feeding.inputs
    return [reached[name] for name in sorted(reached)]


def _own(running: Running) -> Iterator[str]:
    if running.status() not in GOING_ON:
        again = _again(running.name)
        if running.fault:
            limited = running.fault.code == "LIMIT_REACHED"
            more = " ".join(running.fault.hint.removesuffix(";").split())
            yield f"{running.fault.message}; {more if limited else again}"
        else:
            yield f"it is {running.status()}; {again}"
        return
    refresher = running.handle
    if refresher.waits_for:
        yield (
            f"waits for {refresher.waits_for}: its rows are not after the same micro-batch as those of the "
            "other inputs"
        )
    elif refresher.stale > LONG:
        stop = f"STOP QUERY {quote_name(running.name)}; cancels it"
        yield f"a refresh is under way for {refresher.stale:.0f} s; {stop}"
    elif refresher.slow:
        took, skipped = refresher.milliseconds, refresher.skipped
        whose = running.name if running.stages else ", ".join(running.plan.query.inputs)
        yield (
            f"a refresh takes {took:,} ms, and its inputs change faster: {skipped:,} snapshots were skipped; "
            f"TRIGGER EVERY INTERVAL {took // 1000 + 1} SECONDS for {whose}, or fewer rows there, ends that"
        )
    for table, at in refresher.renewed.items():
        yield f"{table} began anew at {at:%H:%M:%S}, and the rows are computed from its new ones"
