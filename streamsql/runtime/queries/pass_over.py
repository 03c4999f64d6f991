"""FROM NOW: a new checkpoint is advanced to the current end of the input."""

from __future__ import annotations

from typing import Any

from streamsql.calls import run
from streamsql.errors import Cancelled, RuleFault
from streamsql.plan import plans
from streamsql.plan.streaming.rules import Choice
from streamsql.runtime.checkpoints.query_marker import Folder
from streamsql.runtime.engine.spark_errors import query_fault
from streamsql.runtime.live.recorded_progress import FROM_NOW
from streamsql.runtime.queries.parts import QueryParts
from streamsql.runtime.queries.query_waits import POLL


def pass_over(parts: QueryParts, plan: plans.Run, choice: Choice, env: dict[str, Any]) -> None:
    """Advance a new checkpoint to the current end of the input: see Run.passing_over."""
    *steps, last = plan.passing_over(choice.mode)
    run(tuple(steps), env)
    if _reads_more(env["result"]._jdf.queryExecution().analyzed()):
        raise RuleFault(
            "FROM NOW needs a query that reads only streams of the console",
            detail="this query reads a stream that only Spark knows",
            hint="CREATE STREAM … USING … for it, or omit FROM NOW",
            span=plan.body_span,
            code="FOREIGN_STREAM",
        )
    run((last,), env)
    handle = env["query"]
    try:
        while not handle.awaitTermination(POLL):
            parts.cancel.check()
    except Cancelled:
        handle.stop()
        if plan.query.checkpoint:
            Folder(parts.spark, plan.checkpoint).set_aside()
        raise
    except Exception as error:
        raise query_fault(error, plan.query.name) from error
    Folder(parts.spark, plan.checkpoint).write(FROM_NOW, "")
    run(plan.program, env)


def _reads_more(plan: Any) -> bool:
    """Whether a plan has a streaming source whose rows are not filtered out."""
    if not plan.isStreaming() or (
        plan.getClass().getSimpleName() == "Filter" and plan.condition().sql() == "false"
    ):
        return False
    children = plan.children()
    if not children.size():
        return True
    return any(_reads_more(children.apply(i)) for i in range(children.size()))
