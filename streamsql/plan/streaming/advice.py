"""Advice before a query starts: what will take long to show, or will cost state, with the fix typed out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamsql.definitions import Stream
from streamsql.errors import Note, StreamsqlError
from streamsql.language.conditions import comparisons_of, conditions_of
from streamsql.language.durations import durations_in, seconds
from streamsql.language.expression import Expression
from streamsql.language.query import Block, read_query
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.shape import Shape

MOST = 3
"""Notes of advice that one statement gives."""
ADVICE = frozenset(
    {"FIRST_WINDOW", "UNBOUNDED_STATE", "LONG_RANGE", "WATERMARK_UNUSED", "TIME_AS_TEXT", "GROUPS_TWICE"}
)
"""The codes of these notes."""
LONG = 100
"""How many times as long as the delays a time range is called long."""
_SHORTER = (("1 HOUR", 3600), ("1 MINUTE", 60), ("1 SECOND", 1))
"""The time ranges that are proposed instead of a longer one, with their seconds; the first shorter one."""
_NOON = 12 * 60


def advice(text: str, shape: Shape, mode: str, streams: Iterable[Stream]) -> tuple[Note, ...]:
    """Notes on a query that is about to start. mode: the output mode that is tried first."""
    read, blocks = list(streams), _blocks_of(text)
    windows = list(windows_of(text))
    notes = [
        *_first_window(windows, shape, mode, read),
        *_unbounded_join(blocks, shape, read),
        *_unbounded_groups(blocks, shape, mode, windows, read),
        *_long_range(blocks, shape, read),
        *_unused_watermark(blocks, shape, read),
        *_same_groups(shape),
        *_texts_as_times(windows, read),
    ]
    return tuple(notes[:MOST])


def windows_of(text: str) -> Iterator[Expression]:
    """The calls of window() that a query groups by."""
    for block in _blocks_of(text):
        for key in block.group_by.keys if block.group_by else ():
            yield from (e for e in key.expressions if e.call == "window" and len(e.arguments()) > 1)


def _blocks_of(text: str) -> list[Block]:
    """The SELECTs of a query; none where it cannot be read."""
    try:
        body = read_query(text).body
    except StreamsqlError:
        return []
    return list(body.blocks()) if body else []


def _first_window(
    windows: list[Expression], shape: Shape, mode: str, streams: list[Stream]
) -> Iterator[Note]:
    """In append mode: the event with which the first window is emitted."""
    grouped = any(op.kind == "aggregate" and op.window == "window" and op.watermarked for op in shape.ops)
    delays = [seconds(s.watermark.delay) for s in streams if s.watermark]
    if mode != "append" or not grouped or not windows or not delays:
        return
    now = "CREATE LIVE TABLE name OUTPUT MODE UPDATE AS … shows open windows, too"
    if any(op.kind == "join" and all(op.sides) for op in shape.ops):
        held = "and the join of streams holds the watermark back by the time range of its condition"
        yield Note("FIRST_WINDOW", f"append mode emits a window once it is closed, {held}; {now}")
        return
    size = seconds(windows[0].arguments()[1].text.strip("'\""))
    if not 60 <= size <= 6 * 3_600 or max(delays) > 6 * 3_600:
        return
    end, needed = _clock(size), _clock(size + max(delays))
    arrives = f"an event of {needed} or later arrives"
    if len(delays) > 1:
        arrives = f"each stream has had an event of {needed} or later"
    yield Note(
        "FIRST_WINDOW",
        f"append mode emits a window once it is closed: the window from 12:00 to {end}, for example, when "
        f"{arrives}; {now}",
    )


def _clock(seconds: float) -> str:
    minutes = _NOON + -int(-seconds // 60)
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"


def _unbounded_join(blocks: list[Block], shape: Shape, streams: list[Stream]) -> Iterator[Note]:
    """A join of two streams of which no row is ever too old."""
    joins = [
        number
        for number, op in enumerate(shape.ops)
        if op.kind == "join" and all(op.sides) and op.timed is False
    ]
    if not joins:
        return
    without = [s for s in streams if not s.watermark and s.connector]
    first = f"{' and '.join(map(_watermark_on, without))}, and " if without else ""
    groups = {op.window for op in shape.inputs(joins[0]) if op.kind == "aggregate"}
    if groups == {"window"}:
        left, right = _names_of_join(blocks) or ("a", "b")
        bound = f"AND {left}.window = {right}.window in its condition, of windows that both sides select,"
    elif groups == {""}:  # of window tables, or by event time
        bound = "an equality of window_time, or of another event time by which both sides are grouped,"
    elif groups:
        bound = ""
    else:
        a, b = _times_of_join(blocks, streams) or ("a.ts", "b.ts")
        bound = f"AND {b} BETWEEN {a} AND {a} + INTERVAL 1 HOUR in its condition"
    fix = f"{first}{bound} would bound it" if bound else ""
    cost = "the join keeps all rows of both streams in state: the state is unbounded"
    yield Note("UNBOUNDED_STATE", f"{cost}. {fix[:1].upper()}{fix[1:]}" if fix else cost)


def _times_of_join(blocks: list[Block], streams: list[Stream]) -> tuple[str, str] | None:
    """The event times of both sides of the first join of two streams; None where a side has none."""
    columns = {s.name.casefold(): _time_of(s) for s in streams}
    for left, right in (block.relations[:2] for block in blocks if block.relation and block.joins):
        first, second = columns.get(left.name.casefold(), ""), columns.get(right.name.casefold(), "")
        if first and second:
            a, b = quote_name(left.alias or left.name), quote_name(right.alias or right.name)
            return f"{a}.{quote_name(first)}", f"{b}.{quote_name(second)}"
    return None


def _names_of_join(blocks: list[Block]) -> tuple[str, str] | None:
    """The names of both sides of the first join; None where one has none."""
    sides = next((block.relations[:2] for block in blocks if block.relation and block.joins), [])
    names = [side.alias or side.name for side in sides]
    return (quote_name(names[0]), quote_name(names[1])) if names and all(names) else None


def _time_of(stream: Stream) -> str:
    """The column that is, or could be, the event time of a stream; "" if there is none."""
    if stream.watermark:
        return stream.watermark.column.value
    return next((c.name for c in stream.columns if c.type.upper().startswith("TIMESTAMP")), "")


def _watermark_on(stream: Stream) -> str:
    column = _time_of(stream)
    clause = f"{quote_name(column)} DELAY OF INTERVAL 10 MINUTES " if column else ""
    return f"WITH WATERMARK {clause}on {stream.name}"


def _unbounded_groups(
    blocks: list[Block], shape: Shape, mode: str, windows: list[Expression], streams: list[Stream]
) -> Iterator[Note]:
    """Groups of a stream that has a time and no watermark: none is ever closed."""
    stream = next((s for s in streams if s.connector and _time_of(s)), None)
    groups = any(op.kind == "aggregate" for op in shape.ops) and _may_have_many_groups(blocks, streams)
    if stream is None or not groups or mode == "complete" or any(s.watermark for s in streams):
        return
    watermark = _watermark_on(stream)
    if windows:
        cost = "each window is kept in state, and none is ever closed: the state is unbounded. "
        yield Note("UNBOUNDED_STATE", f"{cost}{watermark} would bound it")
    else:
        yield Note("UNBOUNDED_STATE", _row_per_group(stream, f"{watermark}, and "))


def _row_per_group(stream: Stream, first: str = "") -> str:
    """What groups by keys without event time cost, and what bounds it. first: what is needed besides."""
    bound = f"{first}GROUP BY window({quote_name(_time_of(stream))}, '1 hour'), … would bound it"
    return (
        "the state keeps one row for each group, and no group is ever closed. If new values of the keys "
        f"never stop coming, {bound}"
    )


def _may_have_many_groups(blocks: list[Block], streams: list[Stream]) -> bool:
    """Whether a query groups by a key of which nobody knows how many values it has. One group for all rows,
    and groups by conditions, are few.
    """
    types = {c.name.casefold(): c.type.upper() for stream in streams for c in stream.columns}

    def is_few(key: Expression, block: Block) -> bool:
        items = {name.casefold(): item for item in block.items for name in item.aliases}
        number = key.ordinal
        item = items.get(key.column_name) if key.column_name not in types else None
        if number is not None and 0 < number <= len(block.items):
            item = block.items[number - 1]
        return (item.expression if item else key).has_few_values(lambda column: types.get(column, ""))

    return any(
        not is_few(expression, block)
        for block in blocks
        for key in (block.group_by.keys if block.group_by else ())
        for expression in key.expressions
    )


def _long_range(blocks: list[Block], shape: Shape, streams: list[Stream]) -> Iterator[Note]:
    """A join whose time range is much longer than rows of its streams can be late."""
    delays = [seconds(s.watermark.delay) for s in streams if s.watermark]
    if len(delays) < 2 or not max(delays):
        return  # no row may be late: a range has nothing to be compared with
    if not any(op.kind == "join" and all(op.sides) and op.timed for op in shape.ops):
        return
    for join in (join for block in blocks for join in block.joins):
        conditions = conditions_of(join.condition) if join.condition else []
        ranges = [p for c in conditions for p in comparisons_of(c) if not p.equal]
        width = sum(durations_in(p.small.text) + durations_in(p.big.text) for p in ranges)
        if width <= LONG * max(delays):
            continue
        widest = max(ranges, key=lambda p: durations_in(p.small.text) + durations_in(p.big.text))
        length = durations_in(widest.small.text) + durations_in(widest.big.text)
        shorter = next((words for words, of in _SHORTER if of < length), "")
        if not shorter:
            continue
        small, big = widest.small.terms()[0][1].text, widest.big.terms()[0][1].text
        narrow = f"{small} - INTERVAL {shorter} <= {big}"
        if durations_in(widest.big.text):
            narrow = f"{small} <= {big} + INTERVAL {shorter}"
        yield Note(
            "LONG_RANGE",
            "the join keeps rows in state for the length of its time range, "
            f"{width / max(delays):,.0f} times as long as rows may be late: AND {narrow} in its condition "
            "would keep fewer",
        )


def _unused_watermark(blocks: list[Block], shape: Shape, streams: list[Stream]) -> Iterator[Note]:
    """Groups that a watermark could close, and does not, as event time is not among their keys."""
    groups = [op for op in shape.ops if op.kind == "aggregate"]
    marked = [s for s in streams if s.watermark]
    if not groups or not marked or any(op.watermarked for op in groups) or len(shape.ops) > 2:
        return
    if _may_have_many_groups(blocks, streams):
        column = quote_name(_time_of(marked[0]))
        fact = f"the watermark of {marked[0].name} closes no group, as {column} is not among the keys"
        yield Note("WATERMARK_UNUSED", f"{fact}: {_row_per_group(marked[0])}")


def _same_groups(shape: Shape) -> Iterator[Note]:
    """Windows by which both sides of a join group a stream: Spark reads it twice, and keeps two states."""
    inputs = [op.reads for op in shape.ops if op.kind == "aggregate" and op.window and op.reads]
    joins = any(op.kind == "join" and all(op.sides) for op in shape.ops)
    if joins and len(inputs) > len(set(inputs)):
        fact = "both sides of the join count the same windows, each with a state of its own"
        yield Note("GROUPS_TWICE", f"{fact}; HELP windows; has a query for the maximum of a window with one")


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
