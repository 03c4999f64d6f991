"""A SELECT that is computed from live tables as long as it is shown: from those of its stages, or from those
that a WATCH of it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from streamsql.calls import run
from streamsql.errors import QueryFault
from streamsql.language.statements.base import Trigger
from streamsql.language.statements.watch import Watch
from streamsql.plan import plans
from streamsql.results import Live
from streamsql.runtime.handlers.live_results import SELECT, live_of, reserved_name, shown_as
from streamsql.runtime.handlers.refresh_remarks import tables_that_stand
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.new_generations import BeforeStart
from streamsql.runtime.queries.start import end_transient, start_query
from streamsql.runtime.queries.start_refresh import analysed, launch_refresh


def select_in_stages(plan: plans.Refresh, parts: SessionParts, use: Callable[[Any], Any]) -> Any:
    """In a script: process the available input, then what a function gives for the rows. Raises QueryFault,
    Cancelled.
    """
    with _started(plan, parts, Trigger("available_now")) as names:
        try:
            parts.queries.wait(names, parts.cancel, idle=False, timeout=None)
            for name in names:
                if fault := parts.live[name].empty_fault:
                    raise fault
        except QueryFault as error:
            raise error.of("the query failed") from error.__cause__
        return use(run(plan.program, parts.env(plan.program, plan.reads)))


def follow_select(plan: plans.Refresh, parts: SessionParts, form: Watch | None = None) -> Live:
    """A result that refreshes as long as the reader looks at it. form: the WATCH that asks for it."""
    with reserved_name(parts) as name, ExitStack() as stack:
        plan = plan.named(name, "")
        stack.enter_context(_started(plan, parts, None))
        for table in () if plan.stages else plan.reads.live:
            stack.callback(parts.live.follow(table.name.casefold()))
        schema = analysed(parts, plan)
        stack.callback(parts.live.pop, name, None)
        stack.callback(parts.queries.forget, name)
        running = launch_refresh(parts, plan, schema, BeforeStart())
        stack.callback(running.handle.stop)
        live = live_of(SELECT, parts.live[name], lambda: running, parts)
        live = shown_as(live, form, parts.live[name], SELECT) if form else live
        stack.callback(live.close)
        ends = stack.pop_all()
    stopped = "its queries were stopped; CREATE LIVE TABLE name AS SELECT … keeps them running"
    return replace(
        live,
        notes=(*live.notes, *tables_that_stand(parts, () if plan.stages else plan.reads.live)),
        close=ends.close,
        said=lambda: stopped if plan.stages else "",
        # The reasons for an empty result are those of a query over streams.
        why=live.why if plan.stages else tuple,
    )


@contextmanager
def _started(plan: plans.Refresh, parts: SessionParts, trigger: Trigger | None) -> Iterator[list[str]]:
    """The stages as transient queries; gives their folded names."""
    runs = []
    try:
        for stage in plan.stages:
            name = stage.query.name
            stage = replace(stage, transient=True, define=False, checkpoint=parts.places.transient(name))
            stage = replace(stage, query=replace(stage.query, trigger=trigger, owner=""))
            runs.append(start_query(parts, stage))
        yield [running.name.casefold() for running in runs]
    finally:
        for running in runs:
            end_transient(parts, running)
