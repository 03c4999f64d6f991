"""FLUSH QUERY: a query emits what its state holds back until a later event time."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from streamsql.errors import Cancelled, InputFault, NameFault, RuleFault
from streamsql.language.statements.base import Trigger
from streamsql.language.statements.query import FlushQuery
from streamsql.language.tokens import quote_name
from streamsql.plan.plans import Flush, Run
from streamsql.results import Done
from streamsql.results import counted as count
from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint
from streamsql.runtime.checkpoints.query_marker import Folder
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.moments import shown
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.handlers import Answers
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import BUSY, GOING_ON, Running
from streamsql.runtime.queries.start import start_query


def _flush(parts: SessionParts, plan: Flush, statement: FlushQuery) -> Done:
    """Process all available input, then run a micro-batch of no rows under a watermark that is past all
    windows, sessions and time ranges. A query that was running goes on, also when the statement is cancelled.
    Raises faults, Cancelled.
    """
    name = plan.run.query.name.casefold()
    before = parts.queries.all.get(name)
    went_on = before is not None and before.status() in GOING_ON
    bounded = plan.run.query.trigger is not None and plan.run.query.trigger.ends
    try:
        running = _at_its_end(parts, plan.run, before)
    except Cancelled:
        raise Cancelled(f"cancelled: {plan.run.query.name} is not flushed") from None
    evidence = Evidence(parts, plan.run, running)
    newest = newest_event(evidence)
    if newest is None:
        return Done(message=f"{plan.run.query.name} holds nothing back: it has read no event time")
    watermark = newest + int(plan.ranges * 1_000) + 1
    checkpoint = evidence.checkpoint
    if checkpoint is None:
        raise NameFault(f"{plan.run.query.name} has no checkpoint that can be read", code="NOT_A_CHECKPOINT")
    reached = _watermark(checkpoint)
    if reached is not None and watermark <= reached:
        at = shown(reached, evidence.zone)
        return Done(message=f"{plan.run.query.name} holds nothing back: its watermark is {at}")
    parts.cancel.check()
    # From here until it runs again nothing is cancelled: the query would stay stopped.
    steady = parts.under(CancelToken())
    parts.queries.stop(running, steady.cancel)
    number = plan_no_data_batch(checkpoint, Folder(parts.spark, plan.run.checkpoint), watermark)
    try:
        last = _to_its_end(parts, plan.run, bounded or not went_on)
    except Cancelled:
        emitted = number in checkpoint.committed_numbers()
        raise Cancelled(_not_undone(plan.run.query.name, number, emitted, went_on)) from None
    return Done(message=_summary(last, watermark, evidence.zone))


def newest_event(evidence: Evidence) -> int | None:
    """The newest event time that a query has read, in milliseconds: as its run reports it and its sources
    hold it; where neither is known, as its watermark implies.
    """
    times = [t.newest for t in evidence.measured_times if t.newest is not None]
    if evidence.newest is not None:
        times.append(evidence.newest)
    if not times and evidence.checkpoint is not None:
        longest = max((t.delay for t in evidence.event_times), default=0.0)
        watermark = _watermark(evidence.checkpoint)
        times += [watermark + int(longest * 1_000)] if watermark else []
    return max(times, default=None)


def _watermark(checkpoint: Checkpoint) -> int | None:
    """The watermark of the next micro-batch, in milliseconds."""
    newest = checkpoint.batches(last=1)
    return newest[0].committed.watermark if newest and newest[0].committed else None


def _at_its_end(parts: SessionParts, run: Run, running: Running | None) -> Running:
    """The query once it has processed all available input."""
    if running is None or running.status() not in BUSY:
        return _to_its_end(parts, run, True)
    parts.queries.wait([running.name.casefold()], parts.cancel, idle=True, timeout=None)
    running.catch_up()
    return running


def _to_its_end(parts: SessionParts, run: Run, bounded: bool) -> Running:
    """Start the query and wait until it has processed all available input. bounded: it ends then."""
    stops = bounded and (run.query.trigger is None or not run.query.trigger.ends)
    if stops:
        run = replace(run, query=replace(run.query, trigger=Trigger("available_now")))
    running = start_query(parts.under(CancelToken()), run)
    running.stopped = stops
    try:
        parts.queries.wait([running.name.casefold()], parts.cancel, idle=not bounded, timeout=None)
    except Cancelled:
        if stops:
            parts.queries.stop(running, CancelToken())
        raise
    running.catch_up()
    return running


def _not_undone(name: str, number: int, emitted: bool, goes_on: bool) -> str:
    """What a FLUSH that is cancelled has done: a micro-batch that is planned cannot be taken back."""
    if emitted:
        return f"cancelled: too late, {name} is flushed: micro-batch {number} has emitted what it held back"
    when = "now" if goes_on else f"at the next START QUERY {quote_name(name)}"
    return f"cancelled: too late, micro-batch {number} is planned: {name} emits {when} what it holds back"


def _summary(running: Running, watermark: int, zone: str) -> str:
    reports = running.reports.newest()
    state = reports[-1].get("stateOperators", []) if reports else []
    left = sum(op.get("numRowsTotal", 0) for op in state)
    output = running.reports.output
    rows = f"{count(output.rows, 'row')} emitted, " if output is not None else ""
    moment = shown(watermark, zone)
    return f"{running.name} flushed: {rows}{count(left, 'row')} left in state, watermark {moment}"


PLANS: Answers = {Flush: _flush}


def plan_no_data_batch(checkpoint: Checkpoint, folder: Folder, watermark: int) -> int:
    """Plan it. watermark: in milliseconds since 1970. Returns its number. Raises InputFault, RuleFault or
    OSError.
    """
    newest = checkpoint.batches(last=1)
    if not newest or newest[0].planned is None:
        raise InputFault(f"no micro-batch is in the log of {checkpoint.folder}", code="UNKNOWN_BATCH")
    [last] = newest
    if last.committed is None:
        raise RuleFault(
            f"micro-batch {last.number} is not committed",
            hint="START QUERY resumes it",
            code="QUERY_RUNNING",
        )
    text = folder.read(f"offsets/{last.number}")
    version, _, rest = text.partition("\n")
    written, _, offsets = rest.partition("\n")
    metadata = json.loads(written)
    metadata |= {"batchWatermarkMs": watermark, "batchTimestampMs": int(time.time() * 1000)}
    number = last.number + 1
    folder.add(f"offsets/{number}", f"{version}\n{json.dumps(metadata)}\n{offsets}")
    return number
