"""A query with ON LATE INTO is started: what writes its late rows begins before it, and runs beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamsql.calls import evaluate, run
from streamsql.definitions import Sink
from streamsql.plan.plans import Run
from streamsql.runtime.live.recorded_progress import Recorded
from streamsql.runtime.queries.late_rows_thread import LateWrites
from streamsql.runtime.queries.new_generations import Generation
from streamsql.runtime.queries.program_parts import QueryParts
from streamsql.runtime.queries.run import Running
from streamsql.runtime.queries.written_rows import rows_to_write


def late_sinks(plan: Run) -> tuple[Sink, ...]:
    """The sink of its late rows, if it has one."""
    return (plan.late.sink,) if plan.late else ()


def begin_late(
    parts: QueryParts, plan: Run, env: dict[str, Any], record: Callable[[], Recorded], generation: Generation
) -> None:
    """Put the writer of late rows into env; the checkpoint records where it begins. Raises exceptions of
    Spark where the sink declares other columns.
    """
    if plan.late is None:
        return
    run(plan.late.steps, env)
    for step in plan.late.keeping:
        fresh = evaluate(step.node, env)
        name = plan.late.sink.name
        env[step.name] = rows_to_write(parts.live, name, fresh, plan, record, generation)
    run(plan.late.beginning, env)


def write_late(parts: QueryParts, running: Running, env: dict[str, Any]) -> None:
    """Write its late rows from now on."""
    if running.plan.late is None:
        return

    running.late = LateWrites(
        running.name,
        running.plan.late.sink.name,
        env[running.plan.late.writer],
        running.in_spark,
        running.reports,
        running.catch_up,
        lambda token: parts.under(token).env((), running.plan.reads),
        running.fail,
    )
    running.late.start(parts.events)
