"""Metrics of the event time of a stream, which Spark reports with each micro-batch (Dataset.observe)."""

from __future__ import annotations

from streamsql.calls import Node, expr
from streamsql.definitions import Stream
from streamsql.language.tokens import quote_name

MEASURED = "event time"
"""The prefix of these metrics' names; the name of the stream follows."""
ROWS, ADVANCES = "rows", "advances"
"""Fields of the metrics: the rows read, and those of ADVANCE STREAM among them."""
READ, TIMES, OLDEST, NEWEST = "read", "times", "oldest", "newest"
"""Fields beside the count of malformed rows: the rows, those with an event time, and the oldest and newest of
these in milliseconds.
"""
ONE_IN = 16
"""A sample of one row in so many is taken for the distribution of event times: drawn in generated code, so
that the rows which are left out cost little (tests/benchmarks/README.md).
"""
SHARES = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3,
          0.5, 0.75, 1.0)  # fmt: skip
"""The shares of the rows, the oldest first, whose newest event time is reported: close to each other where
rows are late.
"""
PERCENTILES = "percentiles"
"""The field of the metrics with an event time in milliseconds for each of SHARES; NULL without a sample."""
_DRAWN = "_drawn_event_time"


def drawn(frame: Node, column: str) -> Node:
    """frame with a column more, for the percentiles: the event time of the rows that are drawn, else NULL."""
    time = f"unix_millis(CAST({quote_name(column)} AS TIMESTAMP))"
    return frame.call("withColumn", _DRAWN, expr(f"CASE WHEN rand() < {1 / ONE_IN} THEN {time} END"))


def metrics(column: str) -> tuple[str, ...]:
    """The metrics of a frame of `drawn`: exact counts and ends, and the percentiles of the sample."""
    time, shares = quote_name(column), ", ".join(f"{share}D" for share in SHARES)
    oldest, newest = (f"unix_millis({end}(CAST({time} AS TIMESTAMP)))" for end in ("min", "max"))
    counts = ("count(1)", READ), (f"count({time})", TIMES), (oldest, OLDEST), (newest, NEWEST)
    percentiles = f"percentile_approx({_DRAWN}, array({shares}))", PERCENTILES
    return tuple(f"{text} AS {name}" for text, name in (*counts, percentiles))


def undrawn(frame: Node) -> Node:
    """frame without the column of `drawn`."""
    return frame.call("drop", _DRAWN)


def measured(frame: Node, stream: Stream) -> Node:
    """frame with the metrics of its event time, if the program is to measure it. They must come before
    withWatermark: behind it, filters would no longer be applied before the watermark.
    """
    if not (stream.timed and stream.counted and stream.watermark):
        return frame
    column = stream.watermark.column.value
    observed = drawn(frame, column).call("observe", f"{MEASURED} {stream.name}", *map(expr, metrics(column)))
    return undrawn(observed)
