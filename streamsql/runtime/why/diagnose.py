"""The situations in their order, from the source to the sink: the first that holds is the verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from streamsql.definitions import Stream
from streamsql.guard import informing
from streamsql.language.tokens import quote_name
from streamsql.runtime.why.evidence import Evidence, StreamEvidence
from streamsql.runtime.why.filter_situation import filtered_out
from streamsql.runtime.why.join_situation import no_partner
from streamsql.runtime.why.moments import length, shown
from streamsql.runtime.why.old_files import too_old
from streamsql.runtime.why.outcome_situations import (
    grows,
    not_running,
    nothing_wrong,
    seen_before,
    unexplained,
    waits_in_state,
    written_elsewhere,
)
from streamsql.runtime.why.probes import PATIENCE
from streamsql.runtime.why.row_situations import unreadable
from streamsql.runtime.why.source_situations import all_read_before, no_data, not_read_yet
from streamsql.runtime.why.time_situations import rows_late, watermark_stands, window_not_closed
from streamsql.runtime.why.verdict import Verdict, count
from streamsql.runtime.why.wrong_times import wrong_times

Situation = Callable[[Evidence], Verdict | None]

SITUATIONS: tuple[Situation, ...] = (
    not_running,
    no_data,
    all_read_before,
    not_read_yet,
    unreadable,
    wrong_times,
    filtered_out,
    no_partner,
    rows_late,
    watermark_stands,
    window_not_closed,
    waits_in_state,
    seen_before,
    written_elsewhere,
    grows,
    too_old,
    nothing_wrong,
)
"""Nearest to the source first."""

_ALSO = (rows_late, watermark_stands, window_not_closed)
"""Situations that may hold beside another one, and are told in a fact then; none of them reads much."""


def diagnose(evidence: Evidence) -> Verdict:
    """Why a query gives no rows. Raises Cancelled."""
    for number, situation in enumerate(SITUATIONS):
        evidence.parts.cancel.check()
        verdict = informing(lambda: situation(evidence), None)  # noqa: B023 - called at once
        if verdict is not None:
            more = (*_beside(evidence, number, verdict), *_not_examined(evidence))
            return replace(verdict, facts=(*verdict.facts, *more))
    return unexplained(evidence)


def diagnose_stream(evidence: StreamEvidence, stream: Stream, reading: list[str]) -> Verdict:
    """The same of a stream by itself. reading: the queries that read it."""
    for situation in (no_data, unreadable, wrong_times, filtered_out):
        evidence.parts.cancel.check()
        verdict = informing(lambda: situation(evidence), None)  # noqa: B023 - called at once
        if verdict is not None:
            return verdict
    return _there(evidence, stream, reading)


def _there(evidence: StreamEvidence, stream: Stream, reading: list[str]) -> Verdict:
    """What a stream holds, where nothing is wrong with it."""
    name = quote_name(stream.name)
    row = evidence.probes.row(f"SELECT count(*) FROM {name}")
    facts: list[tuple[str, object]] = [("read by", ", ".join(reading) or "no query that runs")]
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


def _not_examined(evidence: Evidence) -> list[tuple[str, object]]:
    """That something nearer the source might hold, too: its data could not be read in time."""
    slow = f"some of the data: it could not be read within {PATIENCE:.0f} seconds; WHY examines it again"
    return [("not examined", slow)] if evidence.probes.late else []


def _beside(evidence: Evidence, number: int, verdict: Verdict) -> list[tuple[str, object]]:
    """What else holds, farther from the source."""
    if verdict.healthy or not evidence.took_input or verdict.situation == "EVENT_TIME_WRONG":
        return []
    later = [s for s in SITUATIONS[number + 1 :] if s in _ALSO]
    situations = (informing(lambda: s(evidence), None) for s in later)  # noqa: B023
    also: list[tuple[str, object]] = [("also", other.sentence) for other in situations if other is not None]
    return also[:1]
