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
"""The rows, those with an event time, and the oldest and newest of these in milliseconds."""


def metrics(column: str) -> tuple[str, ...]:
    """The metrics of a stream with that event-time column, as expressions of Spark."""
    name = quote_name(column)
    time = f"CAST({name} AS TIMESTAMP)"
    return (
        f"count(1) AS {READ}",
        f"count({name}) AS {TIMES}",
        f"unix_millis(min({time})) AS {OLDEST}",
        f"unix_millis(max({time})) AS {NEWEST}",
    )


def measured(frame: Node, stream: Stream) -> Node:
    """frame with the metrics of its event time, if the program is to measure it. Spark hands each row to such
    metrics, and moves no filter below them.
    """
    if not (stream.timed and stream.counted and stream.watermark):
        return frame
    column = stream.watermark.column.value
    return frame.call("observe", f"{MEASURED} {stream.name}", *map(expr, metrics(column)))
