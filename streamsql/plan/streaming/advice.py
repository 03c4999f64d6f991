"""Advice before a query starts: what will take long to show, or will cost state, with the fix typed out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamsql.definitions import Stream
from streamsql.errors import Note, StreamsqlError
from streamsql.language.conditions import comparisons_of, conditions_of
from streamsql.language.durations import durations_in, seconds
from streamsql.language.expression import Expression
from streamsql.language.query import Block, Body, read_query
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.shape import Shape

MOST = 3
"""Notes of advice that one statement gives."""
ADVICE = frozenset({"FIRST_WINDOW", "UNBOUNDED_STATE", "LONG_RANGE", "WATERMARK_UNUSED", "TIME_AS_TEXT"})
"""The codes of these notes."""
LONG = 100
"""How many times as long as the delays a time range is called long."""
_NOON = 12 * 60


def advice(text: str, shape: Shape, mode: str, streams: Iterable[Stream]) -> tuple[Note, ...]:
    """Notes on a query that is about to start. mode: the output mode that is tried first."""
    read = list(streams)
    windows = list(_windows(text))
    notes = [
        *_first_window(windows, shape, mode, read),
        *_unbounded_join(shape, read),
        *_long_range(text, shape, read),
        *_unused_watermark(shape, read),
        *_texts_as_times(windows, read),
    ]
    return tuple(notes[:MOST])


def _windows(text: str) -> Iterator[Expression]:
    """The calls of window() that a query groups by."""
    try:
        body = read_query(text).body
    except StreamsqlError:
        return
    for block in _blocks(body) if body else ():
        for key in block.group_by.keys if block.group_by else ():
            yield from (e for e in key.expressions if e.call == "window" and len(e.arguments()) > 1)


def _blocks(body: Body) -> Iterator[Block]:
    for term in (body.term, *(tail.term for tail in body.tails)):
        if isinstance(term, Body):
            yield from _blocks(term)
            continue
        if term.relation is not None and term.relation.query is not None:
            yield from _blocks(term.relation.query)
        yield term


def _first_window(
    windows: list[Expression], shape: Shape, mode: str, streams: list[Stream]
) -> Iterator[Note]:
    """In append mode: the event with which the first window is emitted."""
    grouped = any(op.kind == "aggregate" and op.window == "window" and op.watermarked for op in shape.ops)
    delays = [seconds(s.watermark.delay) for s in streams if s.watermark]
    if mode != "append" or not grouped or not windows or not delays:
        return
    size = seconds(windows[0].arguments()[1].text.strip("'\""))
    if not 60 <= size <= 6 * 3_600 or max(delays) > 6 * 3_600:
        return
    end, needed = _clock(size), _clock(size + max(delays))
    yield Note(
        "FIRST_WINDOW",
        f"append mode emits a window once it is closed: that of 12:00 to {end} when an event of {needed} or "
        "later arrives; CREATE LIVE TABLE name OUTPUT MODE UPDATE AS … shows open windows, too",
    )


def _clock(seconds: float) -> str:
    minutes = _NOON + -int(-seconds // 60)
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"


def _unbounded_join(shape: Shape, streams: list[Stream]) -> Iterator[Note]:
    """A join of two streams of which no row is ever too old."""
    joins = [op for op in shape.ops if op.kind == "join" and all(op.sides) and op.timed is False]
    if not joins:
        return
    without = [s.name for s in streams if not s.watermark and s.connector]
    first = f"WITH WATERMARK on {' and '.join(without)}, and " if without else ""
    yield Note(
        "UNBOUNDED_STATE",
        "the join keeps all rows of both streams in state: the state is unbounded. "
        f"{first}AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR in its condition would bound it",
    )


def _long_range(text: str, shape: Shape, streams: list[Stream]) -> Iterator[Note]:
    """A join whose time range is much longer than rows of its streams can be late."""
    delays = [seconds(s.watermark.delay) for s in streams if s.watermark]
    if len(delays) < 2 or not any(op.kind == "join" and all(op.sides) and op.timed for op in shape.ops):
        return
    body = read_query(text).body
    for join in (j for block in _blocks(body) for j in block.joins) if body else ():
        conditions = conditions_of(join.condition) if join.condition else []
        ranges = [p for c in conditions for p in comparisons_of(c) if not p.equal]
        width = sum(durations_in(p.small.text) + durations_in(p.big.text) for p in ranges)
        if width <= LONG * max(delays):
            continue
        widest = max(ranges, key=lambda p: durations_in(p.small.text) + durations_in(p.big.text))
        small, big = widest.small.terms()[0][1].text, widest.big.terms()[0][1].text
        narrow = f"{small} - INTERVAL 1 HOUR <= {big}"
        if durations_in(widest.big.text):
            narrow = f"{small} <= {big} + INTERVAL 1 HOUR"
        yield Note(
            "LONG_RANGE",
            "the join keeps rows in state for the length of its time range, "
            f"{width / max(delays):,.0f} times as long as rows may be late: AND {narrow} in its condition "
            "would keep fewer",
        )


def _unused_watermark(shape: Shape, streams: list[Stream]) -> Iterator[Note]:
    """Groups that a watermark could close, and does not, as event time is not among their keys."""
    groups = [op for op in shape.ops if op.kind == "aggregate"]
    marked = [s for s in streams if s.watermark]
    if not groups or not marked or any(op.watermarked for op in groups) or len(shape.ops) > 2:
        return
    stream = marked[0]
    assert stream.watermark
    column = quote_name(stream.watermark.column.value)
    yield Note(
        "WATERMARK_UNUSED",
        f"the watermark of {stream.name} closes no group, as {column} is not among the keys: the state of "
        f"the groups is kept without bound; GROUP BY window({column}, '1 hour'), … would bound it",
    )


def _texts_as_times(windows: list[Expression], streams: list[Stream]) -> Iterator[Note]:
    """Windows over a column that is a text or a number: it can have no watermark."""
    for window in windows:
        name = window.arguments()[0].column_name
        for stream in streams:
            column = next((c for c in stream.columns if c.name.casefold() == name), None)
            if column is None or column.type.upper() not in ("STRING", "BIGINT", "INT", "DOUBLE"):
                continue
            call = "to_timestamp" if column.type.upper() == "STRING" else "timestamp_seconds"
            clause = f"WITH WATERMARK {call}({quote_name(column.name)}) AS ts DELAY OF INTERVAL 10 MINUTES"
            yield Note(
                "TIME_AS_TEXT",
                f"{column.name} of {stream.name} is {column.type}, which can have no watermark: "
                f"CREATE OR REPLACE STREAM {quote_name(stream.name)} … {clause} uses it as event time",
            )
