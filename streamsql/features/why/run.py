"""WHY: the verdict on a query, a live table or a stream, as a result."""

from __future__ import annotations

from dataclasses import replace

from streamsql.definitions import Query, Stream
from streamsql.errors import NameFault, StreamsqlError
from streamsql.features.why.diagnose import diagnose, diagnose_stream
from streamsql.features.why.hidden_rows import hidden_rows
from streamsql.features.why.refresh_verdict import refresh_verdict
from streamsql.features.why.statement import Why as WhyStatement
from streamsql.features.why.verdict import Verdict
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.plan.planner import start_plan
from streamsql.plan.plans import Refresh, Run
from streamsql.plan.statements.queries import as_they_come
from streamsql.query_facts import Amount
from streamsql.results import Why
from streamsql.results import counted as count
from streamsql.runtime.evidence.evidence import Evidence, StreamEvidence
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import pairs_of
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running
from streamsql.runtime.session_summary import silent_query


def _why(parts: SessionParts, statement: WhyStatement) -> Why:
    """WHY QUERY, WHY LIVE TABLE, WHY STREAM, or WHY alone. Raises NameFault."""
    if statement.kind == "stream":
        assert statement.name
        return result(_of_stream(parts, parts.catalog.stream(statement.name)))
    if statement.kind == "live_table":
        assert statement.name
        table = parts.catalog.live_table(statement.name)
        feeding = parts.catalog.queries_into(table.name)
        empty = parts.newest.empty_select
        hidden = hidden_rows(parts, empty, table) if empty else None
        if hidden:
            return result(hidden)
        late = parts.catalog.late_into(table.name)
        if not feeding:
            return result(_of_late(parts, table.name, late[0]) if late else _unfed(table.name))
        return result(_of_query(parts, feeding[0]))
    if statement.name:
        return result(_of_query(parts, parts.catalog.query(statement.name)))
    hidden = hidden_rows(parts, parts.newest.empty_select) if parts.newest.empty_select else None
    if hidden:
        return result(hidden)
    silent = silent_query(parts)
    if silent is not None:  # the bar names it
        verdict = _of_query(parts, parts.catalog.query(Name(silent[0])))
        return result(replace(verdict, sentence=_about(silent[0], verdict.sentence)))
    newest = parts.newest.run
    if newest is not None:
        return result(_of_run(parts, newest.plan, newest))
    queries = list(parts.catalog.queries.values())
    if not queries:
        raise NameFault(
            "there is no query yet to explain",
            hint="WHY STREAM name; examines a stream",
            span=statement.span,
            code="UNKNOWN_QUERY",
        )
    return result(_of_query(parts, queries[-1]))


def _about(name: str, sentence: str) -> str:
    """A sentence that names the query it is about."""
    return sentence if name in sentence else f"{name}: {sentence}"


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
    kept = rows.rows()[0].num_rows if rows is not None and rows.rows()[0] is not None else 0
    late = running is not None and running.reports.account.late
    well = "" if kept or late else "nothing is wrong: "
    facts = (
        [("rows in", running.reports.account.read), ("late rows", running.reports.account.late)]
        if running
        else []
    )
    return Verdict(
        situation="NOTHING_WRONG" if well else "ROWS_LATE",
        sentence=f"{well}{table} takes the rows of {query.name} that come late, and "
        + (f"has {count(kept, 'row')}" if kept else "none has come late so far"),
        facts=tuple(facts),
        proposal=f"WHY QUERY {quote_name(query.name)};",
        healthy=True,
    )


def _unfed(table: str) -> Verdict:
    return Verdict(
        situation="NOT_RUNNING",
        sentence=f"no query writes into the live table {table}: "
        f"INSERT INTO {quote_name(table)} SELECT … starts one",
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
