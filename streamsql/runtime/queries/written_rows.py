"""The rows of the live tables that a query writes: existing rows, new ones, and those before the first
micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from streamsql.calls import evaluate, run
from streamsql.errors import QueryFault, RuleFault
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.plan.lowering.sources import variable
from streamsql.plan.plans import Run
from streamsql.runtime.checkpoints.query_marker import ANEW
from streamsql.runtime.embedded.carried_values import to_arrow
from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.spark_errors import is_of_values, translate
from streamsql.runtime.live.journal import LiveTables, UnfitRows
from streamsql.runtime.live.kept_columns import Misfit
from streamsql.runtime.live.recorded_progress import Recorded, misfit
from streamsql.runtime.queries.new_generations import Generation
from streamsql.runtime.queries.plan_checks import streaming_nodes
from streamsql.runtime.queries.program_parts import QueryParts
from streamsql.runtime.workspace.generations import rows_in

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import LiveRows


def check_rows(live: LiveTables, name: str, plan: Run, recorded: Recorded, *, continued: bool) -> None:
    """Raise UnfitRows when a query cannot continue the rows of a live table that it writes. continued: it
    goes on with the rows that are there; else it begins without rows.
    """
    reason = misfit(live.get(name.casefold()) if continued else None, recorded)
    if reason:
        fault = live.unusable(name, UnfitRows(reason))
        if not continued:
            fault.hint = "add FROM BEGINNING before its SELECT, or name another folder as its CHECKPOINT"
        fault.span = plan.body_span
        raise fault


def rows_to_write(
    live: LiveTables,
    name: str,
    fresh: LiveRows,
    plan: Run,
    record: Callable[[], Recorded],
    generation: Generation,
) -> LiveRows:
    """The rows of a live table that is written from now on: those that are there (`check_rows` has passed),
    with the columns of the query as it is now, or fresh ones. record: reads what the query has recorded.
    Raises RuleFault for rows that it does not continue.
    """
    key = name.casefold()
    existing: LiveRows | None = None if generation.new else live.get(key)
    if existing is None:
        live.begin(key, fresh, rows_in(generation.folder, name))
        return fresh
    was, now = _how(existing), _how(fresh)
    if was != now:
        raise _not_continued(name, plan, f"they were kept {was}, and now it keeps them {now}")
    if existing.query is None and existing.last_batch >= 0:
        existing.query = record().query  # an earlier version has written them
        live.renew(key)
    if (existing.retain, _columns(existing)) != (fresh.retain, _columns(fresh)):
        try:
            live.fit(key, fresh.schema, fresh.retain)
        except Misfit as column:
            raise _not_continued(name, plan, f"its column {column} has other values now") from None
    return existing


def _how(rows: LiveRows) -> str:
    keys = f" by the key ({', '.join(rows.keys)})" if rows.keys else ""
    having = ", as far as HAVING keeps them" if rows.kept else ""
    return f"in output mode {rows.mode}{keys}{having}"


def _columns(rows: LiveRows) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in rows.schema.fields]


def _not_continued(name: str, plan: Run, why: str) -> RuleFault:
    query = plan.query.owner or plan.query.name
    return RuleFault(
        f"the changed query cannot go on with the rows of {name}",
        detail=why,
        hint="\n".join((f"START QUERY {quote_name(query)} with one of", *ANEW)),
        span=plan.body_span,
        code="CHECKPOINT_CHANGED",
    )


def give_first_rows(
    parts: QueryParts, plan: plans.Run, mode: str, env: Mapping[str, Any], rows: LiveRows
) -> None:
    """Put the answer of a query over no rows into its live table, which no micro-batch has reached; or the
    error of the values that it computes, such as a division by count(*), which is 0.

    mode: the output mode of the query; env: the variables of its program. Raises exceptions of Spark.
    """
    if mode == "append" or rows.last_batch >= 0 or rows.table is not None:
        return
    if plan.shape.keys and not plan.sink.key:
        return  # it has a GROUP BY
    if not _has_global_aggregate(env["result"]._jdf.queryExecution().analyzed()):
        return
    frame = _over_no_rows(parts, plan, env)
    if frame.isStreaming:
        return
    try:
        rows.take(to_arrow(rows.keyed(frame)), rows.last_batch)
    except Exception as error:
        if not is_of_values(error):
            raise
        rows.empty_fault = QueryFault.caused_by(translate(error), plan.query.name)


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
