"""A SELECT over streams that runs in stages: its hidden live tables are there as long as it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamsql.calls import run
from streamsql.errors import QueryFault
from streamsql.language.statements.base import Trigger
from streamsql.plan import plans
from streamsql.results import Live
from streamsql.runtime.handlers.watch import SELECT, live_of
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.start import start_query
from streamsql.runtime.queries.start_refresh import analysed, launch_refresh
from streamsql.runtime.workspace.owned_folders import remove


def select_in_stages(plan: plans.Refresh, parts: SessionParts, use: Callable[[Any], Any]) -> Any:
    """In a script: process the available input, then what a function gives for the rows. Raises QueryFault,
    Cancelled.
    """
    with _started(plan, parts, Trigger("available_now")) as names:
        try:
            parts.queries.wait(names, parts.cancel, idle=False, timeout=None)
        except QueryFault as error:
            raise error.of("the query failed") from error.__cause__
        return use(run(plan.program, parts.env(plan.program, plan.reads)))


def follow_stages(plan: plans.Refresh, parts: SessionParts) -> Live:
    """At a prompt: a result that refreshes as long as the reader looks at it."""
    stages = _started(plan, parts, None)
    stages.__enter__()
    try:
        running = launch_refresh(parts, plan, analysed(parts, plan))
    except BaseException:
        stages.__exit__(None, None, None)
        raise
    rows = parts.live[plan.query.name.casefold()]

    def leave() -> str:
        running.handle.stop()
        parts.queries.forget(running.name)
        stages.__exit__(None, None, None)
        parts.live.pop(running.name.casefold(), None)
        return "its queries were stopped; CREATE LIVE TABLE name AS SELECT … keeps them running"

    return replace(live_of(SELECT, rows, lambda: running, parts), said=leave)


@contextmanager
def _started(plan: plans.Refresh, parts: SessionParts, trigger: Trigger | None) -> Iterator[list[str]]:
    """The stages as transient queries; gives their folded names."""
    runs = []
    try:
        for stage in plan.stages:
            name = stage.query.name
            stage = replace(stage, transient=True, define=False, checkpoint=parts.places.transient(name))
            stage = replace(stage, query=replace(stage.query, trigger=trigger, owner=""))
            runs.append((stage, start_query(parts, stage)))
        yield [stage.query.name.casefold() for stage, _ in runs]
    finally:
        for stage, running in runs:
            parts.queries.stop(running, parts.cancel, 0)
            parts.queries.forget(stage.query.name)
            parts.live.pop(stage.query.name.casefold(), None)
            remove(Path(stage.checkpoint).parents[1])
