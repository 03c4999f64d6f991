"""Metrics of the event time of a stream, which Spark reports with each micro-batch (Dataset.observe)."""

from __future__ import annotations

from streamsql.calls import Node, expr
from streamsql.definitions import Stream
from streamsql.language.tokens import quote_name

MEASURED = "event time"
"""The prefix of these metrics' names; the name of the stream follows."""
ROWS, ADVANCES = "rows", "advances"
"""Fields of the metrics: the rows read, and those of ADVANCE STREAM among them."""
READ, LEFT, TIMES, OLDEST, NEWEST = "read", "left", "times", "oldest", "newest"
"""The rows, or those that the filters of a query leave; those with an event time, and the oldest and newest
of these in milliseconds.
"""
SAMPLED, PERCENTILES = "sampled", "percentiles"
"""The event times from which the percentiles are computed, and one in milliseconds for each of SHARES."""
SHARES = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3,
          0.5, 0.75, 1.0)  # fmt: skip
"""The shares of the rows, the oldest first, whose newest event time is reported: close to each other where
rows are late. EventTimes.java, which computes them as a stream is read, has the same.
"""


def metrics(column: str, rows: str = READ) -> tuple[str, ...]:
    """The metrics of a stream with that event-time column, as any Spark computes them; the percentiles are
    NULL without EventTimes.java. rows: READ or LEFT.
    """
    name = quote_name(column)
    time = f"CAST({name} AS TIMESTAMP)"
    return (
        f"count(1) AS {rows}",
        f"count({name}) AS {TIMES}",
        f"unix_millis(min({time})) AS {OLDEST}",
        f"unix_millis(max({time})) AS {NEWEST}",
        f"count({name}) AS {SAMPLED}",
        f"CAST(NULL AS ARRAY<BIGINT>) AS {PERCENTILES}",
    )


def measured(frame: Node, stream: Stream, rows: str = READ) -> Node:
    """frame with the metrics of its event time, if the program is to measure it. withWatermark must come
    next: it counts for them at little cost (runtime/engine/spark_classes/EventTimes.java). rows: LEFT for
    formats that skip what a filter drops.
    """
    if not (stream.timed and stream.counted and stream.watermark):
        return frame
    column = stream.watermark.column.value
    return frame.call("observe", f"{MEASURED} {stream.name}", *map(expr, metrics(column, rows)))
