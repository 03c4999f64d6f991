"""The stages of a live table before they run: checked, and as empty tables for the rest of its query."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamsql.calls import evaluate, run
from streamsql.plan import plans
from streamsql.runtime.program_helpers import helper
from streamsql.runtime.queries.parts import QueryParts


def stage_frames(parts: QueryParts, plan: plans.Refresh) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the streaming DataFrame of each stage by its name, the variables of the program of the rest). Raises
    faults, and exceptions of Spark, for a stage that Spark refuses. Starts nothing.
    """
    names = {stage.sink.name for stage in plan.stages}
    others = tuple(table for table in plan.reads.live if table.name not in names)
    env = parts.env(plan.program, replace(plan.reads, live=others))
    frames = {}
    for stage in plan.stages:
        own = parts.env(stage.program, stage.reads) | {"LiveRows": helper("LiveRows")}
        choice = parts.queries.prepare(stage, own, fresh=True)
        frames[stage.query.name] = own["result"]
        env |= {step.name: evaluate(step.node, own) for step in stage.keeping(choice.mode)}
    return frames, env


def check_stages(parts: QueryParts, plan: plans.Refresh) -> None:
    """Raise the fault, or exception of Spark, of a query in stages that cannot run."""
    run(plan.program, stage_frames(parts, plan)[1])
