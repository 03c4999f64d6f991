"""The streaming queries of a session: start, watch, stop, and why one failed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from streamsql.calls import evaluate, run
from streamsql.errors import (
    Cancelled,
    NameFault,
    QueryFault,
    RuleFault,
    Source,
    Span,
    StreamsqlError,
    TimeFault,
)
from streamsql.plan import rules
from streamsql.plan.plans import Run
from streamsql.runtime.changed import Folder, read_marker, write_marker
from streamsql.runtime.faults import query_fault, translate
from streamsql.runtime.monitor import Monitor, Reports
from streamsql.runtime.userlib import digests

POLL = 0.1


@dataclass
class Running:
    """A query that was started in this session, running or not.

    handle: PySpark's StreamingQuery. source, span: the statement that started it, for its errors.
    reports: what Spark has sent of it; catch_up: waits until that is all. notes: what the analyst is
    to be told of the start.
    """

    plan: Run
    mode: str
    reason: str
    handle: Any
    started: datetime
    source: Source | None = None
    span: Span | None = None
    reports: Reports = field(default_factory=Reports)
    catch_up: Callable[[], None] = lambda: None
    notes: tuple[str, ...] = ()
    stopped: bool = False
    ended: datetime | None = None
    fault: StreamsqlError | None = None
    reported: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        return self.plan.query.name

    def status(self) -> str:
        """running, stopped (by a statement), finished (its trigger was done) or FAILED."""
        if self.ended is None and self.is_active():
            return "running"
        with self.lock:
            if self.ended is None:
                self.ended = datetime.now()
                self._find_fault()
        return "FAILED" if self.fault else "stopped" if self.stopped else "finished"

    def is_active(self) -> bool:
        try:
            return bool(self.handle.isActive)
        except Exception:  # the JVM is gone
            return False

    def _find_fault(self) -> None:
        if self.fault is None and not self.stopped:
            try:
                error = self.handle.exception()
            except Exception:  # with its JVM
                self.fault = self._ended_with("its JVM has ended")
                return
            if error is not None:
                sinks = (t.sink.option("path") for t in self.plan.targets)
                self.fault = query_fault(error, self.name, (self.plan.checkpoint, *filter(None, sinks)))
                if self.source and self.span:
                    self.fault.at(self.source, self.span)

    @property
    def over(self) -> bool:
        """Whether it is known to have ended; asks nobody."""
        return self.ended is not None or self.reports.ended

    def lost(self, cause: str) -> None:
        """Spark is gone, and the query with it."""
        with self.lock:
            if self.ended is None:
                self.ended = datetime.now()
                self.fault = self._ended_with(cause)

    def _ended_with(self, cause: str) -> QueryFault:
        return QueryFault(
            f"query {self.name} ended with Spark: {cause}",
            hint=f"START QUERY {self.name}; goes on from its checkpoint",
        )

    def progress(self, last: int = 1) -> list[dict[str, Any]]:
        """The newest progress reports of Spark, oldest first, as plain values."""
        self.catch_up()
        return self.reports.newest(last)


class Queries:
    """All queries by folded name. on_event: told whenever one of them has reported or ended."""

    def __init__(self) -> None:
        self.all: dict[str, Running] = {}
        self.cancelled = threading.Event()
        self.on_event: Callable[[], None] = lambda: None

    def prepare(self, plan: Run, env: dict[str, Any], *, fresh: bool = False) -> rules.Choice:
        """Run a plan's program up to its result, and find the first mode that Spark accepts.

        env: the program's variables; fresh: its checkpoint will be a new one. Nothing is started.
        Raises faults, or exceptions of Spark.
        """
        if not fresh:
            self._check_checkpoint(plan, env["spark"])
        run(plan.program, env)
        choice = self._choose(plan, env["spark"], env["result"])
        for target in plan.targets:
            # Every SELECT of a set is analysed before the start, and judged like a query of its own.
            if target.select:
                refusal = spark_verdict(env["spark"], evaluate(target.rows, env), choice.mode)
                if refusal:
                    raise refusal.at_span(plan) if isinstance(refusal, _Verdict) else refusal
        return choice

    def launch(
        self,
        plan: Run,
        env: dict[str, Any],
        choice: rules.Choice,
        facts: dict[str, Any] | None = None,
        code: dict[str, str] | None = None,
    ) -> Running:
        """Start a prepared query. facts: what its checkpoint is to remember of it; code: the digests of its
        functions, by module.
        """
        monitor = Monitor.of(env["spark"])
        if self._happened not in monitor.on_event:
            monitor.on_event.append(self._happened)
        writer = plan.writer(choice.mode)
        folder = Folder(env["spark"], plan.checkpoint)
        before = read_marker(folder).get("code", {})
        run(writer, env)
        handle = env["query"]
        running = Running(plan, choice.mode, choice.reason, handle, datetime.now())
        running.reports, running.catch_up = monitor.claim(str(handle.runId)), monitor.catch_up
        self.all[plan.query.name.casefold()] = running
        code = (code or {}) | digests((*plan.program, *writer))
        changed = [module for module, text in code.items() if before.get(module, text) != text]
        if changed:
            running.notes = (_CHANGED.format(" and ".join(changed)),)
        write_marker(folder, plan, facts or {}, code)
        return running

    def _happened(self) -> None:
        self.on_event()

    def _choose(self, plan: Run, spark: Any, result: Any) -> rules.Choice:
        refusals: list[StreamsqlError] = []
        for choice in plan.choices:
            trigger = plan.query.trigger.kind if plan.query.trigger else ""
            refusal = spark_verdict(spark, result, choice.mode, trigger)
            if refusal is None:
                return choice
            refusals.append(refusal.at_span(plan) if isinstance(refusal, _Verdict) else refusal)
        # What no mode allows says more than what one mode does not.
        raise next((r for r in refusals if "output mode" not in r.message), refusals[0])

    def _check_checkpoint(self, plan: Run, spark: Any) -> None:
        for other in self.all.values():
            if other.status() == "running" and other.plan.checkpoint == plan.checkpoint:
                raise NameFault(
                    f"the checkpoint {plan.checkpoint} is in use by the query {other.name}",
                    hint="give each query a checkpoint of its own",
                )

    def stop(self, running: Running) -> None:
        """End a query; its checkpoint stays. Returns once it has ended."""
        if running.status() == "running":
            running.stopped = True
            try:
                running.handle.stop()
            except Exception as error:
                running.fault = translate(error)
            running.ended = datetime.now()

    def stop_all(self) -> None:
        """End all queries, side by side: each may have a micro-batch to finish."""
        if self.all:
            with ThreadPoolExecutor(min(8, len(self.all))) as threads:
                list(threads.map(self.stop, list(self.all.values())))

    def lost(self, cause: str) -> None:
        """Spark is gone: every query that ran has ended with that."""
        for running in list(self.all.values()):
            running.lost(cause)

    def active(self) -> list[Running]:
        return [q for q in self.all.values() if q.status() == "running"]

    def wait(self, names: list[str], *, idle: bool, timeout: float | None) -> None:
        """Wait until the queries have ended, or (idle) have processed all input that is there.

        timeout: seconds, None for ever. Raises TimeFault, or the fault of a query that failed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        for name in names:
            running = self.all[name]
            if running.status() == "running":
                done = self._idle(running) if idle else None
                self._wait_one(running, done, deadline)
            if running.status() == "FAILED" and running.fault:
                raise running.fault

    def _wait_one(self, running: Running, done: threading.Event | None, deadline: float | None) -> None:
        while running.is_active() and not (done and done.is_set()):
            if self.cancelled.is_set():
                raise Cancelled("cancelled")
            left = POLL if deadline is None else min(POLL, deadline - time.monotonic())
            if left <= 0:
                raise TimeFault(
                    f"the query {running.name} is still {'busy' if done else 'running'}",
                    hint="SHOW QUERIES; tells what it does"
                    if done
                    else "AWAIT QUERY … IDLE waits for input only",
                )
            try:
                # Spark counts in whole milliseconds and refuses 0.
                done.wait(left) if done else running.handle.awaitTermination(max(left, 0.001))
            except Exception:
                if not running.is_active():
                    return  # it failed: its status tells why
                raise

    def _idle(self, running: Running) -> threading.Event:
        """An event that is set once the query has processed what is there (or has ended)."""
        done = threading.Event()

        def work() -> None:
            try:
                if running.plan.shape.watches_the_clock:
                    _until_nothing_read(running)
                else:
                    running.handle.processAllAvailable()
            except Exception:
                pass  # the query failed or was stopped: its status tells
            finally:
                done.set()

        threading.Thread(target=work, daemon=True, name=f"idle-{running.name}").start()
        return done


