"""The queries of a session on a Connect server: starts, adopts, stops and follows them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from streamsql.calls import run
from streamsql.definitions import Query
from streamsql.errors import RuleFault, StreamsqlError
from streamsql.features.connect.connect_engine import ConnectEngine, connection_lost
from streamsql.features.connect.session_record import RecordedRun
from streamsql.plan import planner
from streamsql.plan.plans import Run
from streamsql.plan.streaming.rules import Choice
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.output_mode import placed
from streamsql.runtime.queries.progress_reports import QueryReported
from streamsql.runtime.queries.run import BUSY, Running

POLL = 1.0
"""The seconds between two requests for progress."""
STEP = 0.1
PATIENCE = 60.0
"""The seconds that STOP QUERY waits for the end of a micro-batch."""
_MODE = "STREAMING_OUTPUT_MODE"


@dataclass(frozen=True)
class Other:
    """An active query of the session that the catalog does not have. handle: PySpark's StreamingQuery."""

    name: str
    handle: Any


class ServerQueries:
    """Queries of the session's catalog, as the server has them. others: the newest of `sync`."""

    def __init__(self, parts: Callable[[], SessionParts], engine: ConnectEngine) -> None:
        self._parts = parts
        self._engine = engine
        self.others: dict[str, Other] = {}
        self._closed = threading.Event()
        self._lock = threading.RLock()
        threading.Thread(target=self._watch, daemon=True, name="watch-server").start()

    def close(self) -> None:
        """Follow no more queries."""
        self._closed.set()

    # ---- starting

    def start(self, parts: SessionParts, plan: Run) -> Running:
        """Start a query in the first output mode that the server accepts. Raises faults."""
        with parts.cancel.holding(parts.queries.starting):
            env = parts.env(plan.program, plan.reads)
            run(plan.program, env)
            parts.cancel.check()
            choice = self._started(plan, env)
            running = _running(parts, plan, choice, env["query"], datetime.now())
            parts.queries.take_up(running)
        if not plan.transient:
            self._note(running)
        return running

    def _started(self, plan: Run, env: dict[str, Any]) -> Choice:
        refusals: list[StreamsqlError] = []
        for choice in plan.choices:
            try:
                run(plan.writer(choice.mode), env)
                return choice
            except Exception as error:
                fault = translate(error)
                if not fault.condition:
                    raise
                words = fault.message + (f" {fault.detail}" if fault.detail else "")
                refusals.append(placed(RuleFault(words, condition=fault.condition), plan))
                if not fault.condition.startswith(_MODE):
                    raise refusals[-1] from error
        raise refusals[0]

    def _note(self, running: Running) -> None:
        recorded = RecordedRun(
            str(running.handle.id), str(running.handle.runId), running.mode, running.started.isoformat()
        )
        self._engine.record.queries[running.name.casefold()] = recorded
        with suppress(OSError):
            self._engine.record.save()

    # ---- what the server runs

    def sync(self, parts: SessionParts) -> None:
        """Take up the queries that the session runs on the server, and the ends of those that ran there."""
        self._sync(parts, parts.spark)

    def attached(self, spark: Any) -> None:
        """The same for a session that is just being attached."""
        parts = self._parts()
        for name in list(parts.queries.all):
            parts.queries.forget(name)
        self._sync(parts, spark)

    def _sync(self, parts: SessionParts, spark: Any) -> None:
        with self._lock:
            active = {str(h.name or h.id).casefold(): h for h in spark.streams.active}
            for query in parts.catalog.named(None):
                self._take_up(parts, query, active.pop(query.name.casefold(), None), spark)
            own = {q.name.casefold() for q in parts.queries.all.values()}
            self.others = {n: Other(h.name or str(h.id), h) for n, h in active.items() if n not in own}

    def _take_up(self, parts: SessionParts, query: Query, handle: Any, spark: Any) -> None:
        key = query.name.casefold()
        mine = parts.queries.all.get(key)
        if mine is not None and (handle is None or str(mine.handle.runId) == str(handle.runId)):
            return
        recorded = self._engine.record.queries.get(key)
        if handle is None:
            handle = _ended(spark, recorded, query.name)
            if handle is None:
                self._engine.record.queries.pop(key, None)
                return
        try:
            plan = planner.start_plan(query, parts.context())
        except StreamsqlError:
            return  # it is listed among the others
        began = recorded.started if recorded and recorded.run == str(handle.runId) else ""
        started = datetime.fromisoformat(began) if began else datetime.now()
        mode = recorded.mode if recorded else plan.choices[0].mode
        running = _running(parts, plan, Choice(mode, ""), handle, started)
        running.reported = not handle.isActive
        parts.queries.take_up(running)
        running.catch_up()
        self._note(running)

    # ---- stopping

    def stop(self, running: Running, cancel: CancelToken, limit: float = PATIENCE) -> bool:
        """Stop a query, after its current micro-batch if that ends within limit seconds. Returns whether it
        did.
        """
        if running.status() not in BUSY:
            return True
        completed = _await_batch(running.handle, cancel, limit)
        running.catch_up()
        running.stopped = True
        running.handle.stop()
        running.status()
        return completed

    def forget(self, parts: SessionParts, name: str) -> None:
        """Remove a query that has been stopped."""
        parts.queries.forget(name)
        parts.queries.failures.pop(name.casefold(), None)
        self._engine.record.queries.pop(name.casefold(), None)
        with suppress(OSError):
            self._engine.record.save()

    # ---- following

    def _watch(self) -> None:
        """Ask for progress while the session is attached, so that no key press has to."""
        while not self._closed.wait(POLL):
            spark = self._engine.session
            if spark is None:
                continue
            try:
                parts = self._parts()
                active = {str(h.runId) for h in spark.streams.active}
                self.others = {n: o for n, o in self.others.items() if str(o.handle.runId) in active}
                for running in [r for r in parts.queries.all.values() if r.ended is None]:
                    running.catch_up()
                    if str(running.handle.runId) not in active:
                        running.status()
                parts.events.publish(QueryReported())
            except Exception as error:
                if connection_lost(error):
                    self._engine.lost(spark, "no answer to a request")


