"""VERIFY: the rows of a query against the same SELECT as a batch over the input that it has read."""

from __future__ import annotations

from typing import Any

from streamsql.calls import run
from streamsql.errors import InputFault
from streamsql.language.statements.verify import Verify
from streamsql.language.tokens import quote_name
from streamsql.plan.event_time_plans import Verification
from streamsql.results import Done
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.handlers import Answers
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import BUSY
from streamsql.runtime.why.verdict import count

SHOWN = 5
"""How many of the rows that are missing, or too many, an error lists."""


def _verify(parts: SessionParts, plan: Verification, statement: Verify) -> Done:
    """Compare the rows. A query that runs is awaited until it is idle. Raises InputFault when they differ."""
    name = plan.query.name.casefold()
    running = parts.queries.all.get(name)
    if running is not None and running.status() in BUSY:
        parts.queries.wait([name], parts.cancel, idle=True, timeout=None)
    env = parts.env(plan.program, plan.reads)
    run(plan.program, env)
    reader = env["reader"]
    if not reader.log.numbers("commits"):
        raise InputFault(
            f"{plan.query.name} has read nothing yet",
            hint=f"WHY QUERY {quote_name(plan.query.name)};",
            span=statement.name.span,
            code="NO_RECORDS",
        )
    expected = env["expected"](*(reader.all_rows(at) for at in range(plan.streams)))
    different = _different(expected, _there(parts, plan, expected.schema))
    total, lacks, extra = different.selectExpr(
        "coalesce(sum(there), 0)",
        "coalesce(sum(greatest(sign, 0)), 0)",
        "coalesce(sum(greatest(-sign, 0)), 0)",
    ).first()
    rows = count(total, "row")
    if not lacks and not extra:
        batches = count(len(reader.log.numbers("commits")), "micro-batch")
        return Done(
            message=f"{plan.query.name} is verified: {rows}, those of its SELECT as a batch ({batches})"
        )
    late = reader.frame().count() if plan.has_state else 0
    differing = (*_listed("missing", different, 1), *_listed("too many", different, -1))
    raise InputFault(
        f"{plan.query.name} has {rows}, {lacks} missing and {extra} too many against its SELECT as a batch",
        detail="\n".join((*differing, *_because(parts, plan, late))),
        hint=f"WHY QUERY {quote_name(plan.query.name)};",
        span=statement.name.span,
        code="VERIFY_DIFFERS",
    )


def _there(parts: SessionParts, plan: Verification, schema: Any) -> Any:
    """The rows that the sink has."""
    if plan.sink.is_live:
        rows = parts.live.get(plan.sink.name.casefold())
        assert rows is not None
        return rows.frame(parts.spark)
    options = {k: v for k, v in plan.sink.options if k.casefold() not in ("path", "retention")}
    reader = parts.spark.read.format(plan.sink.connector).schema(schema).options(**options)
    try:
        return reader.load(plan.sink.option("path")).select(*schema.names)
    except Exception:  # nothing was written
        return parts.spark.createDataFrame([], schema)


def _different(expected: Any, there: Any) -> Any:
    """Each row of both once, with two more columns: there, how often the sink has it; sign, how often less
    than the batch.
    """
    from pyspark.sql import functions as F

    names = [f"c{n}" for n in range(len(expected.columns))]
    wanted = expected.toDF(*names).select("*", F.lit(1).alias("sign"), F.lit(0).alias("there"))
    has = there.toDF(*names).select("*", F.lit(-1).alias("sign"), F.lit(1).alias("there"))
    return (
        wanted.unionAll(has).groupBy(*names).agg(F.sum("sign").alias("sign"), F.sum("there").alias("there"))
    )


def _listed(what: str, different: Any, sign: int) -> list[str]:
    rows = collect(different.where(f"sign * {sign} > 0").drop("sign", "there").limit(SHOWN)).rows
    return [f"{what}: {', '.join(map(str, row))}" for row in rows]


def _because(parts: SessionParts, plan: Verification, late: int) -> list[str]:
    """What may explain a difference: late rows, and groups that append mode holds back."""
    because = []
    running = parts.queries.all.get(plan.query.name.casefold())
    if late:
        because.append(f"{count(late, 'row')} came late: SELECT * FROM LATE ROWS OF QUERY {plan.query.name};")
    reports = running.reports.newest(1) if running else []
    held = sum(op.get("numRowsTotal", 0) for op in reports[-1].get("stateOperators", [])) if reports else 0
    if held and running and running.mode == "append":
        because.append(f"{count(held, 'row')} wait in state: FLUSH QUERY {plan.query.name}; emits them")
    return because


PLANS: Answers = {Verification: _verify}
