"""Says which columns of a stream are NULL in every row of the first micro-batch: a column that is not named,
or not typed, as in the source gives no error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamsql.connectors.messages import COUNTED
from streamsql.connectors.rows import FILLED, read_columns
from streamsql.definitions import Stream
from streamsql.runtime.engine.events import ClusterNews, Events


def follow_null_columns(streams: Sequence[Stream], events: Events) -> Callable[[dict[str, Any]], None] | None:
    """A function that takes the progress reports of a query and publishes a line about such columns; None
    where no stream is one of text files.
    """
    columns = {f"{COUNTED} {stream.name}": (stream.name, read_columns(stream)) for stream in streams}
    if not columns:
        return None
    reported_metrics = set[str]()

    def reported(report: dict[str, Any]) -> None:
        if report.get("batchId"):
            return
        for metric, counts in report.get("observedMetrics", {}).items():
            filled = counts.get(FILLED) if metric in columns and metric not in reported_metrics else None
            if not isinstance(filled, list) or not any(filled):
                continue  # no rows, or none that can be read
            reported_metrics.add(metric)
            stream, names = columns[metric]
            empty = [name for name, count in zip(names, filled, strict=False) if not count]
            if empty:
                events.publish(ClusterNews(_line(stream, empty)))

    return reported


def _line(stream: str, columns: list[str]) -> str:
    listed, are, they = ", ".join(columns), "is", "it is"
    if len(columns) > 1:
        are, they = "are", "they are"
    first = f"{listed} of {stream} {are} NULL in every row of the first micro-batch"
    return f"{first}; PREVIEW USING … shows how {they} named and typed in the source"