def _await_batch(handle: Any, cancel: CancelToken, limit: float) -> bool:
    """Wait for the end of the current micro-batch; False when it has not ended in time."""
    deadline, first = time.monotonic() + limit, _batch(handle)
    while handle.isActive and handle.status["isTriggerActive"] and _batch(handle) == first:
        if time.monotonic() >= deadline:
            return False
        cancel.wait(STEP)
    return True


def _batch(handle: Any) -> int:
    last = handle.lastProgress
    return -1 if last is None else int(last.batchId)


def _reports(handle: Any) -> list[dict[str, Any]]:
    """The newest progress reports in the form of a local Spark: PySpark's own has no names of metrics."""
    from pyspark.sql.connect.proto import StreamingQueryCommand

    answer = handle._execute_streaming_query_cmd(StreamingQueryCommand(recent_progress=True))
    return [_report(json.loads(text)) for text in answer.recent_progress.recent_progress_json]


def _report(report: dict[str, Any]) -> dict[str, Any]:
    for source in report.get("sources", []):
        for key in ("startOffset", "endOffset", "latestOffset"):
            with suppress(TypeError, ValueError):
                source[key] = json.loads(source[key])
    sources = report.get("sources", [])
    sums = {
        key: sum(source.get(key, 0) for source in sources)
        for key in ("numInputRows", "inputRowsPerSecond", "processedRowsPerSecond")
    }
    metrics = {
        name: dict(zip((f["name"] for f in row["schema"]["fields"]), row["values"], strict=True))
        for name, row in report.get("observedMetrics", {}).items()
    }
    return report | sums | {"observedMetrics": metrics}


def _running(parts: SessionParts, plan: Run, choice: Choice, handle: Any, started: datetime) -> Running:
    """A run, with reports that are asked for."""
    running = Running(plan, choice.mode, choice.reason, handle, started, on_fault=parts.queries.failed)
    running.reports.looked = True  # a server does not tell
    lock = threading.Lock()

    def catch_up() -> bool:
        with lock:
            ended = not handle.isActive
            received = {(r.get("batchId"), r.get("timestamp")) for r in running.reports.last}
            for report in _reports(handle):
                if (report.get("batchId"), report.get("timestamp")) not in received:
                    running.reports.add(report)
            running.reports.ended = ended
        return True

    running.catch_up = catch_up
    return running


def _ended(spark: Any, recorded: RecordedRun | None, name: str) -> Any:
    """The handle of a query that has ended; None if the server does not know it any more."""
    if recorded is None:
        return None
    from pyspark.sql.connect.streaming.query import StreamingQuery

    handle = StreamingQuery(spark, recorded.id, recorded.run, name)
    try:
        handle.isActive  # noqa: B018  a request
    except Exception as error:
        if connection_lost(error):
            raise
        return None
    return handle