def _until_nothing_read(running: Running) -> None:
    """Wait for a micro-batch that was planned from now on and had nothing to read.

    A query with timers on processing time runs one micro-batch after the other, so that Spark's
    processAllAvailable never returns.
    """
    last = running.handle.lastProgress
    # The next one may be under way already, and planned before now.
    first = (last["batchId"] if last else -1) + 2
    while running.is_active():
        last = running.handle.lastProgress
        if last and last["batchId"] >= first and last["numInputRows"] == 0:
            return
        time.sleep(POLL)


class _Verdict(RuleFault):
    """A refusal of Spark's, not yet placed in the statement."""

    def at_span(self, plan: Run) -> StreamsqlError:
        refusal = rules.explain_refusal(self.message)
        if refusal is None:
            return RuleFault(self.message, condition=self.condition, span=plan.mode_span or plan.body_span)
        span = rules.span_of(refusal, plan.shape) or plan.mode_span or plan.body_span
        condition = refusal.condition or self.condition
        return RuleFault(
            refusal.fact, detail=refusal.cause, hint=refusal.hint, span=span, condition=condition
        )


def spark_verdict(spark: Any, frame: Any, mode: str, trigger: str = "") -> StreamsqlError | None:
    """What Spark's own checker says of a streaming DataFrame, a mode and a trigger, without a start."""
    jvm = spark._jvm
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    check = checker.checkForContinuous if trigger == "continuous" else checker.checkForStreaming
    try:
        check(
            frame._jdf.queryExecution().analyzed(),
            getattr(jvm.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())(),
        )
    except Exception as error:
        fault = translate(error)
        return _Verdict(
            fault.message + (f" {fault.detail}" if fault.detail else ""), condition=fault.condition
        )
    return None


_CHANGED = (
    "the Python code of {} has changed since this checkpoint was written: what is there was made by the "
    "older code, and state goes on as that left it"
)
