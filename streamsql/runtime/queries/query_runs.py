"""The streaming queries of a session: starts, waits for and stops them, and records their failures."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import datetime
from typing import Any

from streamsql.calls import evaluate, run
from streamsql.catalog import Catalog
from streamsql.errors import Cancelled, NameFault, Note, QueryFault, StreamsqlError
from streamsql.guard import log
from streamsql.plan.limits import raised_limit
from streamsql.plan.plans import Run
from streamsql.plan.streaming import rules
from streamsql.query_facts import Failure
from streamsql.runtime.checkpoints.query_marker import Folder, write_marker
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.events import Events
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.live.refresh_scheduler import Refreshes
from streamsql.runtime.preflight.python_code_checks import digests
from streamsql.runtime.queries.output_mode import first_choice, placed, spark_verdict
from streamsql.runtime.queries.progress_reports import QueryReported
from streamsql.runtime.queries.query_waits import POLL, idle_event, time_left, wait_one
from streamsql.runtime.queries.report_listener import Monitor
from streamsql.runtime.queries.run import BUSY, GOING_ON, Running
from streamsql.runtime.queries.stop import PATIENCE

FAILURES = 5
"""How many failures of each query are kept."""


class Queries:
    """All queries of a session. events: receives QueryReported, on Spark's callback thread, when a query
    has reported or ended. failures: the newest failures of each query,
    oldest first, including those of earlier sessions; failure_counts,
    restart_counts: of this session, by folded name. starting: the lock held while a query is
    started, so that none is started twice. refreshes: those of live tables over live tables.
    reserved: names of transient queries that are being started.
    """

    def __init__(self, events: Events, refreshes: Refreshes) -> None:
        self.events = events
        self.refreshes = refreshes
        self.failures: dict[str, list[Failure]] = {}
        self.failure_counts: Counter[str] = Counter()
        self.restart_counts: Counter[str] = Counter()
        self.starting = threading.RLock()
        self.reserved: set[str] = set()
        self.awaited: Running | None = None
        self._all: Mapping[str, Running] = {}
        self._changing = threading.Lock()
        self._followed: dict[Monitor, Callable[[], None]] = {}

    @property
    def all(self) -> Mapping[str, Running]:
        """The newest run of each query by its folded name. The mapping is never changed in place."""
        return self._all

    def forget(self, name: str) -> None:
        """Remove a query that has ended."""
        with self._changing:
            self._all = {k: q for k, q in self._all.items() if k != name.casefold()}

    def take_up(self, running: Running) -> None:
        """Take notice of a query that was started."""
        failed = self.all.get(running.name.casefold())
        if failed and failed.again_at is not None:  # this is its restart
            running.source, running.span, running.tries = failed.source, failed.span, failed.tries + 1
        with self._changing:
            self._all = {**self._all, running.name.casefold(): running}

    def prepare(self, plan: Run, env: dict[str, Any], *, fresh: bool) -> rules.Choice:
        """Run a plan's program up to its result, and return the first output mode that Spark accepts.

        env: the program's variables; fresh: the checkpoint will be a new one. Starts nothing. Raises
        faults, or exceptions of Spark.
        """
        if not fresh:
            self._check_checkpoint(plan)
        run(plan.program, env)
        choice = first_choice(plan, env["spark"], env["result"])
        for target in plan.targets:
            # Every SELECT of a set is analysed before the start, like a query of its own.
            if target.select:
                refusal = spark_verdict(env["spark"], evaluate(target.rows, env), choice.mode)
                if refusal:
                    raise placed(refusal, plan)
        return choice

    def launch(
        self,
        plan: Run,
        env: dict[str, Any],
        choice: rules.Choice,
        facts: Callable[[], dict[str, Any]],
        code: dict[str, str],
        beside: Callable[[Running], None],
        folder: Folder,
    ) -> Running:
        """Start a prepared query. facts: returns what its checkpoint records about it, that of a transient
        query once it is kept; code: the digests of its functions, by module; beside: starts what runs beside
        it; folder: its checkpoint.
        """
        monitor = Monitor.of(env["spark"])
        if monitor not in self._followed:
            self._followed[monitor] = monitor.events.subscribe(QueryReported, self.events.publish)
        writer = plan.writer(choice.mode)
        before = folder.marker().get("code", {})
        run(writer, env)
        handle = env["query"]
        running = Running(plan, choice.mode, choice.reason, handle, datetime.now(), on_fault=self.failed)
        running.reports, running.catch_up = monitor.claim(str(handle.runId)), monitor.catch_up
        beside(running)
        self.take_up(running)
        code = code | digests((*plan.program, *writer))
        changed = [module for module, text in code.items() if before.get(module, text) != text]
        if changed:
            running.notes = (Note("CODE_CHANGED", _CHANGED.format(" and ".join(changed))),)
        running.record = lambda: _record_owner(folder, plan, facts(), code)
        if not plan.transient:
            running.record()
        return running

    def failed(self, running: Running, *, worked: bool | None = None) -> None:
        """Record that a query or its restart has failed, and schedule the next restart.

        worked: whether this run completed a micro-batch; None: decided by its reports.
        """
        assert running.fault is not None
        if not running.plan.transient:
            at = datetime.now().isoformat(" ", "seconds")
            failures = self.failures.setdefault(running.name.casefold(), [])
            failures.append(Failure(at, running.batch, running.fault.message))
            del failures[:-FAILURES]
            self.failure_counts[running.name.casefold()] += 1
        if worked is None and running.plan.query.restart:
            running.catch_up()
        owner = self.all.get(running.plan.query.owner.casefold()) if running.plan.query.owner else None
        if owner is not None and owner.is_refresh:
            running.reported = True
            self.refreshes.fail(owner.handle, _of_stage(running.fault, owner, self.refreshes.catalog))
        did = bool(running.reports.last) if worked is None else worked
        running.again_at = running.next_start(worked=did)
        self.events.publish(QueryReported())

    def _check_checkpoint(self, plan: Run) -> None:
        for other in self.all.values():
            if other.status() in BUSY and other.plan.checkpoint == plan.checkpoint:
                raise NameFault(
                    f"the checkpoint {plan.checkpoint} is in use by the query {other.name}",
                    hint="give each query its own checkpoint",
                    code="CHECKPOINT_IN_USE",
                )

    def stop(self, running: Running, cancel: CancelToken, limit: float = PATIENCE) -> bool:
        """Stop a query after the current micro-batch; its checkpoint stays. Returns once it has ended.

        limit: the seconds that the micro-batch has to complete; then, or with 0 at once, it is aborted and
        is retried on restart. Returns whether it completed. Raises Cancelled when the wait is cancelled;
        the query still ends after its micro-batch.
        """
        word = running.status()
        if word == "restarting":
            with cancel.holding(self.starting):
                now = self.all.get(running.name.casefold(), running)
                if now is running:
                    running.give_up()
                    return True
            return self.stop(now, cancel, limit)
        if word not in BUSY:
            return True
        if running.is_refresh:
            running.stopped = True
            for stage in running.stages:
                if stage.query.name.casefold() in self.all:
                    self.stop(self.all[stage.query.name.casefold()], cancel, limit)
            running.handle.stop()
            running.status()
            return True
        if running.has_batches and limit > 0 and self._finish(running, cancel, limit):
            return True
        running.stopped = running.aborted = True
        try:
            running.handle.stop()
        except Exception as error:
            running.fault = translate(error)
        if running.late is not None:
            running.late.abandon()
        running.status()
        return False

    def _finish(self, running: Running, cancel: CancelToken, limit: float) -> bool:
        """Start no further micro-batch. Returns whether the current one completed in time."""
        deadline = time.monotonic() + limit
        try:
            ending = running.end_after_batch()
            if ending.waits_for_its_trigger():
                running.handle.stop()
            while not ending.wait(POLL):
                cancel.check(f"cancelled: {running.name} stops after its current micro-batch")
                if ending.waits_for_its_trigger():
                    running.handle.stop()
                if time.monotonic() >= deadline:
                    return False
            while running.late is not None and running.late.busy:
                cancel.check(f"cancelled: {running.name} stops once its late rows are written")
                if time.monotonic() >= deadline:
                    return False
                running.late.join(POLL)
        except StreamsqlError:
            raise
        except Exception as error:
            if running.is_active():  # private parts of Spark are used, which this Spark may not have
                log(error, f"{running.name} is stopped within its micro-batch, which is retried on restart")
                return False
            # the JVM has ended, and the query with it
        running.status()
        return True

    def stop_together(self, runs: list[Running], cancel: CancelToken, limit: float = PATIENCE) -> list[bool]:
        """Stop queries; none of them begins a micro-batch while another is waited for. Returns of each, and
        raises, what `stop` does.
        """
        for running in runs if limit > 0 else ():
            try:
                if running.has_batches and not running.is_refresh and running.in_spark():
                    running.end_after_batch()
            except Exception:
                pass  # it has just ended, or the JVM has: `stop` says so
        with ThreadPoolExecutor(max(1, min(8, len(runs)))) as threads:
            return list(threads.map(lambda running: self.stop(running, cancel, limit), runs))

    def stop_all(self, limit: float = PATIENCE, cancel: CancelToken | None = None) -> None:
        """Stop all queries. limit: as in `stop`; cancel: aborts their micro-batches."""
        try:
            self.stop_together(list(self.all.values()), cancel or CancelToken(), limit)
        except Cancelled:
            self.stop_together(list(self.all.values()), CancelToken(), 0)

    def close(self) -> None:
        """Unsubscribe from Spark's reports: Spark may outlive the session."""
        self.refreshes.close()
        for unsubscribe in self._followed.values():
            unsubscribe()

    def lost(self, cause: str) -> None:
        """Mark every running query as ended, because Spark has ended. cause: a message."""
        for running in self.all.values():
            running.lost(cause)
            if running.late is not None:
                running.late.abandon()
            if running.is_refresh:
                running.handle.stop()

    def wait(
        self,
        names: list[str],
        cancel: CancelToken,
        *,
        idle: bool,
        timeout: float | None,
        tell: Callable[[Running], None] = lambda running: None,
    ) -> None:
        """Wait until the queries have ended, or (idle) have processed all available input. A query that
        waits for its restart has not ended.

        timeout: seconds, None for no limit. tell: called again and again with the query that is waited for.
        Raises Cancelled, TimeFault, or the fault of a query that failed.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        for name in names:
            while (running := self.all[name]).status() in GOING_ON:
                tell(running)
                if running.again_at is not None:
                    cancel.wait(time_left(running, deadline, "waiting for its restart"))
                    continue
                if running.is_refresh:
                    self._wait_for_refresh(running, cancel, idle=idle, deadline=deadline, tell=tell)
                    if running.again_at is not None:
                        continue
                    break
                with idle_event(running) if idle else nullcontext() as done:
                    wait_one(running, done, deadline, cancel, tell)
                if done and running.is_active():
                    break
            if running.status() == "FAILED" and running.fault:
                raise running.fault

    def _wait_for_refresh(
        self,
        running: Running,
        cancel: CancelToken,
        *,
        idle: bool,
        deadline: float,
        tell: Callable[[Running], None],
    ) -> None:
        """Wait for the queries that feed a live table through others, then for the last refresh: without a
        trigger that ends it, it never ends by itself. Raises as `wait` does, and the fault of one of those
        queries.
        """
        if running.ends and not idle:
            while running.is_active():
                tell(running)
                cancel.check()
                self.refreshes.wait(running.handle, time_left(running, deadline, "running"))
            return
        feeding = [
            name for name in sorted(self.refreshes.feeding(*running.plan.query.inputs)) if name in self.all
        ]
        left = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
        try:
            self.wait(feeding, cancel, idle=idle, timeout=left, tell=tell)
        except QueryFault:
            if running.status() == "FAILED" and running.fault:  # with its stage
                raise running.fault from None
            raise
        upstream = self.refreshes.catalog.upstream(*running.plan.query.inputs)
        reads = [query.name.casefold() for query in upstream if query.inputs]
        while not self.refreshes.settled(running.handle) or any(
            self.all[name].planned_anew for name in reads if name in self.all
        ):
            tell(running)
            cancel.check()
            self.refreshes.wait(running.handle, time_left(running, deadline, "busy"))
        running.status()


def _record_owner(folder: Folder, plan: Run, facts: dict[str, Any], code: dict[str, str]) -> None:
    """Record the query in its checkpoint. Where that fails, the generation still says which query runs."""
    try:
        write_marker(folder, plan, facts, code)
    except Exception:
        pass


def _of_stage(fault: StreamsqlError, owner: Running, catalog: Catalog) -> QueryFault:
    """The failure of a stage as that of its live table."""
    hint = fault.hint
    if fault.code == "LIMIT_REACHED":
        limit = owner.plan.query.retain or owner.plan.sink.retain
        hint = raised_limit(owner.plan, limit, catalog) or hint
    return QueryFault.caused_by(fault, owner.name, hint=hint)


_CHANGED = (
    "the Python code of {} has changed since this checkpoint was written: existing results and "
    "state were produced by the older code and are kept"
)
