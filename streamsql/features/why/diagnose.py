"""The situations in their order, from the source to the sink: the first that holds is the verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from streamsql.definitions import Stream
from streamsql.features.why.condition_situations import filtered_out, no_partner
from streamsql.features.why.outcome_situations import (
    grows,
    not_running,
    nothing_wrong,
    seen_before,
    unexplained,
    waits_in_state,
    written_elsewhere,
)
from streamsql.features.why.row_situations import (
    some_late,
    some_malformed,
    some_without_time,
    still_open,
    unreadable,
)
from streamsql.features.why.source_situations import (
    all_read_before,
    no_data,
    not_read_yet,
    not_received,
    older_checkpoint,
)
from streamsql.features.why.time_situations import held_before, rows_late, watermark_stands, window_not_closed
from streamsql.features.why.unread_files import changed_files, hidden_by_log, too_old
from streamsql.features.why.verdict import Fact, Verdict
from streamsql.features.why.wrong_times import wrong_times
from streamsql.guard import informing
from streamsql.language.tokens import quote_name
from streamsql.results import counted as count
from streamsql.runtime.engine.moments import length, shown
from streamsql.runtime.evidence.evidence import Evidence, StreamEvidence
from streamsql.runtime.evidence.probes import PATIENCE
from streamsql.runtime.queries.facts import accounted

Situation = Callable[[Evidence], Verdict | None]

SITUATIONS: tuple[Situation, ...] = (
    not_running,
    not_received,
    no_data,
    hidden_by_log,
    too_old,
    changed_files,
    older_checkpoint,
    not_read_yet,
    unreadable,
    wrong_times,
    filtered_out,
    no_partner,
    rows_late,
    watermark_stands,
    window_not_closed,
    waits_in_state,
    some_late,
    some_malformed,
    some_without_time,
    seen_before,
    held_before,
    all_read_before,
    grows,
    still_open,
    written_elsewhere,
    nothing_wrong,
)
"""Nearest to the source first."""

LOSSES = (hidden_by_log, too_old, changed_files, some_late, some_malformed, some_without_time)
"""Situations in which rows are lost, whatever else holds."""
_ALSO = (*LOSSES, not_received, held_before, all_read_before, watermark_stands, window_not_closed)
"""Situations that may hold beside another one, and are told in a fact then; none of them reads much."""


def diagnose(evidence: Evidence) -> Verdict:
    """Why a query gives no rows. Raises Cancelled."""
    verdict = _first(evidence, SITUATIONS)
    if verdict is None:
        return _with_account(evidence, unexplained(evidence))
    more = (*_beside(evidence, verdict), *_not_examined(evidence))
    return _with_account(evidence, replace(verdict, facts=(*verdict.facts, *more)))


def _with_account(evidence: Evidence, verdict: Verdict) -> Verdict:
    """A verdict whose facts begin with the account of the query, as in every other place."""
    first = accounted(evidence.plan, evidence.account, evidence.mode)
    names = {name for name, _ in first}
    return replace(verdict, facts=(*first, *(fact for fact in verdict.facts if fact[0] not in names)))


def diagnose_stream(evidence: StreamEvidence, stream: Stream, reading: list[Evidence]) -> Verdict:
    """The same of a stream by itself. reading: the queries that read it, which may have lost rows of it."""
    alone = () if reading else (hidden_by_log, too_old)  # a query knows which files it has read
    verdict = _first(evidence, (not_received, no_data, *alone, unreadable, wrong_times))
    verdict = verdict or _lost_by(reading, stream) or _first(evidence, (filtered_out,))
    runs = [query.name for query in reading if query.running is not None and not query.running.over]
    return verdict or _content(evidence, stream, runs)


def _first(evidence: Evidence, situations: Sequence[Situation]) -> Verdict | None:
    """The first situation that holds. Raises Cancelled."""
    for situation in situations:
        evidence.parts.cancel.check()
        verdict = informing(lambda: situation(evidence), None)  # noqa: B023 - called at once
        if verdict is not None:
            return verdict
    return None


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
        why = (
            "its rows cannot be counted: they are only read as they come"
            if evidence.probes.unreadable
            else ("its rows could not be counted within a few seconds")
        )
        return Verdict(situation="NOT_EXPLAINED", sentence=f"{stream.name}: {why}", facts=tuple(facts))
    return Verdict(
        situation="NOTHING_WRONG",
        sentence=f"nothing is wrong with {stream.name}: it has {count(row[0], 'row')} now",
        facts=tuple(facts),
        proposal=f"SELECT * FROM {name} LIMIT 10;",
        healthy=True,
    )


def losses(evidence: Evidence) -> list[Verdict]:
    """Each way in which a query loses rows, the nearest to the source first. Raises Cancelled."""
    found = (informing(lambda: situation(evidence), None) for situation in LOSSES)  # noqa: B023 - called at once
    return [verdict for verdict in found if verdict is not None]


def _not_examined(evidence: Evidence) -> list[Fact]:
    """That something nearer the source might hold, too: its data could not be read in time."""
    slow = f"some of the data: it could not be read within {PATIENCE:.0f} seconds; WHY examines it again"
    return [("not examined", slow)] if evidence.probes.late else []


def _beside(evidence: Evidence, verdict: Verdict) -> list[Fact]:
    """What else holds."""
    if verdict.healthy or verdict.situation == "EVENT_TIME_WRONG":
        return []
    also: dict[str, str] = {}
    for situation in _ALSO:
        if situation is some_late and verdict.situation == "ROWS_LATE":
            continue  # it reads the data once more
        other = informing(lambda: situation(evidence), None)  # noqa: B023 - called at once
        if other is not None and other.situation != verdict.situation:
            also.setdefault(other.situation, other.sentence)
    return [("also", sentence) for sentence in also.values()]
