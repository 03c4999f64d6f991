"""The facts of a query: made from its reports, or from what is saved of its last run."""

from __future__ import annotations

from streamsql.query_facts import Account, QueryFacts
from streamsql.runtime.checkpoints.batch_under_way import batch_under_way
from streamsql.runtime.queries.run import Running
from streamsql.runtime.why.moments import millis, to_second


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


def shown_watermark(account: Account, zone: str) -> str:
    """The watermark in the session time zone; "" before the first."""
    watermark = millis(account.watermark)
    return to_second(watermark, zone) if watermark else ""
