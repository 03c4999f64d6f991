"""Receives the progress reports of queries from Spark, so that a key press never has to call Spark.

A StreamingQueryListener (Spark guide, "Monitoring Streaming Queries") receives every progress report
and every termination. It is registered under PySpark's interface but reads the report as one JSON text;
PySpark's own class calls the JVM for each field.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from streamsql.guard import informing
from streamsql.runtime.engine.events import Events
from streamsql.runtime.queries.progress_reports import QueryReported, Reports, counted_once, without_advances


class Monitor:
    """The reports of all runs of a Spark session, by run id.

    events: QueryReported after each report and each end, on Spark's callback thread: subscribers must be
    quick.
    """

    def __init__(self) -> None:
        self.runs: dict[str, Reports] = {}
        self.events = Events()
        self._lock = threading.Lock()
        self._bus: Any = None

    @classmethod
    def of(cls, spark: Any) -> Monitor:
        """The monitor of a Spark session; the first call registers it."""
        monitor = getattr(spark, "_streamsql_monitor", None)
        if monitor is None:
            monitor = cls()
            monitor._register(spark)
            spark._streamsql_monitor = monitor
        return monitor

    def _register(self, spark: Any) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        context = spark.sparkContext
        ensure_callback_server_started(context._gateway)
        streams = spark._jsparkSession.streams()
        wrapper = context._jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(
            _Listener(self, IdlePolling(streams), CallbackConnections(context._gateway))
        )
        streams.addListener(wrapper)
        self._bus = informing(lambda: _queue(context._jsc.sc().listenerBus()), None)

    def run(self, run_id: str) -> Reports:
        """The reports of a run; empty for a run that has not reported yet."""
        with self._lock:
            return self.runs.setdefault(run_id, Reports())

    def claim(self, run_id: str) -> Reports:
        """The reports of a run, for the caller to keep: the monitor drops them once the run has ended."""
        reports = self.run(run_id)
        reports.claimed = True
        if reports.ended:
            self.runs.pop(run_id, None)
        return reports

    def end(self, run_id: str) -> None:
        reports = self.run(run_id)
        reports.ended = True
        if reports.claimed:
            self.runs.pop(run_id, None)

    def catch_up(self, milliseconds: int = 500) -> bool:
        """Wait until all reports that Spark has sent are received; returns whether they are. For statements,
        never for a key press.
        """
        if self._bus is None:
            return False  # this Spark has no such field: reports are used as they come
        try:
            return bool(self._bus.waitUntilEmpty(int(time.time() * 1000) + milliseconds))
        except Exception:
            return False  # Spark has ended: the reports received so far are used


def _queue(bus: Any) -> Any:
    """The queue of Spark's listener bus that holds the events of streaming queries. Others, such as that of
    the status of jobs, are hardly ever empty where many queries run. Uses a private field of Spark.
    """
    field = bus.getClass().getDeclaredField("queues")
    field.setAccessible(True)
    return next(queue for queue in field.get(bus) if queue.name() == "streams")


class _Listener:
    """The four callbacks of Spark's listener interface."""

    def __init__(self, monitor: Monitor, polling: IdlePolling, connections: CallbackConnections) -> None:
        self.monitor = monitor
        self.polling = polling
        self.connections = connections

    def onQueryStarted(self, event: Any) -> None:
        """Called on the thread of the query, the others on that of the listeners."""
        self.connections.opened(event.runId().toString())

    def onQueryProgress(self, event: Any) -> None:
        report = counted_once(without_advances(json.loads(event.progress().json())))
        self.monitor.run(report["runId"]).add(report)
        self.monitor.events.publish(QueryReported())
        if report["numInputRows"]:
            self.polling.has_rows(report["id"])

    def onQueryIdle(self, event: Any) -> None:
        self.polling.idle(event.id())
        self.monitor.run(event.runId().toString()).looked = True

    def onQueryTerminated(self, event: Any) -> None:
        self.polling.ended(event.id().toString())
        run_id = event.runId().toString()
        self.monitor.end(run_id)
        self.monitor.events.publish(QueryReported())
        self.connections.ended(run_id)

    class Java:
        implements = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]


class CallbackConnections:
    """Closes the connections of queries whose threads have ended.

    py4j opens one for each thread of the JVM that calls Python, with a socket and a thread on this side, and
    never closes it. Each run of a query has a thread of its own, so that a console that starts and stops
    queries would end at the limit of open files.
    """

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        # By run id, and of runs that have ended: (thread of the JVM, client, connection).
        self._opened: dict[str, tuple[Any, Any, Any]] = {}
        self._ending: list[tuple[Any, Any, Any]] = []

    def opened(self, run_id: str) -> None:
        """To be called in a callback of a run's thread: its connection is to be closed after the run."""
        from py4j.clientserver import ClientServer

        if not isinstance(self._gateway, ClientServer):
            return  # PYSPARK_PIN_THREAD=false: threads share their connections
        client = self._gateway.java_gateway_server.getCallbackClient()
        thread = self._gateway.jvm.java.lang.Thread.currentThread()
        self._opened[run_id] = thread, client, client.getPerThreadConnection()

    def ended(self, run_id: str) -> None:
        """Close the connections of runs that have ended, and whose threads have. Not for several threads."""
        opened = self._opened.pop(run_id, None)
        before, self._ending = [*self._ending, *([opened] if opened else [])], []
        for thread, client, connection in before:
            if thread.isAlive():
                self._ending.append((thread, client, connection))
                continue
            client.connectionStopped(connection)  # removes it from those that the client keeps
            connection.shutdown()


DELAY = 100
"""The milliseconds between two questions of an idle query."""


class IdlePolling:
    """Idle queries ask their sources for new data less often. streams: Spark's StreamingQueryManager.

    A query without a trigger interval asks every 10 ms (spark.sql.streaming.pollingDelay), which takes about
    a tenth of a core for a folder of few files, for as long as the query runs. Once Spark reports it idle (no
    new data for spark.sql.streaming.noDataProgressEventInterval, 10 s), it asks every 100 ms, until it has
    read rows again. Spark reads the setting once, when a query starts, so the field of the query is set here.
    """

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
