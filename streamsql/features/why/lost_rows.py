"""Rows that a query has read and that cannot come out, though others do: late, malformed, without event time;
and the groups that are still open.
"""

from __future__ import annotations

import time
from dataclasses import replace

from streamsql.connectors.rows import keeps_malformed
from streamsql.features.why import proposals
from streamsql.features.why.time_situations import came_late, closing_window, late_facts, were
from streamsql.features.why.verdict import Verdict
from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.moments import brief
from streamsql.runtime.evidence.event_times import event_times
from streamsql.runtime.evidence.evidence import Evidence


def some_late(evidence: Evidence) -> Verdict | None:
    """(h) Rows came behind the watermark, and others came out."""
    late = evidence.account.late
    if not late:
        return None
    facts, _, missed = late_facts(evidence)
    kept = evidence.plan.late
    what = f"written into {kept.sink.name}" if kept is not None else "dropped"
    shown = ""
    if kept is not None:
        shown = (
            proposals.join(f"SELECT * FROM {quote_name(kept.sink.name)} LIMIT 10")
            if kept.sink.is_live
            else ""
        )
    elif not evidence.plan.transient and not evidence.query.together:
        shown = proposals.join(f"SELECT * FROM LATE ROWS OF QUERY {quote_name(evidence.name)}")
    return Verdict(
        situation="ROWS_LATE",
        sentence=f"{came_late(evidence)}{missed}, and {were(late)} {what}{came_out(evidence)}",
        facts=facts,
        proposal=shown,
    )


def some_malformed(evidence: Evidence) -> Verdict | None:
    """(c) Rows could not be read as declared, and others could."""
    bad = evidence.account.malformed
    if not bad:
        return None
    streams = [s for s in evidence.streams if s.may_be_malformed]
    names = " and ".join(s.name for s in streams) or "its streams"
    into = ", ".join(sorted({s.malformed_sink for s in streams if s.malformed_sink}))
    done = f"{were(bad)} {f'written into {into}' if into else 'skipped'}"
    if any(map(keeps_malformed, streams)):
        done = "the values that cannot be read are NULL"
    first = f"SELECT * FROM {quote_name(f'{streams[0].name}$malformed')} LIMIT 10" if streams else ""
    return Verdict(
        situation="ROWS_UNREADABLE",
        sentence=f"{bad.of('row')} of {names} cannot be read as declared, and {done}{came_out(evidence)}",
        proposal=proposals.join(first),
    )


def some_without_time(evidence: Evidence) -> Verdict | None:
    """(c) The event time of rows is NULL: they are in no window."""
    times = event_times(evidence.reports) if any(op.window for op in evidence.plan.shape.ops) else None
    if times is None or not times.nulls:
        return None
    column = evidence.event_times[0].column if evidence.event_times else "the event time"
    return Verdict(
        situation="EVENT_TIME_UNREADABLE",
        sentence=f"the event time {column} is NULL in {times.nulls_text} of {times.rows:,} rows: those rows "
        f"are in no window{came_out(evidence)}",
        facts=(("event time NULL", times.nulls_text),),
        proposal=proposals.previewed(evidence.streams[0]) if evidence.streams else "",
    )


def still_open(evidence: Evidence) -> Verdict | None:
    """(f) Groups of append mode are open, though others came out. Nothing is wrong with that."""
    verdict = closing_window(evidence)
    if verdict is None:
        return None
    return replace(
        verdict,
        sentence=f"{verdict.sentence}{came_out(evidence)}",
        healthy=True,
    )


def came_out(evidence: Evidence) -> str:
    """The rows that came out, as the end of a sentence; "" if that is not known."""
    out = evidence.account.out
    if out is None:
        return ""
    output = evidence.running.reports.output if evidence.running else None
    ago = f", the last {brief(time.time() - output.at)} ago" if output is not None and output.at else ""
    return f"; {out.of('row')} came out{ago}" if out else "; none came out"
