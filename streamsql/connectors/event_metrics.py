"""Metrics of the event time of a stream, which Spark reports with each micro-batch (Dataset.observe)."""

MEASURED = "event time"
"""The prefix of these metrics' names; the name of the stream follows."""
ROWS, ADVANCES = "rows", "advances"
"""Fields of the metrics: the rows read, and those of ADVANCE STREAM among them."""
READ, TIMES, OLDEST, NEWEST = "read", "times", "oldest", "newest"
"""Fields beside the count of malformed rows: the rows, those with an event time, and the oldest and newest of
these in milliseconds.
"""
