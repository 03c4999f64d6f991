"""Why a live table over live tables is not as its inputs are, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from streamsql.definitions import Query, Sink
from streamsql.errors import Note, StreamsqlError
from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.moments import brief
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import GOING_ON, Running

ANSI_MODE = "spark.sql.ansi.enabled"
VALUE_ERRORS = (
    "CAST_INVALID_INPUT",
    "CAST_OVERFLOW",
    "DIVIDE_BY_ZERO",
    "ARITHMETIC_OVERFLOW",
    "CANNOT_PARSE_TIMESTAMP",
)
"""Errors about one value, which is NULL instead where ANSI mode is off."""
LONG = 10.0
"""Seconds after which a refresh that is under way is a remark."""


@dataclass(frozen=True)
class Remark:
    """fact: what is so; statement: what resolves it, "" where there is none; effect: what that does."""

    fact: str
    statement: str = ""
    effect: str = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.fact, f"{self.statement} {self.effect}".strip())))


def refresh_remarks(name: str, parts: SessionParts) -> list[str]:
    """What keeps a live table over live tables from being up to date; nothing for others, and where nothing
    does.
    """
    return [str(remark) for remark in remarks_on(name, parts)]


def remark_line(name: str, parts: SessionParts) -> str:
    """The same in one line, where a remark may end with a statement."""
    return "; ".join(refresh_remarks(name, parts)).replace(";; ", "; ")


def remarks_on(name: str, parts: SessionParts) -> list[Remark]:
    """The same, each with what resolves it."""
    query = parts.catalog.queries.get(name.casefold())
    if query is None or not query.inputs:
        return []
    running = parts.queries.all.get(name.casefold())
    said = list(_of_inputs(query, running, parts))
    fed = all(map(parts.catalog.writers_of, query.inputs))
    own = list(_own(running, fed, still=bool(said), empty=empty_fact(name, parts))) if running else []
    if running is None and not parts.config.read_only:
        own.append(Remark("it is stopped", *_again(query.name)))
    # What can be resolved stands first: a footer is cut where the window ends.
    return [*own, *said] if running is None or not running.handle.isActive else [*said, *own]


def empty_fact(name: str, parts: SessionParts) -> str:
    """Why a query over live tables, or a live table, has no result before its inputs have rows, in words; ""
    where it can have one.
    """
    key = name.casefold()
    running, rows = parts.queries.all.get(key), parts.live.loaded(key)
    fault = rows.empty_fault if rows is not None else None
    if running is not None and running.is_refresh:
        fault = parts.queries.refreshes.empty_fault(running.handle)
    if fault is None:
        return ""
    return f"no result before all its inputs have had rows: over those of now its SELECT fails, {fault.fact}"


def _of_inputs(query: Query, running: Running | None, parts: SessionParts) -> Iterator[Remark]:
    """The queries below it that do not run, and the live tables that no query feeds any more."""
    still = "an input stands still: "
    for feeding in sorted(parts.catalog.upstream(*query.inputs), key=lambda feeding: feeding.name):
        owner = parts.queries.all.get(feeding.owner.casefold())
        if owner is not None and (owner.fault or not owner.handle.isActive):
            continue  # a stage: its live table ended with the same error, or was stopped with it
        other = parts.queries.all.get(feeding.name.casefold())
        status = other.status() if other is not None else "not running"
        whose = feeding.owner or feeding.name
        if other is not None and status == "FAILED" and other.fault:
            yield Remark(f"{still}{other.fault.message}", *_mended(other, feeding))
        elif running is not None and status in ("stopped", "not running"):
            yield Remark(
                f"{still}the query {feeding.name} is {status}",
                f"START QUERY {quote_name(whose)};",
                "resumes it",
            )
    for table in query.inputs:
        if not parts.catalog.writers_of(table):
            feeds = f"INSERT INTO {quote_name(table)} SELECT …;"
            yield Remark(f"{still}no query writes into {table} any more", feeds, "starts one")


def _mended(running: Running, query: Query) -> tuple[str, str]:
    """What lets a query that has failed run again, and how."""
    assert running.fault is not None
    name, of_value = quote_name(query.owner or query.name), running.fault.code in VALUE_ERRORS
    limit = _higher_limit(running.fault)
    if limit:
        return limit
    if query.live_table and (running.certain or of_value):
        return f"CREATE OR REPLACE LIVE TABLE {name} AS …;", "runs it with a corrected SELECT"
    again = f"START QUERY {name};"
    if of_value:
        return f"SET {ANSI_MODE} = false; {again}", "runs it with NULL for such a value"
    return again, "runs it again"


def _again(name: str) -> tuple[str, str]:
    return f"START QUERY {quote_name(name)};", "refreshes it again"


def _higher_limit(fault: StreamsqlError) -> tuple[str, str] | None:
    """What resolves the error of a limit that is reached, without words; None for other errors."""
    if fault.code != "LIMIT_REACHED":
        return None
    return " ".join(fault.hint.removesuffix(";").split()) + ";", ""


def _own(running: Running, fed: bool, *, still: bool, empty: str) -> Iterator[Remark]:
    """fed: whether all its inputs have queries; still: whether one of these does not run; empty: why it has
    no result before its inputs have rows.
    """
    if running.status() not in GOING_ON:
        again = _again(running.name)
        if running.fault:
            yield Remark(running.fault.message, *(_higher_limit(running.fault) or again))
        else:
            yield Remark(f"it is {running.status()}", *again)
        return
    refresher = running.handle
    if empty:
        yield Remark(empty)
    elif refresher.waits_for and fed:
        yield Remark(
            f"waits for {refresher.waits_for}: its rows are not after the same micro-batch as those of the "
            "other inputs"
        )
    elif refresher.stale > LONG:
        stop = f"STOP QUERY {quote_name(running.name)};"
        yield Remark(f"a refresh is under way for {brief(refresher.stale)}", stop, "cancels it")
    elif refresher.slow and not still:
        took, skipped = refresher.milliseconds, refresher.skipped
        whose = running.name if running.stages else ", ".join(running.plan.query.inputs)
        yield Remark(
            f"a refresh takes {took:,} ms, and its inputs change faster: "
            f"{skipped:,} {'snapshot was' if skipped == 1 else 'snapshots were'} skipped",
            f"TRIGGER EVERY INTERVAL {took // 1000 + 1} SECONDS",
            f"for {whose}, or fewer rows there, ends that",
        )
    for table, at in refresher.renewed.items():
        yield Remark(f"{table} began anew at {at:%H:%M:%S}, and the rows are computed from its new ones")


def tables_that_stand(parts: SessionParts, tables: tuple[Sink, ...]) -> tuple[Note, ...]:
    """Notes on the live tables of a SELECT whose rows stay as they are: their query failed, or is stopped. A
    script, which has stopped its queries itself, is told only of failures.
    """
    notes = []
    for entry in tables:
        for query in parts.catalog.queries_into(entry.name)[:1]:
            running = parts.queries.all.get(query.name.casefold())
            status = running.status() if running else parts.workspace.past(query.name).status
            whose = f"the rows of {entry.name} are those until"
            if status == "FAILED":
                fault = running.fault if running else None
                reason = fault.fact if fault else parts.workspace.past(query.name).error
                notes.append(Note("LIVE_TABLE_STANDS", f"{whose} its query failed: {reason}"))
            elif status == "stopped" and parts.config.interactive:
                start = f"START QUERY {quote_name(query.name)}; resumes it"
                notes.append(Note("LIVE_TABLE_STANDS", f"{whose} its query was stopped: {start}"))
    return tuple(notes)
