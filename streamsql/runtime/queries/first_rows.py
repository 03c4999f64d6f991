"""The answer of an aggregation before its first micro-batch: without GROUP BY it has one row over no rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamsql.calls import evaluate
from streamsql.plan import plans
from streamsql.plan.lowering.sources import variable
from streamsql.runtime.embedded.live_rows import LiveRows
from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.queries.output_mode import streaming_nodes
from streamsql.runtime.queries.parts import QueryParts


def give_first_rows(
    parts: QueryParts, plan: plans.Run, mode: str, env: Mapping[str, Any], rows: LiveRows
) -> None:
    """Put the answer of a query over no rows into its live table, which no micro-batch has reached.

    mode: the output mode of the query; env: the variables of its program. Raises exceptions of Spark.
    """
    if mode == "append" or rows.last_batch >= 0 or rows.table is not None:
        return
    if plan.shape.keys and not plan.sink.key:
        return  # it has a GROUP BY
    if not _has_global_aggregate(env["result"]._jdf.queryExecution().analyzed()):
        return
    frame = _over_no_rows(parts, plan, env)
    if not frame.isStreaming:
        rows.take(rows.keyed(frame).toArrow(), rows.last_batch)


def _over_no_rows(parts: QueryParts, plan: plans.Run, streaming: Mapping[str, Any]) -> Any:
    """The DataFrame of a query over streams without rows, in a Spark session of its own: its views are
    nobody else's. streaming: the variables of the program over the streams.
    """
    env = parts.env(plan.program, plan.reads, own_session(parts.spark))
    streams = {variable(stream.name) for stream in plan.reads.streams if stream.connector}
    for step in plan.program:
        if step.name in streams:
            value = env["spark"].createDataFrame([], streaming[step.name].schema)
        else:
            value = evaluate(step.node, env)
        if step.name:
            env[step.name] = value
    return env["result"]


def _has_global_aggregate(plan: Any) -> bool:
    """Whether a plan of Spark aggregates a stream without grouping keys, and can run over tables, too."""
    nodes = list(streaming_nodes(plan))
    if any(node.nodeName() == "DeduplicateWithinWatermark" for node in nodes):
        return False  # Spark has it on streams only
    return any(node.nodeName() == "Aggregate" and node.groupingExpressions().isEmpty() for node in nodes)
