"""Situations of event time: windows that are not closed, a watermark that stands, rows that are late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamsql.definitions import Stream
from streamsql.features.why import proposals
from streamsql.features.why.open_groups import OpenGroups, open_groups
from streamsql.features.why.verdict import Fact, Verdict, are, silent, situation, unfed, were
from streamsql.language.tokens import quote_name
from streamsql.results import counted as count
from streamsql.runtime.engine.moments import interval, length, millis, shown, watermark_of
from streamsql.runtime.evidence.event_times import event_times
from streamsql.runtime.evidence.evidence import EventTime, Evidence
from streamsql.runtime.evidence.lateness import keeping, measured_in
from streamsql.runtime.queries.facts import JOIN, OPEN, is_source_of, waits_for_watermark
from streamsql.runtime.queries.progress_reports import account_of
from streamsql.runtime.queries.run import GOING_ON


@situation("WINDOW_NOT_CLOSED", silent)
def window_not_closed(evidence: Evidence) -> Verdict | None:
    """(f) Append mode holds groups back until the watermark has passed their end; (j) sessions likewise."""
    return closing_window(evidence)


@situation("WINDOW_NOT_CLOSED", unfed)
def held_before(evidence: Evidence) -> Verdict | None:
    """The same of a query that has read nothing since its start: its groups are those of the runs before."""
    return closing_window(evidence)


def closing_window(evidence: Evidence) -> Verdict | None:
    """What closes the next group that append mode holds back; None if there is none."""
    groups = open_groups(evidence)
    if groups is None:
        return None
    what = count(groups.rows, "session" if groups.session else "group")
    facts = clock(evidence)
    if groups.first is None or not evidence.event_times:
        return Verdict(
            sentence=f"{what} of {evidence.title} {are(groups.rows)} open: append mode emits a group once "
            "the watermark has passed its end",
            facts=(*facts, (OPEN, groups.rows)),
            proposal=proposals.shown_now(evidence),
        )
    word = "session" if groups.session else "window"
    end = shown(groups.first, evidence.zone)
    facts += ((OPEN, groups.rows), (f"next {word} to close", f"ends at {end}"))
    if _joins(evidence):
        closes = "is emitted once the watermark, less the time range of the join, has passed its end"
        facts += tuple(_newest(evidence, evidence.measured_times))
        proposal = moving_on(evidence)
    else:
        holders = _holders(evidence, groups.first)
        closes = f"closes when {_events(evidence, groups.first, holders)}"
        facts += _needed(evidence, word, groups.first, holders)
        proposal = _closing(evidence, groups, holders)
    return Verdict(
        situation="SESSION_OPEN" if groups.session else "",
        sentence=f"{what} {are(groups.rows)} still open: the next {word}, which ends at {end}, {closes}",
        facts=facts,
        proposal=proposal,
    )


def _joins(evidence: Evidence) -> bool:
    """Whether streams are joined: Spark holds the watermark of what follows back by the range of the join."""
    return any(op.get("operatorName") == JOIN for op in evidence.state)


def _events(evidence: Evidence, end: int, holders: list[EventTime]) -> str:
    """The events with which a window closes. end: of the window, in milliseconds."""
    texts = list[str]()
    for delay in dict.fromkeys(time.delay for time in holders):
        names = [time.relation for time in holders if time.delay == delay]
        receive = "receives" if len(names) == 1 else "each receive"
        moment = shown(end + int(delay * 1_000), evidence.zone)
        texts.append(f"{' and '.join(names)} {receive} an event of {moment} or later")
    return ", and ".join(texts)


def _needed(evidence: Evidence, word: str, end: int, holders: list[EventTime]) -> tuple[Fact, ...]:
    """The event times with which a window closes, and how far each input is from that."""
    facts = list[Fact]()
    for time in holders:
        needed = end + int(time.delay * 1_000)
        of = f" of {time.relation}" if len(holders) > 1 else ""
        moment = f"{shown(needed, evidence.zone)} ({word} end + delay {length(time.delay)})"
        facts.append((f"needed event time{of}", moment))
        newest = evidence.newest if time.newest is None and not of else time.newest
        if newest is not None:
            facts.append((f"missing event time{of}", length(max(0, needed - newest) / 1_000)))
    return tuple(facts)


@situation("WATERMARK_HELD", silent)
def watermark_stands(evidence: Evidence) -> Verdict | None:
    """(g) The smallest of several watermarks counts, and one input does not move it on."""
    if len(evidence.event_times) < 2 or not evidence.state_rows:
        return None
    if not waits_for_watermark(evidence.plan) or len(_quiet(evidence)) > 1:
        return None
    times = evidence.measured_times
    ahead = [t.watermark for t in times if t.watermark is not None]
    if len(ahead) < 1 or _policy(evidence) != "min":
        return None
    slowest = min(times, key=lambda t: -1 if t.watermark is None else t.watermark)
    others = [t for t in times if t is not slowest]
    nearest = min(others, key=lambda t: -1 if t.watermark is None else t.watermark)
    if nearest.watermark is None or (slowest.watermark or 0) >= nearest.watermark:
        return None
    groups = open_groups(evidence)
    if groups and groups.first is not None and (nearest.watermark < groups.first or _joins(evidence)):
        return None  # no window would close even if it moved, or that is not known
    return _held(evidence, slowest, nearest, groups)


def _held(evidence: Evidence, slowest: EventTime, nearest: EventTime, groups: OpenGroups | None) -> Verdict:
    zone = evidence.zone
    assert nearest.watermark is not None
    stands = f"there is no watermark yet: {slowest.relation} has no event time"
    if slowest.newest is not None:
        stands = f"the watermark stands at {shown(slowest.watermark or 0, zone)}: {slowest.relation} has no "
        stands += f"event newer than {shown(slowest.newest, zone)}"
    facts: list[Fact] = [*clock(evidence), *_newest(evidence, (slowest, nearest))]
    if slowest.watermark is not None:
        behind = (nearest.watermark - slowest.watermark) / 1_000
        facts.append((f"{slowest.relation} is behind", length(behind)))
    since = _stands_since(evidence)
    if since:
        facts.append(("watermark unchanged since", since))
    return Verdict(
        sentence=f"{stands}, and the smallest watermark of all inputs counts",
        facts=tuple(facts),
        proposal=_catching_up(evidence, slowest, nearest, groups),
    )


def _newest(evidence: Evidence, times: Iterable[EventTime]) -> Iterator[Fact]:
    """The newest event times of inputs, and their delays."""
    for time in times:
        newest = "none" if time.newest is None else shown(time.newest, evidence.zone)
        yield f"newest event time of {time.relation}", f"{newest}, delay {length(time.delay)}"


def _stands_since(evidence: Evidence) -> str:
    """The micro-batch, with its time, in which the watermark was last changed."""
    marks = [(r.get("eventTime", {}).get("watermark"), r) for r in evidence.reports]
    newest = next((r for n, (w, r) in enumerate(marks) if all(w == o for o, _ in marks[n:])), None)
    return f"micro-batch {newest['batchId']}, {newest.get('timestamp', '')}" if newest else ""


def _catching_up(
    evidence: Evidence, slowest: EventTime, nearest: EventTime, groups: OpenGroups | None
) -> str:
    """What lets the watermark move on."""
    if slowest.stream and slowest.stream.connector == "values":
        return _closing(evidence, groups, [slowest], nearest.watermark or 0)
    setting = "SET spark.sql.streaming.multipleWatermarkPolicy = max"
    return proposals.join(setting, proposals.restart(evidence, "FROM BEGINNING"))


def _closing(evidence: Evidence, groups: OpenGroups | None, holders: list[EventTime], least: int = 0) -> str:
    """What closes the first window: later event times of values streams; of an input that has ended, all
    that is held back; else the query in output mode update.
    """
    streams = [time.stream for time in holders if time.stream and time.stream.connector == "values"]
    if len(streams) < len(holders):
        ended = not evidence.plan.transient and evidence.status == "finished"
        return proposals.flushed(evidence) if ended else proposals.shown_now(evidence)
    end = max(groups.first or 0, 0) if groups else 0
    end = max(end, 0 if end else least)
    moments = [max(end + int(time.delay * 1_000), time.newest or 0) for time in holders]
    shown_ones = [shown(moment, evidence.zone) for moment in moments]
    return proposals.advanced(evidence, dict(zip(streams, shown_ones, strict=True)))


def _holders(evidence: Evidence, end: int) -> list[EventTime]:
    """The inputs that have to move on so that a window closes: of several, all that are behind its end.

    end: of the window, in milliseconds.
    """
    times = evidence.measured_times
    ahead = max(times, key=lambda t: -1 if t.watermark is None else t.watermark)
    if _policy(evidence) != "min":
        return [ahead]
    quiet = _quiet(evidence)
    behind = [t for t in times if t.watermark is None or t.watermark < end or t.relation in quiet]
    return behind or [min(times, key=lambda t: -1 if t.watermark is None else t.watermark)]


def _quiet(evidence: Evidence) -> set[str]:
    """The inputs that have given no event since this start. Where there are several, Spark keeps the
    watermark of the query at a restart, but not that of each input.
    """
    running = evidence.running
    if running is None or len(evidence.event_times) < 2 or not running.reports.before.streams:
        return set()
    read, places = running.reports.run.streams, evidence.parts.places
    return {
        time.relation
        for time in evidence.event_times
        if time.stream and not any(n and is_source_of(time.stream, text, places) for text, n in read)
    }


def _policy(evidence: Evidence) -> str:
    key = "spark.sql.streaming.multipleWatermarkPolicy"
    return str(evidence.parts.spark.conf.get(key, "min")).casefold()


def clock(evidence: Evidence) -> tuple[Fact, ...]:
    """The newest event time and the watermark, as far as they are known."""
    facts, newest = list[Fact](), evidence.newest
    if newest is not None:
        facts.append(("newest event time", shown(newest, evidence.zone)))
    times = event_times(evidence.reports)
    if times and times.nulls:
        facts.append(("event time NULL", times.nulls_text))
    if times and times.latest:
        facts.append(("rows came late by at most", length(times.latest / 1_000)))
    watermark = evidence.watermark
    facts.append(("watermark", shown(watermark, evidence.zone) if watermark else "none yet"))
    return tuple(facts)


def moving_on(evidence: Evidence) -> str:
    """What lets waiting rows out: FLUSH, where all inputs are values streams or the query has ended; else
    what shows them.
    """
    values = all(t.stream and t.stream.connector == "values" for t in evidence.event_times)
    flush = proposals.flushed(evidence) if values or evidence.status not in GOING_ON else ""
    return flush or proposals.state_shown(evidence)


@situation("ROWS_LATE", lambda evidence: bool(evidence.account.late))
def rows_late(evidence: Evidence) -> Verdict | None:
    """(h) Rows came behind the watermark and were dropped, and nothing else comes out."""
    if not (evidence.silent and not evidence.rows_out or _all_late(evidence)):
        return None
    came, facts, change = late_rows(evidence)
    proposal = proposals.replaced(evidence, change) if change is not None else ""
    return Verdict(sentence=f"{came} dropped", facts=facts, proposal=proposal)


def late_rows(evidence: Evidence) -> tuple[str, tuple[Fact, ...], Stream | None]:
    """(how many rows came late, as the beginning of a sentence, the facts about them, the stream with a delay
    that keeps them). None for a stream whose delay cannot be told.
    """
    worst = _worst_miss(evidence)
    facts = [*clock(evidence)]
    if worst:
        facts.append(("behind the watermark by at most", length(worst)))
    stream = next((t.stream for t in evidence.event_times if t.stream and t.stream.connector), None)
    needed: float | None = None
    if stream and stream.watermark:
        time = next(t for t in evidence.event_times if t.stream is stream)
        needed, measured = _needed_delay(evidence, stream, time.delay, worst)
        facts += [("delay now", length(time.delay)), *measured]
    if evidence.plan.late is not None:
        facts.append(("kept in", evidence.plan.late.sink.name))
    elif not evidence.plan.transient and not evidence.query.together:
        facts.append(("the late rows", f"SELECT * FROM LATE ROWS OF QUERY {quote_name(evidence.name)};"))
    change = None
    if stream and needed:
        change = proposals.with_delay(stream, interval(needed).removeprefix("INTERVAL ").lower())
    late, missed = evidence.account.late, f", by up to {length(worst)}" if worst else ""
    came = f"{late.of('row')} came behind the watermark{missed}, and {were(late.number)}"
    return came, tuple(facts), change


def _needed_delay(
    evidence: Evidence, stream: Stream, delay: float, worst: float
) -> tuple[float | None, tuple[Fact, ...]]:
    """The delay, in seconds, that would have kept all rows, and the facts about it: measured, where the rows
    can be read again, else by the oldest event time of the micro-batches that dropped some.
    """
    measured = measured_in(evidence, stream)
    if measured is None or not measured.late:
        times, delay_facts = event_times(evidence.reports), list[Fact]()
        for most in (0.99, 0.999) if times and times.lateness else ():
            enough = max(delay, keeping(times.within(most)) if times else 0)
            delay_facts.append((f"delay that keeps at least {most * 100:g} % of the rows", length(enough)))
        if not worst:
            return None, tuple(delay_facts)
        return delay + worst, (*delay_facts, ("delay that keeps all of them", length(delay + worst)))
    _, most, nearly, latest = measured.late
    share = f"{measured.beyond / measured.compared:.2%}"
    facts: list[Fact] = [("rows late by the delay or more", f"{measured.beyond:,} ({share})")]
    names = ("99 % of the rows", "99.9 % of the rows", "all of them")
    for name, late in zip(names, (most, nearly, latest), strict=True):
        facts.append((f"delay that keeps {name}", length(max(delay, keeping(late)))))
    return max(delay, keeping(latest)), tuple(facts)


def _all_late(evidence: Evidence) -> bool:
    """Whether the newest rows were dropped, though earlier ones came out."""
    last = evidence.last_with_rows
    read, dropped = last.get("numInputRows", 0), account_of(last).late
    all_of_them = bool(dropped) and (dropped.at_least or dropped.number >= read)
    return all_of_them and not any(o.get("numRowsUpdated") for o in last.get("stateOperators", []))


def _worst_miss(evidence: Evidence) -> float:
    """By how many seconds the oldest dropped row missed the watermark; 0 when that is not known."""
    worst = 0
    for before, report in zip([None, *evidence.reports], evidence.reports, strict=False):
        dropped = sum(o.get("numRowsDroppedByWatermark", 0) for o in report.get("stateOperators", []))
        oldest = millis(report.get("eventTime", {}).get("min"))
        limit = watermark_of(report) or (watermark_of(before) if before else None)
        if dropped and oldest is not None and limit:
            worst = max(worst, limit - oldest)
    return worst / 1_000
