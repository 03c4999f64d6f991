"""What a query waits for, in a few words, from what it has reported: Spark is not asked."""

from __future__ import annotations

from streamsql.connectors.base import Places
from streamsql.definitions import Stream
from streamsql.plan.plans import Run
from streamsql.runtime.queries.run import Running

FIRST_MICRO_BATCH = "first micro-batch"
ANSWERED = 10.0
"""Seconds after which a query that has put out all that it read is said to wait for data."""


GROUPS = ("stateStoreSave", "sessionWindowStateStoreSaveExec")
"""The operators, as progress reports name them, that hold groups until they are closed."""


OUTER = ("left", "right", "full", "left_outer", "right_outer", "full_outer", "outer")
"""Joins that emit a row without partner once the watermark has passed its time range."""


def waits_for_watermark(plan: Run) -> bool:
    """Whether a query holds rows back until the watermark moves on: an inner join emits a pair at once, and
    a deduplication a new row.
    """
    ops = plan.shape.ops
    return any(op.kind in _HOLDING or (op.kind == "join" and op.how in OUTER) for op in ops)


_HOLDING = ("aggregate", "distinct", "stateful")


def waiting_for(running: Running, places: Places) -> str:
    """first micro-batch, data, window to close, watermark (of a stream); "" for nothing and after the end."""
    if running.over:
        return ""
    reports = running.reports
    if not reports.took_input:
        waits = reports.looked or running.is_refresh or reports.before.streams
        return "data" if waits else FIRST_MICRO_BATCH
    last = reports.newest(1)
    state = last[-1].get("stateOperators", []) if last else []
    held = [op for op in state if op.get("numRowsTotal", 0)]
    if reports.waiting is None and reports.output is not None:
        return "" if reports.rate(ANSWERED) else "data"
    if running.mode == "append" and held and waits_for_watermark(running.plan):
        for stream in running.plan.reads.streams:
            if stream.watermark and _has_given_nothing(stream, running, places):
                return f"watermark of {stream.name}"
        groups = any(op.get("operatorName") in GROUPS for op in held)
        return "window to close" if groups else "watermark"
    return "data" if reports.output is not None else ""


def _has_given_nothing(stream: Stream, running: Running, places: Places) -> bool:
    """Whether no row of a stream has been read, as far as Spark's description tells which source it is."""
    rows = [n for text, n in running.reports.account.streams if is_source_of(stream, text, places)]
    return bool(rows) and not sum(rows)


def is_source_of(stream: Stream, description: str, places: Places) -> bool:
    """Whether a stream is the source that Spark describes so."""
    place = places.values(stream.name) if stream.connector == "values" else stream.option("path")
    place = place or stream.option("topic") or stream.option("subscribe")
    return bool(place) and place in description
