"""The output mode that Spark accepts for a query, by Spark's own checker, before the start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamsql.error_codes import OUTPUT_MODE
from streamsql.errors import RuleFault, StreamsqlError
from streamsql.language.nested_queries import joins_in_the_optimizer
from streamsql.language.query import read_query
from streamsql.plan.plans import Run
from streamsql.plan.streaming import refusals, rules
from streamsql.runtime.engine.java_classes import elements, java_class, nodes
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.queries.plan_checks import (
    WITHOUT_MODE,
    check_runs,
    has_streaming_subquery,
    streaming_nodes,
)

_MODE = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"


def first_choice(plan: Run, spark: Any, result: Any) -> rules.Choice:
    """The first output mode of a plan that Spark accepts for its result. Raises RuleFault."""
    check_runs(plan, spark, result)
    refusals: list[StreamsqlError] = []
    for choice in plan.choices:
        trigger = plan.query.trigger.kind if plan.query.trigger else ""
        refusal = spark_verdict(spark, result, choice.mode, trigger)
        if refusal is None and ((gains := _may_gain_joins(plan)) or not plan.shape.complete):
            unplanned = _refused_by_the_planner(spark, result, plan, gains)
            if unplanned is not None:
                raise unplanned
        if refusal is None and choice.mode == "complete" and not (plan.shape.complete or plan.mode_span):
            refusal = _loses_rows(result)
        if refusal is None:
            return choice
        refusals.append(placed(refusal, plan))
    # A refusal in every output mode tells more than a refusal in one.
    raise next((r for r in refusals if r.code != OUTPUT_MODE), refusals[0])


def _may_gain_joins(plan: Run) -> bool:
    """Whether Spark's optimizer may add joins or aggregations to a query, or to one of its streams."""
    texts = [plan.query.text, *(stream.query for stream in plan.reads.streams if stream.query)]
    return not plan.query.together and any(joins_in_the_optimizer(read_query(text)) for text in texts)


def _refused_by_the_planner(spark: Any, result: Any, plan: Run, gains: bool) -> StreamsqlError | None:
    """The refusal of a query that Spark's checks accept, and that fails or has wrong values once it runs: a
    join of streams without an equality; aggregations without keys, which the optimizer may merge; or (gains)
    the optimizer makes a join of the stream with itself, or an aggregation, of a query in an expression or of
    LATERAL. result: its streaming DataFrame.
    """
    logical = result._jdf.queryExecution().analyzed()
    optimizer = result._jdf.sparkSession().sessionState().optimizer()
    planned = optimizer.execute(logical)
    analyzed, optimized = (list(streaming_nodes(p)) for p in (logical, planned))
    aggregates = [node for node in optimized if node.nodeName() == "Aggregate"]
    one_group = sum(node.groupingExpressions().isEmpty() for node in aggregates)
    if has_streaming_subquery(planned) or one_group > 1:
        return _or_in_stages(refusals.ONE_GROUP_TWICE, plan)
    shared = any(node.nodeName() == "WithCTE" for node in analyzed)
    grouping = ("Aggregate", "Distinct", "Deduplicate")
    before, after = (sum(node.nodeName() in grouping for node in nodes) for nodes in (analyzed, optimized))
    keys = java_class(spark, "org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys")
    written, joins = (
        [n for n in nodes if n.nodeName() == "Join" and n.left().isStreaming() and n.right().isStreaming()]
        for nodes in (analyzed, optimized)
    )
    fine = all(keys.unapply(n).isDefined() and not n.joinType().toString().startswith("Exist") for n in joins)
    if fine and (not gains or after <= before or (shared and before)):
        return None
    if not fine and (not gains or len(joins) <= len(written)):
        return _or_in_stages(refusals.NO_EQUALITY, plan)
    return RuleFault(
        "Spark does not run this query on a stream",
        detail="a query in an expression, LATERAL or EXCEPT ALL becomes an aggregation of the stream, or a "
        "join of the stream with itself, when Spark plans it",
        hint=WITHOUT_MODE if plan.mode_span else "",
        span=plan.body_span,
        code="NOT_ON_STREAMS",
    )


def _or_in_stages(refusal: refusals.Refusal, plan: Run) -> RuleFault:
    """The error of a refusal, with what to do where OUTPUT MODE is written."""
    ways = (refusal.hint, WITHOUT_MODE if plan.mode_span else "")
    return replace(refusal, span=plan.body_span, hint="\nor ".join(filter(None, ways))).fault()


def _loses_rows(result: Any) -> RuleFault | None:
    """The refusal of output mode complete for a UNION with groups on one side only, which Spark accepts: it
    gives all groups, and of the other rows those of the newest micro-batch.
    """

    def has_groups(plan: Any) -> bool:
        return any(node.nodeName() in ("Aggregate", "Distinct") for node in nodes(plan))

    unions = (n for n in nodes(result._jdf.queryExecution().analyzed()) if n.nodeName() == "Union")
    if not any(len(set(map(has_groups, elements(union.children())))) > 1 for union in unions):
        return None
    return RuleFault(
        "output mode complete loses rows of a UNION of groups and of other rows", condition=_MODE
    )


def placed(verdict: StreamsqlError, plan: Run) -> StreamsqlError:
    """A refusal by Spark in the words of the console, with its span in the statement."""
    refusal = rules.explain_refusal(verdict.message)
    if refusal is None:
        of_mode = verdict.condition.startswith("STREAMING_OUTPUT_MODE")
        return RuleFault(
            verdict.message,
            condition=verdict.condition,
            span=plan.mode_span or plan.body_span,
            code=OUTPUT_MODE if of_mode else "",
        )
    return RuleFault(
        refusal.fact,
        detail=refusal.cause,
        hint=refusal.hint,
        span=rules.span_of(refusal, plan.shape) or plan.mode_span or plan.body_span,
        condition=refusal.condition or verdict.condition,
        code=refusal.code,
    )


def spark_verdict(spark: Any, frame: Any, mode: str, trigger: str = "") -> StreamsqlError | None:
    """Run Spark's own checker on a streaming DataFrame, an output mode and a trigger, without a start.
    Returns its refusal, or None.
    """
    checker = java_class(spark, "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker")
    modes = java_class(spark, "org.apache.spark.sql.streaming.OutputMode")
    check = checker.checkForContinuous if trigger == "continuous" else checker.checkForStreaming
    try:
        check(
            frame._jdf.queryExecution().analyzed(),
            getattr(modes, mode.capitalize())(),
        )
    except Exception as error:
        fault = translate(error)
        return RuleFault(
            fault.message + (f" {fault.detail}" if fault.detail else ""), condition=fault.condition
        )
    return None
