"""The facts of a query: made from its reports, or from what is saved of its last run."""

from __future__ import annotations

from streamsql.connectors.rows import keeps_malformed
from streamsql.definitions import ROW_FILES
from streamsql.plan.plans import Run
from streamsql.query_facts import Account, Amount, QueryFacts
from streamsql.runtime.checkpoints.batch_under_way import batch_under_way
from streamsql.runtime.engine.moments import millis, to_second
from streamsql.runtime.queries.run import Running


def facts_of(running: Running, zone: str = "") -> QueryFacts:
    """The facts of a query that was started here. zone: the session time zone. Calls Spark only once the
    query has ended.
    """
    newest = running.reports.newest(1)
    account = running.reports.account
    return QueryFacts(
        running.name,
        running.status() if running.over or running.stopped else "running",
        account,
        running.reports.run,
        newest[-1].get("batchId", -1) if newest else -1,
        running.reports.rate(),
        shown_watermark(account, zone),
        "" if newest or running.over else batch_under_way(running.plan.checkpoint),
        running.fault.message if running.fault else "",
        running.fault.hint if running.fault else "",
    )


_ROW_BY_ROW = ("watermark", "now", "key", "filter")
"""Operations after which each row is one row, or none."""
_GROUPING = (*_ROW_BY_ROW, "aggregate")


def remainder(plan: Run, account: Account, mode: str) -> tuple[str, Amount] | None:
    """The rows that were read and are nowhere else in an account, with the name of what became of them. None
    for none, and where that cannot be told: a join or a generator gives several rows for one.
    """
    kinds = {op.kind for op in plan.shape.ops}
    if not plan.shape.known or len(plan.targets) != 1:
        return None
    kept = any(map(keeps_malformed, plan.reads.streams))
    lost = account.late.number + (0 if kept else account.malformed.number)
    if kinds <= {*_ROW_BY_ROW} and mode == "append" and account.out is not None:
        left = account.read.number - account.out.number - lost
        files = any(
            stream.connector in (*ROW_FILES, "parquet", "orc", "values") for stream in plan.reads.streams
        )
        # Spark does not count the rows that it filters while it reads a file.
        return ("filtered", Amount(left, files or account.read.at_least)) if left > 0 else None
    if kinds <= {*_GROUPING} and "aggregate" in kinds and not account.late.at_least:
        left = account.read.number - lost
        return ("merged into groups or filtered", Amount(left, account.read.at_least)) if left > 0 else None
    return None


def shown_watermark(account: Account, zone: str) -> str:
    """The watermark in the session time zone; "" before the first."""
    watermark = millis(account.watermark)
    return to_second(watermark, zone) if watermark else ""
