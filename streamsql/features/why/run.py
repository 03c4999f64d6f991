"""WHY: the verdict on a query, a live table or a stream, as a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from streamsql.definitions import Query, Sink, Stream
from streamsql.errors import NameFault, Span, StreamsqlError
from streamsql.features.why import proposals
from streamsql.features.why.condition_situations import without
from streamsql.features.why.diagnose import diagnose, diagnose_stream, losses
from streamsql.features.why.outcome_situations import not_running
from streamsql.features.why.statement import Why as WhyStatement
from streamsql.features.why.verdict import Fact, Verdict, are
from streamsql.language.conditions import comparisons_of
from streamsql.language.expression import Expression
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote, quote_name
from streamsql.plan.changes_plan import Changes
from streamsql.plan.planner import start_plan
from streamsql.plan.plans import Refresh, Run
from streamsql.plan.statements.queries import as_they_come
from streamsql.query_facts import Amount
from streamsql.results import Why
from streamsql.results import counted as count
from streamsql.runtime.engine.moments import brief
from streamsql.runtime.evidence.evidence import Evidence, StreamEvidence
from streamsql.runtime.evidence.probes import Probes
from streamsql.runtime.evidence.selects import Part, changed, parts_of
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import ZONE, pairs_of, session_zone
from streamsql.runtime.handlers.refresh_remarks import Remark, remarks_on
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running
from streamsql.runtime.session_summary import silent_query


def _why(parts: SessionParts, statement: WhyStatement) -> Why:
    """WHY QUERY, WHY LIVE TABLE, WHY STREAM, or WHY alone. Raises NameFault."""
    if statement.name is None:
        return result(_of_newest(parts, statement.span))
    of_kind: dict[str, Callable[[SessionParts, Any], Verdict]] = {
        "stream": _of_stream,
        "live_table": _of_live_table,
        "query": _of_query,
    }
    entry = getattr(parts.catalog, statement.kind)(statement.name)
    return result(of_kind[statement.kind](parts, entry))


def _of_live_table(parts: SessionParts, table: Sink) -> Verdict:
    hidden = hidden_rows(parts, parts.newest.empty_select, table)
    feeding, late = parts.catalog.queries_into(table.name), parts.catalog.late_into(table.name)
    if hidden or feeding:
        return hidden or _of_query(parts, feeding[0])
    if late:
        return _of_late(parts, table.name, late[0])
    return Verdict(
        sentence=f"no query writes into the live table {table.name}: "
        f"INSERT INTO {quote_name(table.name)} SELECT … starts one",
        situation="NOT_RUNNING",
    )


def _of_newest(parts: SessionParts, span: Span) -> Verdict:
    """The verdict on the SELECT that gave no rows, the query that the bar names, or what was started last."""
    hidden = hidden_rows(parts, parts.newest.empty_select)
    if hidden:
        return hidden
    silent, newest = silent_query(parts), parts.newest.run
    if silent is not None:  # the bar names it
        name = silent[0]
        verdict = _of_query(parts, parts.catalog.query(Name(name)))
        named = name in verdict.sentence
        return verdict if named else replace(verdict, sentence=f"{name}: {verdict.sentence}")
    if newest is not None:
        return _of_run(parts, newest.plan, newest)
    queries = list(parts.catalog.queries.values())
    if not queries:
        raise NameFault(
            "there is no query yet to explain",
            hint="WHY STREAM name; examines a stream",
            span=span,
            code="UNKNOWN_QUERY",
        )
    return _of_query(parts, queries[-1])


def _of_query(parts: SessionParts, query: Query) -> Verdict:
    running = parts.queries.all.get(query.name.casefold())
    if running is not None:
        return _of_run(parts, running.plan, running)
    try:
        plan = start_plan(query, parts.context())
    except StreamsqlError as fault:
        return Verdict(
            situation="NOT_RUNNING",
            sentence=f"{query.name} does not run, and could not be started: {fault.message}",
            facts=(("detail", fault.detail), ("hint", fault.hint)),
        )
    return _of_run(parts, plan, None)


def _of_run(parts: SessionParts, plan: Run, running: Running | None) -> Verdict:
    """The verdict on a query; of a live table over live tables, unless it failed, that on the first of these
    that is empty.
    """
    if not isinstance(plan, Refresh):
        return diagnose(Evidence(parts, plan, running))
    failed = running is not None and running.fault is not None
    for table in () if failed else plan.reads.live:
        rows = parts.live.get(table.name.casefold())
        feeding = parts.catalog.queries_into(table.name)
        if feeding and (rows is None or rows.rows()[0] is None or not rows.rows()[0].num_rows):
            verdict = _of_query(parts, feeding[0])
            return replace(verdict, sentence=f"{table.name}, which it reads, is empty: {verdict.sentence}")
    return refresh_verdict(parts, plan, running)


def _of_stream(parts: SessionParts, stream: Stream) -> Verdict:
    reading = [
        Evidence(parts, run.plan, run)
        for run in parts.queries.all.values()
        if stream in run.plan.reads.streams and not run.plan.transient
    ]
    return diagnose_stream(
        StreamEvidence(parts, as_they_come(stream, parts.context()), None), stream, reading
    )


def _of_late(parts: SessionParts, table: str, query: Query) -> Verdict:
    """The verdict on a live table that takes the late rows of a query."""
    running = parts.queries.all.get(query.name.casefold())
    rows = parts.live.get(table.casefold())
    number = rows.rows()[0].num_rows if rows is not None and rows.rows()[0] is not None else 0
    late = running is not None and running.reports.account.late
    well = "" if number or late else "nothing is wrong: "
    account = running.reports.account if running else None
    return Verdict(
        situation="NOTHING_WRONG" if well else "ROWS_LATE",
        sentence=f"{well}{table} takes the rows of {query.name} that come late, and "
        + (f"has {count(number, 'row')}" if number else "none has come late so far"),
        facts=(("rows in", account.read), ("late rows", account.late)) if account else (),
        proposal=f"WHY QUERY {quote_name(query.name)};",
        healthy=True,
    )


def result(verdict: Verdict) -> Why:
    """A verdict as a result to show."""
    facts = pairs_of([(name, v.cell if isinstance(v, Amount) else v) for name, v in verdict.facts])
    return Why(
        columns=facts.columns,
        rows=facts.rows,
        numeric=facts.numeric,
        verdict=verdict.sentence,
        code=verdict.situation,
        proposal=verdict.proposal,
    )


DIRECT: Answers = {WhyStatement: _why}


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
    stamp = running.reports.latest.get("timestamp", "")
    then = datetime.fromisoformat(stamp) if stamp else datetime.now(UTC)
    return brief((datetime.now(UTC) - then).total_seconds())


def hidden_rows(parts: SessionParts, text: str, table: Sink | None = None) -> Verdict | None:
    """Why a SELECT over live tables gave no rows, though they have some. text: the SELECT, "" for none;
    table: the one that it must read, None for any. Raises Cancelled.
    """
    blocks = parts_of(text, parts.catalog) if text else []
    if not blocks or (table and not _reads(blocks[-1], table)):
        return None
    part, probes = blocks[-1], Probes(parts)
    if not part.conditions or not part.source:
        return None
    row = probes.row(part.select(part.counts))
    if row is None or not row["n"]:
        return None
    rows_by_condition = part.kept_by(row)
    facts: list[Fact] = [("rows there", row["n"])]
    facts += [(f"kept by {c.text}", f"{rows:,} of {row['n']:,}") for c, rows in rows_by_condition]
    zone = session_zone(parts)
    shifted = _in_utc(part, probes, zone)
    if shifted:
        return Verdict(
            sentence=f"the SELECT finds no row for times in the session time zone {zone}; for times in UTC "
            f"it finds {count(shifted, 'row')}",
            facts=(*facts, ("session time zone", zone), ("rows that match in UTC", shifted)),
            proposal=proposals.join(f"SET {ZONE} = 'UTC'", text),
            situation="TIME_ZONE",
        )
    return Verdict(
        situation="ROWS_HIDDEN",
        sentence=f"{count(row['n'], 'row')} {are(row['n'])} there, and the WHERE of the SELECT keeps none",
        facts=tuple(facts),
        proposal=proposals.join(without(part, [c for c, rows in rows_by_condition if not rows])),
    )


def _reads(part: Part, table: Sink) -> bool:
    names = [j.relation.name for j in part.block.joins]
    names += [part.block.relation.name] if part.block.relation else []
    return table.name.casefold() in [n.casefold() for n in names]


def _in_utc(part: Part, probes: Probes, zone: str) -> int:
    """How many rows the SELECT would find if its times were those of UTC."""
    edits = []
    for condition in part.conditions:
        for pair in comparisons_of(condition):
            for column, other in ((pair.small, pair.big), (pair.big, pair.small)):
                if column.bare_column() and not other.column_names() and _is_time(other):
                    shifted = f"to_utc_timestamp({column.text}, {quote(zone)})"
                    edits.append((column.span, shifted))
    if not edits or part.block.where is None or zone == "UTC":
        return 0
    start = part.block.where.expression.span.start
    where = changed(part.block.where.expression.text, [(span.shift(-start), w) for span, w in edits])
    row = probes.row(part.select("count(*)", where))
    return int(row[0]) if row else 0


def _is_time(literal: Expression) -> bool:
    """Whether a text is, or holds, a moment."""
    return any(c.isdigit() for c in literal.text) and ":" in literal.text
