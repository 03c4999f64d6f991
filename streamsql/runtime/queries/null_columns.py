"""Says which columns of a stream are NULL in every row of the first micro-batch, or of a later one although
they had values before: a column that is not named, or not typed, as in the source gives no error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamsql.connectors.messages import COUNTED
from streamsql.connectors.rows import FILLED, read_columns
from streamsql.definitions import Stream
from streamsql.runtime.engine.events import ClusterNews, Events

MANY = 100
"""The rows of a later micro-batch from which on a column without values is told: few rows may have none."""


def follow_null_columns(streams: Sequence[Stream], events: Events) -> Callable[[dict[str, Any]], None] | None:
    """A function that takes the progress reports of a query and publishes a line about such columns; None
    where no stream is one of text files.
    """
    columns = {f"{COUNTED} {stream.name}": (stream.name, read_columns(stream)) for stream in streams}
    if not columns:
        return None
    with_values = dict[str, set[str]]()
    published = set[tuple[str, str]]()

    def reported(report: dict[str, Any]) -> None:
        number = report.get("batchId") or 0
        for metric, counts in report.get("observedMetrics", {}).items():
            filled = counts.get(FILLED) if metric in columns else None
            if not isinstance(filled, list) or not any(filled):
                continue  # no rows, or none that can be read
            stream, names = columns[metric]
            is_first = metric not in with_values and not number
            before = with_values.setdefault(metric, set())
            empty = [name for name, count in zip(names, filled, strict=False) if not count]
            if not is_first:
                many = max(filled) >= MANY
                empty = [
                    name for name in empty if many and name in before and (metric, name) not in published
                ]
            before |= {name for name, count in zip(names, filled, strict=False) if count}
            published.update((metric, name) for name in empty)
            if empty:
                events.publish(ClusterNews(_line(stream, empty, 0 if is_first else number)))

    return reported


def _line(stream: str, columns: list[str], batch: int) -> str:
    """batch: the number of the micro-batch, 0 for the first."""
    listed, are = ", ".join(columns), "is" if len(columns) == 1 else "are"
    they = "it is" if len(columns) == 1 else "they are"
    which = f"micro-batch {batch}, but not in earlier ones" if batch else "the first micro-batch"
    first = f"{listed} of {stream} {are} NULL in every row of {which}"
    return f"{first}; PREVIEW USING … shows how {they} named and typed in the source"
