"""Idle queries ask their sources for new data less often.

A query without a trigger interval asks every 10 ms (spark.sql.streaming.pollingDelay), which takes about a
tenth of a core for a folder of few files, for as long as the query runs. Once Spark reports it idle (no new
data for spark.sql.streaming.noDataProgressEventInterval, 10 s), it asks every 100 ms, until it has read rows
again. Spark reads the setting once, when a query starts, so the field of the query is set here.
"""

from __future__ import annotations

from typing import Any

from streamsql.guard import informing

DELAY = 100
"""The milliseconds between two questions of an idle query."""


class IdlePolling:
    """The queries of a Spark session that are idle. streams: its StreamingQueryManager, of the JVM."""

    def __init__(self, streams: Any) -> None:
        self._streams = streams
        self._own_delays: dict[str, int] = {}
        self._works = True
        """Whether Spark has the private field; a query without it asks as often as it did."""

    def idle(self, query_id: Any) -> None:
        """Spark has reported a query as idle, by its UUID of the JVM."""
        if self._works:
            self._works = informing(lambda: self._slow_down(query_id), False)

    def _slow_down(self, query_id: Any) -> bool:
        """Let an idle query ask less often. Returns True."""
        key = query_id.toString()
        query = self._streams.get(query_id)
        if key in self._own_delays or query is None:
            return True
        execution = query.streamingQuery()
        own = execution.pollingDelayMs()
        if own < DELAY:
            _set_delay(execution, DELAY)
            self._own_delays[key] = own
        return True

    def has_rows(self, query_id: str) -> None:
        """A micro-batch of a query has read rows."""
        own = self._own_delays.pop(query_id, None)
        query = self._streams.get(query_id) if own is not None else None
        if query is not None:
            informing(lambda: _set_delay(query.streamingQuery(), own), None)

    def ended(self, query_id: str) -> None:
        self._own_delays.pop(query_id, None)


def _set_delay(execution: Any, milliseconds: int | None) -> None:
    kind = execution.getClass()
    while kind.getSimpleName() != "StreamExecution":
        kind = kind.getSuperclass()
    field = kind.getDeclaredField("pollingDelayMs")
    field.setAccessible(True)
    field.setLong(execution, milliseconds)
