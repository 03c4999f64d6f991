"""The situations in their order, from the source to the sink: the first that holds is the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from streamsql.definitions import Stream
from streamsql.features.why import condition_situations as conditions
from streamsql.features.why import outcome_situations as outcomes
from streamsql.features.why import row_situations as rows
from streamsql.features.why import source_situations as sources
from streamsql.features.why import time_situations as times
from streamsql.features.why import unread_files as files
from streamsql.features.why.verdict import Fact, Situation, Verdict
from streamsql.features.why.wrong_times import wrong_times
from streamsql.guard import informing
from streamsql.language.tokens import quote_name
from streamsql.results import counted as count
from streamsql.runtime.engine.moments import length, shown
from streamsql.runtime.evidence.evidence import Evidence, StreamEvidence
from streamsql.runtime.evidence.probes import PATIENCE
from streamsql.runtime.queries.facts import accounted

SITUATIONS: tuple[Situation, ...] = (
    outcomes.not_running,
    sources.not_received,
    sources.no_data,
    files.hidden_by_log,
    files.too_old,
    files.changed_files,
    sources.older_checkpoint,
    sources.not_read_yet,
    rows.null_times,
    rows.unreadable,
    wrong_times,
    conditions.filtered_out,
    conditions.no_partner,
    times.rows_late,
    times.watermark_stands,
    times.window_not_closed,
    outcomes.waits_in_state,
    rows.some_late,
    rows.some_malformed,
    rows.some_without_time,
    outcomes.seen_before,
    times.held_before,
    sources.all_read_before,
    outcomes.grows,
    rows.still_open,
    outcomes.written_elsewhere,
    outcomes.nothing_wrong,
)
"""Nearest to the source first."""

LOSSES = (
    files.hidden_by_log,
    files.too_old,
    files.changed_files,
    rows.some_late,
    rows.some_malformed,
    rows.some_without_time,
)
"""Situations in which rows are lost, whatever else holds."""
_ALSO = (
    *LOSSES,
    sources.not_received,
    times.held_before,
    sources.all_read_before,
    times.watermark_stands,
    times.window_not_closed,
)
"""Situations that may hold beside another one, and are told in a fact then; none of them reads much."""


def diagnose(evidence: Evidence) -> Verdict:
    """Why a query gives no rows. Raises Cancelled."""
    verdict = next(_holding(evidence, SITUATIONS), None)
    if verdict is None:
        return _with_account(evidence, outcomes.unexplained(evidence))
    more = (*_beside(evidence, verdict), *_not_examined(evidence))
    return _with_account(evidence, replace(verdict, facts=(*verdict.facts, *more)))


def _with_account(evidence: Evidence, verdict: Verdict) -> Verdict:
    """A verdict whose facts begin with the account of the query, as in every other place."""
    first = accounted(evidence.plan, evidence.account, evidence.mode)
    names = {name for name, _ in first}
    return replace(verdict, facts=(*first, *(fact for fact in verdict.facts if fact[0] not in names)))


def diagnose_stream(evidence: StreamEvidence, stream: Stream, reading: list[Evidence]) -> Verdict:
    """The same of a stream by itself. reading: the queries that read it, which may have lost rows of it."""
    alone = () if reading else (files.hidden_by_log, files.too_old)  # a query knows which files it has read
    own = (sources.not_received, sources.no_data, *alone, rows.null_times, rows.unreadable, wrong_times)
    verdict = next(_holding(evidence, own), None) or _lost_by(reading, stream)
    verdict = verdict or next(_holding(evidence, (conditions.filtered_out,)), None)
    runs = [query.name for query in reading if query.running is not None and not query.running.over]
    return verdict or _content(evidence, stream, runs)


def _holding(evidence: Evidence, situations: Iterable[Situation]) -> Iterator[Verdict]:
    """The verdicts of the situations that hold. Raises Cancelled."""
    for situation in situations:
        evidence.parts.cancel.check()
        verdict = informing(lambda: situation(evidence), None)  # noqa: B023 - called at once
        if verdict is not None:
            yield verdict


def _lost_by(reading: list[Evidence], stream: Stream) -> Verdict | None:
    """How the first query that loses rows of a stream loses them."""
    for query in reading:
        lost = losses(query)
        if lost:
            also: list[Fact] = [("also", other.sentence) for other in lost[1:]]
            sentence = f"{query.name} reads {stream.name}: {lost[0].sentence}"
            return _with_account(query, replace(lost[0], sentence=sentence, facts=(*lost[0].facts, *also)))
    return None


def _content(evidence: StreamEvidence, stream: Stream, reading: list[str]) -> Verdict:
    """What a stream holds, where nothing is wrong with it."""
    name = quote_name(stream.name)
    row = evidence.probes.row(f"SELECT count(*) FROM {name}")
    facts: list[Fact] = [("read by", ", ".join(reading) or "no query that runs")]
    for time in evidence.measured_times:
        if time.relation == stream.name and time.newest is not None:
            facts.append(("newest event time", shown(time.newest, evidence.zone)))
            facts.append(("delay", length(time.delay)))
    if row is None:
        why = "its rows could not be counted within a few seconds"
        if evidence.probes.unreadable:
            why = "its rows cannot be counted: they are only read as they come"
        return Verdict(f"{stream.name}: {why}", tuple(facts), situation="NOT_EXPLAINED")
    return Verdict(
        situation="NOTHING_WRONG",
        sentence=f"nothing is wrong with {stream.name}: it has {count(row[0], 'row')} now",
        facts=tuple(facts),
        proposal=f"SELECT * FROM {name} LIMIT 10;",
        healthy=True,
    )


def losses(evidence: Evidence) -> list[Verdict]:
    """Each way in which a query loses rows, the nearest to the source first. Raises Cancelled."""
    return list(_holding(evidence, LOSSES))


def _not_examined(evidence: Evidence) -> list[Fact]:
    """That something nearer the source might hold, too: its data could not be read in time."""
    slow = f"some of the data: it could not be read within {PATIENCE:.0f} seconds; WHY examines it again"
    return [("not examined", slow)] if evidence.probes.late else []


def _beside(evidence: Evidence, verdict: Verdict) -> list[Fact]:
    """What else holds."""
    if verdict.healthy or verdict.situation == "EVENT_TIME_WRONG":
        return []
    late = verdict.situation == "ROWS_LATE"  # rows.some_late reads the data once more
    also = {verdict.situation: verdict.sentence}
    for other in _holding(evidence, (s for s in _ALSO if not (late and s is rows.some_late))):
        also.setdefault(other.situation, other.sentence)
    return [("also", sentence) for sentence in list(also.values())[1:]]
