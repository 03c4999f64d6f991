"""WHY of a live table over live tables, and of a query that writes the changes of such a result."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from streamsql.features.why.diagnose import losses
from streamsql.features.why.hidden_rows import hidden_rows
from streamsql.features.why.outcome_situations import not_running
from streamsql.features.why.verdict import Fact, Verdict
from streamsql.plan.changes import Changes
from streamsql.plan.plans import Refresh
from streamsql.results import counted as count
from streamsql.runtime.engine.moments import brief
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.handlers.refresh_remarks import Remark, remarks_on
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running


def refresh_verdict(parts: SessionParts, plan: Refresh, running: Running | None) -> Verdict:
    """The verdict where none of the live tables that it reads is empty. Raises Cancelled."""
    name, remarks = plan.query.name, remarks_on(plan.query.name, parts)
    stopped = not_running(Evidence(parts, plan, running))
    if stopped is not None or running is None:
        return stopped or Verdict(situation="NOT_RUNNING", sentence=f"{name} does not run")
    facts = _facts(parts, plan, running)
    if remarks:
        return _behind(name, remarks, facts)
    rows = running.handle.rows.table
    if rows is None or not rows.num_rows:
        return hidden_rows(parts, plan.query.text) or Verdict(
            situation="NOT_EXPLAINED",
            sentence=f"the SELECT of {name} gives no row of those that it reads",
            facts=facts,
        )
    for feeding in (parts.queries.all.get(key) for key in parts.queries.refreshes.feeding(name)):
        lost = losses(Evidence(parts, feeding.plan, feeding)) if feeding and not feeding.is_refresh else []
        if feeding and lost:
            sentence = f"{feeding.name}, from which {name} is computed: {lost[0].sentence}"
            return replace(lost[0], sentence=sentence, facts=(*facts, *lost[0].facts))
    what = f"its sink has {count(rows.num_rows, 'row')}" if isinstance(plan, Changes) else (
        f"{name} has {count(rows.num_rows, 'row')}"
    )  # fmt: skip
    return Verdict(
        situation="NOTHING_WRONG",
        sentence=f"nothing is wrong: {what}, computed {_ago(running)} ago",
        facts=facts,
        healthy=True,
    )


def _facts(parts: SessionParts, plan: Refresh, running: Running) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    for table in plan.reads.live:
        rows = parts.live.get(table.name.casefold())
        if rows is not None:
            facts.append((f"rows of {table.name}", rows.now().count))
    refresher = running.handle
    facts += [("micro-batches behind", refresher.behind), ("refresh ms", refresher.milliseconds)]
    return tuple(facts)


def _behind(name: str, remarks: list[Remark], facts: tuple[Fact, ...]) -> Verdict:
    """It is not as its inputs are, or they stand still."""
    first, others = remarks[0], [("also", str(remark)) for remark in remarks[1:]]
    typed = first.statement if first.statement.endswith(";") and "…" not in first.statement else ""
    more = [("to resolve it", f"{first.statement} {first.effect}")] if first.statement and not typed else []
    return Verdict(
        situation="BEHIND",
        sentence=f"{name}: {first.fact}",
        facts=(*more, *facts, *others),
        proposal=typed,
    )


def _ago(running: Running) -> str:
    """How long ago the result was computed."""
    reports = running.reports.newest(1)
    stamp = reports[-1].get("timestamp", "") if reports else ""
    then = datetime.fromisoformat(stamp) if stamp else datetime.now(UTC)
    return brief((datetime.now(UTC) - then).total_seconds())
