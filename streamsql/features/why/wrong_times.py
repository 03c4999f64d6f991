"""(i) Event times in the future or around 1970: read in another unit, or one row that drags the watermark."""

from __future__ import annotations

from typing import Any

from streamsql.connectors.values import moment_text
from streamsql.definitions import Stream
from streamsql.features.why import proposals
from streamsql.features.why.verdict import Fact, Verdict, situation
from streamsql.language.tokens import quote_name
from streamsql.results import counted as count
from streamsql.runtime.engine.moments import length, millis, shown
from streamsql.runtime.evidence.evidence import EventTime, Evidence

FUTURE = 86_400_000
"""Milliseconds by which an event time may be ahead of the clock before it is called wrong."""
YEAR_1972 = 63_072_000_000


def _suspected(evidence: Evidence) -> bool:
    """Whether the newest event time that was reported is worth a look."""
    newest = evidence.newest
    wrong = newest is None or newest < YEAR_1972 or newest > evidence.asked_at * 1_000 + FUTURE
    return wrong and evidence.goes_on


@situation("EVENT_TIME_WRONG", _suspected, of=lambda evidence: evidence.event_times)
def wrong_times(evidence: Evidence, time: EventTime) -> Verdict | None:
    """(i) Event times in the future, or around 1970."""
    column, limit = quote_name(time.column), int(evidence.asked_at * 1_000) + FUTURE
    moment = f"unix_millis(CAST({column} AS TIMESTAMP))"
    row = evidence.probes.row(
        f"SELECT count({column}) AS n, count_if({moment} > {limit}) AS ahead, "
        f"count_if({moment} < {YEAR_1972}) AS early, max({moment}) AS newest, "
        f"max(if({moment} > {limit}, NULL, {moment})) AS sane FROM {quote_name(time.relation)}"
    )
    if row is None or not row["n"]:
        return None
    newest = shown(row["newest"], evidence.zone)
    facts: list[Fact] = [("rows with event time", row["n"]), ("newest event time", newest)]
    if row["early"] == row["n"]:
        return _in_1970(evidence, time, row, facts)
    if not row["ahead"]:
        return None
    facts.append(("later than tomorrow", row["ahead"]))
    if row["ahead"] == row["n"]:
        return _far_future(evidence, time, row, facts, limit)
    return _ahead(evidence, time, row, facts, limit)


def _ahead(evidence: Evidence, time: EventTime, row: Any, facts: list[Fact], limit: int) -> Verdict:
    """Some rows are ahead of all others, and the watermark with them."""
    newest = shown(row["newest"], evidence.zone)
    facts.append(("newest of the others", shown(row["sane"], evidence.zone)))
    facts += [("arrived in", when)] if (when := _arrival(evidence, limit)) else []
    which = f"1 row of {newest} has" if row["ahead"] == 1 else f"{row['ahead']:,} rows up to {newest} have"
    by = length((row["newest"] - row["sane"]) / 1_000)
    day = shown(limit, evidence.zone).partition(" ")[0]
    column, stream, proposal = quote_name(time.column), time.stream, proposals.previewed(time.stream)
    if stream is not None and stream.watermark and not stream.watermark.computed:
        guard = f"if({column} < {moment_text(day)}, {column}, NULL)"
        proposal = proposals.replaced(evidence, proposals.computed(stream, time.column, guard))
    return Verdict(
        sentence=f"{which} moved the watermark of {time.relation} ahead by {by}: all other rows are late",
        facts=tuple(facts),
        proposal=proposal,
    )


def _arrival(evidence: Evidence, limit: int) -> str:
    """The micro-batch in which an event time beyond the limit came first, with its time."""
    for report in evidence.reports:
        newest = millis(report.get("eventTime", {}).get("max"))
        if newest is not None and newest > limit:
            at = millis(report.get("timestamp"))
            return f"micro-batch {report['batchId']}" + (f", {shown(at, evidence.zone)}" if at else "")
    return ""


def _far_future(
    evidence: Evidence, time: EventTime, row: Any, facts: list[Fact], limit: int
) -> Verdict | None:
    """All times are ahead: milliseconds, or smaller units, that were read as seconds."""
    units = (("milliseconds", 1_000, "timestamp_millis"), ("microseconds", 10**6, "timestamp_micros"))
    fitting = [u for u in units if YEAR_1972 < row["newest"] / u[1] <= limit]
    if not fitting:
        return None
    unit, factor, call = fitting[0]
    facts.append((f"read as {unit}", shown(row["newest"] // factor, evidence.zone)))
    stream: Stream | None = time.stream
    proposal = proposals.previewed(time.stream)
    if stream and stream.watermark and stream.connector:
        change, text = stream, f"{call}({quote_name(time.column)})"
        if stream.watermark.computed:
            text = stream.watermark.computed.text.replace("timestamp_seconds", call)
        else:
            change = proposals.with_column(stream, time.column, "BIGINT")
        proposal = proposals.replaced(evidence, proposals.computed(change, time.column, text))
    return Verdict(
        sentence=f"the event times of {time.relation} are in the far future: {unit} were read as seconds",
        facts=tuple(facts),
        proposal=proposal,
    )


def _in_1970(evidence: Evidence, time: EventTime, row: Any, facts: list[Fact]) -> Verdict:
    """Seconds that were read as milliseconds, or zeros."""
    watermark = time.stream.watermark if time.stream else None
    proposal = proposals.previewed(time.stream)
    if time.stream and watermark and watermark.computed and "timestamp_millis" in watermark.computed.text:
        text = watermark.computed.text.replace("timestamp_millis", "timestamp_seconds")
        proposal = proposals.replaced(evidence, proposals.computed(time.stream, time.column, text))
        facts.append(("read as seconds", shown(row["newest"] * 1_000, evidence.zone)))
    return Verdict(
        sentence=f"all {count(row['n'], 'event time')} of {time.relation} lie around 1970: their numbers "
        "were read in the wrong unit",
        facts=tuple(facts),
        proposal=proposal,
    )
