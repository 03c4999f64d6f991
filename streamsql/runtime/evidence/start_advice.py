"""Advice at the start of a query that needs Spark's settings, or what its earlier micro-batches took."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from itertools import islice
from statistics import median

from streamsql.definitions import Stream
from streamsql.errors import Note
from streamsql.guard import informing
from streamsql.language.durations import seconds
from streamsql.language.durations import shown as duration_shown
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.shape import STATEFUL, Op
from streamsql.plan.streaming.advice import ADVICE, MOST, windows_of
from streamsql.runtime.engine.moments import interval, length, shown
from streamsql.runtime.engine.row_values import zone_of
from streamsql.runtime.evidence.event_times import EventTimes, measured_of
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running

_PARTITIONS = "spark.sql.shuffle.partitions"
MANY = 100
"""Shuffle partitions that are worth a word where there are few processors."""
LONG = 100
"""How many times as long as the latest row needs a delay is called long."""
YEAR = 365 * 86_400_000
"""How far apart, in milliseconds, event times are worth a word."""
ENOUGH = 3
"""The micro-batches that must have been measured for that."""


def start_advice(parts: SessionParts, running: Running) -> tuple[Note, ...]:
    """Notes on a query that has just started: with those of its plan, MOST of them."""
    planned = sum(note.code in ADVICE for note in running.plan.notes)
    return informing(lambda: tuple(islice(_all(parts, running), max(0, MOST - planned))), ())


def _all(parts: SessionParts, running: Running) -> Iterator[Note]:
    yield from _partitions(parts, running)
    yield from _trigger(parts, running)
    yield from _delay(parts, running)
    yield from _apart(parts, running)
    yield from _in_utc(parts, running)


_DAY = 86_400
_CALENDAR = {_DAY: ("DAY", "days"), 7 * _DAY: ("WEEK", "weeks from Monday on")}


def _in_utc(parts: SessionParts, running: Running) -> Iterator[Note]:
    """Windows of hours, days or weeks that do not begin when those of the session time zone do: Spark counts
    all windows from 1970-01-01 00:00 UTC, which was a Thursday.
    """
    zone = str(parts.spark.conf.get("spark.sql.session.timeZone"))
    ahead = dt.datetime.now(zone_of(zone)).utcoffset() or dt.timedelta()
    offset = round(ahead.total_seconds())
    for window in windows_of(running.plan.query.text):
        time, written, *others = window.arguments()
        size = seconds(str(written.literal)) if isinstance(written.literal, str) else 0.0
        aside = offset % size if size >= 3_600 else 0.0
        if others or not (aside or size == 7 * _DAY):
            continue
        unit, units = _CALENDAR.get(round(size), ("", ""))
        own = f"GROUP BY date_trunc('{unit}', {time.text}) makes {units} of the session time zone"
        if not unit:
            start = f"{round((-offset) % size / 60)} minutes"
            own = f"window({time.text}, {written.text}, {written.text}, '{start}') begins at midnight there"
        begin = f"{dt.time(offset % _DAY // 3_600, offset % 3_600 // 60):%H:%M} in {zone}"
        moment = "00:00 UTC on Thursday" if size == 7 * _DAY else "00:00 UTC"
        length_of = duration_shown(str(written.literal))
        text = f"windows of {length_of} begin at {moment}, which is {begin}: {own}"
        yield Note("WINDOWS_IN_UTC", text)
        return


def _delay(parts: SessionParts, running: Running) -> Iterator[Note]:
    """A note on a delay that is shorter than the lateness which other queries, or earlier runs of this one,
    have measured, or many times as long.
    """
    if not any(_drops_late_rows(op) for op in running.plan.shape.ops):
        return
    for stream, times_of_queries in _measured(parts, running):
        measured = [times for times in times_of_queries if times.lateness]
        if stream.watermark is None or not stream.connector or not measured:
            continue
        latest, delay = max(t.latest for t in measured) / 1_000, seconds(stream.watermark.delay)
        column = quote_name(stream.watermark.column.value)
        see = f"SHOW LATENESS OF STREAM {quote_name(stream.name)}; tells how many"
        if latest > delay:
            text = (
                f"rows of {stream.name} came up to {length(latest)} late, and its delay is {length(delay)}: "
                f"WITH WATERMARK {column} DELAY OF {interval(latest + 1)} keeps them all; {see}"
            )
            yield Note("DELAY_TOO_SHORT", text)
        elif delay > LONG * max(latest, 1) and sum(len(t.lateness) for t in measured) >= ENOUGH:
            wanted = interval(2 * max(latest, 1))
            text = (
                f"rows of {stream.name} came at most {length(latest)} late, and windows wait for its delay, "
                f"{length(delay)}: WITH WATERMARK {column} DELAY OF {wanted} keeps rows twice as late"
            )
            yield Note("DELAY_TOO_LONG", text)


def _measured(parts: SessionParts, running: Running) -> Iterator[tuple[Stream, list[EventTimes]]]:
    """The streams of a query with a watermark, and their event times as other queries have read them."""
    others = [query for query in parts.queries.all.values() if query is not running]
    for stream in running.plan.reads.streams:
        if stream.watermark is not None:
            yield stream, [times for _, times in measured_of(stream, others)]


def _drops_late_rows(op: Op) -> bool:
    """Whether an operation may drop a row as late: a filter, groups without event time and a join with a
    table do not.
    """
    if op.kind in ("aggregate", "distinct"):
        return op.watermarked
    return op.keeps_state


def _apart(parts: SessionParts, running: Running) -> Iterator[Note]:
    """A note on a join of streams whose event times, as other queries have read them, are a year apart."""
    if not any(op.kind == "join" and all(op.sides) for op in running.plan.shape.ops):
        return
    zone = str(parts.spark.conf.get("spark.sql.session.timeZone"))
    newest = [(max(t.newest for t in times), s.name) for s, times in _measured(parts, running) if times]
    (oldest, old), (latest, new) = min(newest, default=(0, "")), max(newest, default=(0, ""))
    if latest - oldest > YEAR:
        yield Note(
            "EVENT_TIMES_APART",
            f"the event times of {old} end at {shown(oldest, zone)}, those of {new} at "
            f"{shown(latest, zone)}: rows of both meet in no time range, and the watermark stays behind; "
            f"WHY STREAM {quote_name(old)}; and WHY STREAM {quote_name(new)}; examine them",
        )


def _partitions(parts: SessionParts, running: Running) -> Iterator[Note]:
    if not any(op.kind in STATEFUL for op in running.plan.shape.ops):
        return
    number, cores = int(parts.spark.conf.get(_PARTITIONS, "200")), parts.spark.sparkContext.defaultParallelism
    if number >= MANY and number > 10 * cores:
        yield Note(
            "MANY_PARTITIONS",
            f"{number} shuffle partitions on {cores} processors: each micro-batch runs {number} tasks, "
            f"however few its rows; SET {_PARTITIONS} = {2 * cores}; STOP QUERY {quote_name(running.name)}; "
            f"START QUERY {quote_name(running.name)} FROM BEGINNING; runs fewer",
        )


def _trigger(parts: SessionParts, running: Running) -> Iterator[Note]:
    trigger = running.plan.query.trigger
    took = [ms for _, ms in parts.histories.of(running.name).done.values() if ms][-20:]
    if trigger is None or trigger.kind != "every" or len(took) < 3:
        return
    usual = median(took) / 1_000
    if usual > seconds(trigger.interval):
        yield Note(
            "TRIGGER_TOO_SHORT",
            f"micro-batches of {running.name} take {length(usual)}, longer than its trigger interval of "
            f"{trigger.interval}: TRIGGER EVERY {interval(usual * 1.5)} leaves time for each",
        )
