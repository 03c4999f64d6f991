"""SHOW LATENESS: how late the rows of a stream arrive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamsql.definitions import Stream
from streamsql.errors import InputFault, Note
from streamsql.features.lateness.plan import Lateness
from streamsql.features.lateness.statement import ShowLateness
from streamsql.guard import informing
from streamsql.language.durations import seconds
from streamsql.language.statements.base import Name
from streamsql.language.statements.checkpoint import Owner
from streamsql.language.tokens import quote_name
from streamsql.results import Result, Rows
from streamsql.results import counted as count
from streamsql.runtime.checkpoints.hadoop_files import open_checkpoint
from streamsql.runtime.engine.moments import interval, length, shown
from streamsql.runtime.evidence.event_times import EventTimes, measured_of
from streamsql.runtime.evidence.lateness import BUCKETS, SHARES, Measured, keeping, measure
from streamsql.runtime.evidence.start_advice import LONG
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import pairs_of, session_zone, table
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running

_BAR = 20
"""The length of the longest bar, in characters."""


def _lateness(parts: SessionParts, plan: Lateness, statement: ShowLateness) -> Result:
    """Measure the stream in the query with the most micro-batches. Raises InputFault."""
    stream = plan.stream
    assert stream.watermark
    if not plan.queries:
        return _as_reported(parts, plan, statement)
    best = max(plan.queries, key=lambda query: len(_committed(parts, query.name)))
    measured = None
    if _committed(parts, best.name):
        try:
            measured = measure(parts, stream, best, lambda frame: list(frame.collect()))
        except Exception:  # such as files that were removed
            parts.cancel.check()
            if not _reported(parts, stream):
                raise
            return _as_reported(parts, plan, statement, "its micro-batches can no longer be read again")
    if measured is None:
        raise InputFault(
            f"no query has read rows of {stream.name} yet",
            hint=f"WHY QUERY {quote_name(best.name)};",
            span=statement.name.span,
            code="NO_RECORDS",
        )
    return _shown(parts, stream, measured, best.name, chart=plan.chart)


def _shown(
    parts: SessionParts, stream: Stream, measured: Measured, query: str, *notes: Note, chart: bool
) -> Result:
    """What was measured, as properties or as a chart, and advice."""
    assert stream.watermark
    delay = seconds(stream.watermark.delay)
    result = _chart(measured) if chart else pairs_of(_facts(measured, delay, query, session_zone(parts)))
    return replace(result, notes=(*notes, *informing(lambda: _advice(stream, measured, delay), ())))


def _reported(parts: SessionParts, stream: Stream) -> list[tuple[Running, EventTimes]]:
    """What the newest micro-batches of the queries over a stream have reported."""
    for running in parts.queries.all.values():
        running.catch_up()
    return measured_of(stream, parts.queries.all.values())


def _as_reported(parts: SessionParts, plan: Lateness, statement: ShowLateness, again: str = "") -> Result:
    """What the newest micro-batches of a query have reported about a source that cannot be read again: why,
    tells again. Raises InputFault.
    """
    stream = plan.stream
    assert stream.watermark
    reported = _reported(parts, stream)
    again = again or f"a {stream.connector} source cannot be read again"
    if not reported:
        raise InputFault(
            f"no query has read rows of {stream.name} yet",
            detail=f"{again}: the reports of queries tell its lateness",
            hint=f"CREATE LIVE TABLE name AS SELECT * FROM {quote_name(stream.name)};",
            span=statement.name.span,
            code="NO_RECORDS",
        )
    running, times = max(reported, key=lambda pair: pair[1].rows)
    measured = _of_micro_batches(times, seconds(stream.watermark.delay))
    text = f"{again}: all rows of a micro-batch count as late as its latest"
    note = Note("LATENESS_OF_MICRO_BATCHES", text)
    return _shown(parts, stream, measured, running.name, note, chart=plan.chart and measured.compared > 0)


def _of_micro_batches(times: EventTimes, delay: float) -> Measured:
    """The distribution as the micro-batches have reported it."""
    rows = sum(n for _, n in times.lateness)
    up_to = [sum(n for late, n in times.lateness if late <= limit * 1_000) for _, limit in BUCKETS]
    return Measured(
        rows=times.rows,
        batches=times.batches,
        nulls=times.nulls,
        oldest=times.oldest,
        newest=times.newest,
        compared=rows,
        beyond=sum(n for late, n in times.lateness if late >= delay * 1_000),
        late=tuple(times.within(share) for share in (*SHARES, 1.0)) if times.lateness else (),
        classes=tuple(b - a for a, b in zip([0, *up_to], [*up_to, rows], strict=True)),
    )


def _committed(parts: SessionParts, query: str) -> list[int]:
    """The micro-batches in the log of a query; none without a checkpoint."""
    owner = Owner(query=Name(query))
    try:
        opened = open_checkpoint(parts, owner)
        return opened.committed_numbers()
    except InputFault:
        return []


def _facts(measured: Measured, delay: float, query: str, zone: str) -> list[tuple[str, Any]]:
    times = ((n, shown(t, zone)) for n, t in (("oldest", measured.oldest), ("newest", measured.newest)) if t)
    facts: list[tuple[str, Any]] = [
        ("rows", f"{measured.rows:,} in {count(measured.batches, 'micro-batch')} of {query}"),
        ("event time NULL", measured.nulls or None),
        *((f"{name} event time", time) for name, time in times),
        ("delay now", length(delay)),
    ]
    if not measured.late:
        return [*facts, ("lateness", "not known before the second micro-batch with rows")]
    share = measured.beyond / measured.compared
    half, *delays = measured.late
    facts += [
        ("rows compared with earlier ones", measured.compared),
        ("late by the delay or more", f"{measured.beyond:,} ({share:.2%})"),
        ("half of the rows are late by at most", length(half / 1_000)),
    ]
    facts += [
        (f"delay that keeps {name}", _keeping(late))
        for name, late in zip(("99 %", "99.9 %", "100 %"), delays, strict=True)
    ]
    return facts


def _keeping(late: int) -> str:
    """The delay that keeps a row of that lateness, in milliseconds: a longer one."""
    return interval(keeping(late)) if late else "INTERVAL 0 SECONDS"


def _chart(measured: Measured) -> Rows:
    columns = ("late by", "rows", "share", "chart")
    nothing = "no row came after an earlier micro-batch yet"
    return table(columns, _bars(measured), (1, 2), nothing, matters=("late by", "chart", "share", "rows"))


def _bars(measured: Measured) -> list[tuple[Any, ...]]:
    """A row of each class of the distribution, with a bar."""
    names = [*(name for name, _ in BUCKETS), "over 1 day"]
    most = max(measured.classes, default=0)
    return [
        (name, rows, f"{rows / measured.compared:.2%}", "█" * -(-rows * _BAR // most))
        for name, rows in zip(names, measured.classes, strict=False)
    ]


def _advice(stream: Stream, measured: Measured, delay: float) -> tuple[Note, ...]:
    """A note on a delay that is shorter than the lateness, or many times as long."""
    if not measured.late or stream.watermark is None:
        return ()
    latest = measured.late[-1] / 1_000
    clause = f"WITH WATERMARK {stream.watermark.column} DELAY OF"
    if measured.beyond:
        text = (
            f"{count(measured.beyond, 'row')} came {length(delay)} late or more, and may be dropped; "
            f"{clause} {_keeping(measured.late[-2])} keeps 99.9 %"
        )
        return (Note("DELAY_TOO_SHORT", text),)
    if delay > LONG * max(latest, 1):
        text = (
            f"the latest row came {length(latest)} late, and windows wait for the delay, {length(delay)}: "
            f"{clause} {_keeping(measured.late[-1] * 2 or 1_000)} keeps rows twice as late"
        )
        return (Note("DELAY_TOO_LONG", text),)
    return ()


PLANS: Answers = {Lateness: _lateness}
