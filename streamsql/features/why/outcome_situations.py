"""Situations of the query as a whole: it does not run, its rows are elsewhere, or nothing is wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from streamsql.definitions import Sink, Stream
from streamsql.errors import Span
from streamsql.features.why import proposals
from streamsql.features.why.time_situations import clock, moving_on
from streamsql.features.why.verdict import Fact, Verdict, last_output, silent, situation, were
from streamsql.language.statements.base import Name, Watermark
from streamsql.language.tokens import quote_name
from streamsql.plan.plans import Target
from streamsql.results import counted as count
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.evidence.selects import changed
from streamsql.runtime.evidence.source_files import listing
from streamsql.runtime.handlers.refresh_remarks import ANSI_MODE, VALUE_ERRORS
from streamsql.runtime.queries.facts import JOIN, OUTER
from streamsql.runtime.queries.progress_reports import account_of

_DEDUPLICATION = ("dedupe", "dedupeWithinWatermark")


@situation("NOT_RUNNING")
def not_running(evidence: Evidence) -> Verdict | None:
    """(l) The query failed, was stopped, or waits for its restart."""
    running, status = evidence.running, evidence.status
    if evidence.goes_on and status != "restarting":
        return None
    if running is None:
        return _of_another_console(evidence)
    fault, ended = running.fault, running.ended.isoformat(" ", "seconds") if running.ended else ""
    facts: list[Fact] = [("status", status), ("ended", ended)]
    if fault is not None:
        error = fault.message if status == "restarting" else ""  # else the verdict says it
        facts += [("error", error), ("detail", fault.detail), ("hint", fault.hint)]
    if status == "restarting":
        sentence = f"{evidence.name} failed and waits for its restart: {running.when_again()}"
        return Verdict(sentence, tuple(facts), f"START QUERY {quote_name(evidence.name)};")
    if status == "FAILED" and fault is not None:
        ansi = fault.code in VALUE_ERRORS
        if ansi:
            facts.append(("setting", f"with {ANSI_MODE} = false such a value gives NULL, in all queries"))
        setting = f"SET {ANSI_MODE} = false;\n" if ansi else ""
        limited = fault.code == "LIMIT_REACHED"
        proposal = fault.hint if limited else f"{setting}{proposals.started(evidence)}"
        facts = [fact for fact in facts if fact[0] != "hint" or proposal not in str(fact[1])]
        return Verdict(fault.message, (*facts, *_changed(evidence)), proposal)
    if status == "finished":
        return None if evidence.took_input else _finished_empty(evidence, facts)
    changed = ", and has changed since its checkpoint was created"
    return Verdict(
        sentence=f"{evidence.name} is stopped"
        + (changed if evidence.changed else ": it reads nothing until it is started"),
        facts=(*facts, *_changed(evidence)),
        proposal=proposals.started(evidence),
    )


def _changed(evidence: Evidence) -> list[Fact]:
    """What START QUERY would refuse."""
    return [("changed", change.what) for change in evidence.changed]


def _of_another_console(evidence: Evidence) -> Verdict:
    """Of a query that another console runs, or ran last."""
    past = evidence.parts.workspace.past(evidence.name)
    facts: list[Fact] = [("status", past.status), ("since", past.since), ("error", past.error)]
    elsewhere = "elsewhere" in evidence.status
    return Verdict(
        sentence=f"{evidence.name} does not run in this console: it is {evidence.status}",
        facts=(*facts, *([] if elsewhere else _changed(evidence))),
        proposal="" if elsewhere else proposals.started(evidence),
    )


def _finished_empty(evidence: Evidence, facts: list[Fact]) -> Verdict:
    trigger = evidence.query.trigger
    return Verdict(
        sentence=f"{evidence.name} has ended: its trigger, {trigger.sql() if trigger else 'default'}, found "
        "nothing new to read",
        facts=tuple(facts),
        proposal=proposals.restart(evidence, "FROM BEGINNING"),
    )


# ---- rows that are elsewhere --------------------------------------------------------------------


@situation("ROWS_WRITTEN", lambda evidence: evidence.took_input, of=lambda evidence: evidence.plan.targets)
def written_elsewhere(evidence: Evidence, target: Target) -> Verdict | None:
    """(n) The sink took the rows: they are in a folder or a topic."""
    sink = target.sink
    return _of_folder(evidence, sink) if sink.option("path") else _of_topic(evidence, sink)


def _of_folder(evidence: Evidence, sink: Sink) -> Verdict | None:
    files_of_sink = listing(Stream(sink.name, sink.connector, options=sink.options))
    files = [f for f in (files_of_sink.matching if files_of_sink else ()) if "_spark_metadata" not in f]
    if not files_of_sink or not files:
        return None
    path = sink.option("path")
    reader = evidence.parts.spark.read.format(sink.connector)
    rows = evidence.probes.collected(lambda: reader.load(path).selectExpr("count(*) AS n"))
    if not rows or not rows[0][0]:
        return None
    newest = datetime.fromtimestamp(max(files_of_sink.matching.values())).isoformat(" ", "seconds")
    return Verdict(
        sentence=f"nothing is wrong: the rows are in {path}, {count(rows[0][0], 'row')} in "
        f"{count(len(files), 'file')}",
        facts=(("sink", f"{sink.name} ({sink.connector})"), ("newest file", newest)),
        proposal=f"SELECT * FROM {sink.connector}.{quote_name(path)} LIMIT 10;",
        healthy=True,
    )  # fmt: skip


_OF_LINES = ("json", "csv", "text", "xml")
"""Files that have no byte where they have no row."""


def nothing_in_files(evidence: Evidence) -> bool:
    """Whether all sinks of a query are folders in which no file has a row."""
    sinks = [target.sink for target in evidence.plan.targets]
    return bool(sinks) and all(sink.option("path") and _is_empty(evidence, sink) for sink in sinks)


def _is_empty(evidence: Evidence, sink: Sink) -> bool:
    kind = "text" if sink.connector in _OF_LINES else sink.connector
    reader = evidence.parts.spark.read.format(kind)
    rows = evidence.probes.collected(lambda: reader.load(sink.option("path")).limit(1).selectExpr("1 AS n"))
    return rows == []


def _of_topic(evidence: Evidence, sink: Sink) -> Verdict | None:
    if sink.connector != "kafka" or not evidence.rows_out or evidence.silent:
        return None
    return Verdict(
        sentence=f"nothing is wrong: {count(evidence.rows_out, 'row')} went to the topic "
        f"{sink.option('topic')}",
        facts=(
            ("sink", f"{sink.name} (kafka)"),
            ("last output", last_output(evidence).removeprefix(", the last ")),
        ),
        proposal=f"SHOW TOPICS FROM {quote_name(sink.name)};",
        healthy=True,
    )


# ---- waiting, growing, well ---------------------------------------------------------------------


@situation("ALL_SEEN_BEFORE", silent)
def seen_before(evidence: Evidence) -> Verdict | None:
    """(j) A deduplication has seen all rows."""
    if evidence.rows_out == 0:
        return None
    keys = [op for op in evidence.state if op.get("operatorName") in _DEDUPLICATION]
    newest = evidence.last_with_rows
    if not keys or any(op.get("numRowsUpdated") for op in newest.get("stateOperators", [])):
        return None
    alone = newest["numInputRows"] == 1
    rows = "row has a key" if alone else f"{count(newest['numInputRows'], 'row')} have keys"
    return Verdict(
        sentence=f"the newest {rows} that came out before: a deduplication emits each key once",
        facts=(("keys in state", keys[0].get("numRowsTotal", 0)),),
        proposal=f"SELECT * FROM STATE OF QUERY {quote_name(evidence.name)} LIMIT 10;",
    )  # fmt: skip


@situation("STATE_WAITS", silent)
def waits_in_state(evidence: Evidence) -> Verdict | None:
    """(j) Rows of an outer join wait until no partner can come any more."""
    joins = [op for op in evidence.state if op.get("operatorName") == JOIN]
    outer = any(op.kind == "join" and op.how in OUTER for op in evidence.plan.shape.ops)
    if not joins or not outer or not joins[0].get("numRowsTotal"):
        return None
    waiting = joins[0]["numRowsTotal"]
    return Verdict(
        sentence=f"{count(waiting, 'row')} of the join {'waits' if waiting == 1 else 'wait'} in state: a row "
        "without partner is emitted once the watermark has passed its time range",
        facts=clock(evidence),
        proposal=moving_on(evidence),
    )


@situation("STATE_GROWS")
def grows(evidence: Evidence) -> Verdict | None:
    """(k) The state has grown with every micro-batch, and nothing removes rows from it."""
    with_rows = [r for r in evidence.reports if r.get("numInputRows")]
    sizes = [account_of(report).held for report in with_rows]
    removed = any(o.get("numRowsRemoved") for r in with_rows for o in r.get("stateOperators", []))
    stands = any(after <= before for before, after in zip(sizes, sizes[1:], strict=False))
    if len(sizes) < 3 or removed or stands or not _is_unbounded(evidence, sizes[-1]):
        return None
    memory = sum(o.get("memoryUsedBytes", 0) for o in evidence.state)
    growth = (sizes[-1] - sizes[0]) / (len(sizes) - 1)
    return Verdict(
        sentence=f"the state grows without bound: {count(sizes[-1], 'row')}, {growth:,.0f} more in each "
        "micro-batch, and no watermark ever removes one",
        facts=(("state memory", f"{memory:,} bytes"),),
        proposal=_bounding(evidence) or proposals.state_shown(evidence),
    )


LARGE = 1_000_000
"""Groups by keys alone that are called unbounded: how many keys there are, nobody knows."""


def _is_unbounded(evidence: Evidence, rows: int) -> bool:
    """Whether an operation keeps every row, or every key, that it has ever seen."""
    ops = evidence.plan.shape.ops
    keeps = any(op.kind == "distinct_on" and op.window != "within" and not op.timed for op in ops)
    joins = [op for op in ops if op.kind == "join" and all(op.sides)]
    keeps = keeps or any(op.timed is False for op in joins)
    keeps = keeps or any(op.kind == "distinct" and not op.watermarked for op in ops)
    groups = any(op.kind == "aggregate" and not op.watermarked for op in ops)
    return keeps or (groups and rows >= LARGE and evidence.mode != "complete")


def _bounding(evidence: Evidence) -> str:
    """For a deduplication: WITHIN WATERMARK, and a watermark if the stream has none. For a join of streams
    with watermarks: a time range.
    """
    ranged = _with_range(evidence)
    if ranged:
        return ranged
    part = next((p for p in evidence.query_parts if p.block.distinct), None)
    distinct = part.block.distinct if part is not None else None
    if part is None or distinct is None or part.stream or distinct.within:
        return ""
    if not distinct.on and not all(i.expression.bare_column() for i in part.block.items):
        return ""
    keys = "" if distinct.on else f" ON ({', '.join(i.expression.text for i in part.block.items)})"
    place = Span(distinct.span.end, distinct.span.end)
    again = proposals.requeried(evidence, changed(part.text, [(place, f"{keys} WITHIN WATERMARK")]))
    if evidence.event_times:
        return again
    for stream in evidence.streams:
        column = next((c for c in stream.columns if c.type.upper().startswith("TIMESTAMP")), None)
        if column:
            watermark = Watermark(Name(column.name), "10 minutes")
            return proposals.join(proposals.redefined(evidence, replace(stream, watermark=watermark)), again)
    return ""


def _with_range(evidence: Evidence) -> str:
    """The query with a range of one hour in the condition of its first join; "" if that is not possible."""
    times = {time.relation.casefold(): time.column for time in evidence.event_times}
    for part in evidence.query_parts:
        join = part.block.joins[0] if part.block.joins and not part.stream else None
        if join is None or join.condition is None:
            continue
        sides = [side for side in (part.block.relation, join.relation) if side is not None]
        columns = [(side.alias or side.name, times.get(side.name.casefold())) for side in sides]
        timed = [f"{quote_name(side)}.{quote_name(column)}" for side, column in columns if column]
        if len(timed) == 2:
            end = join.condition.span.end
            wider = f" AND {timed[1]} BETWEEN {timed[0]} AND {timed[0]} + INTERVAL 1 HOUR"
            return proposals.requeried(evidence, changed(part.text, [(Span(end, end), wider)]))
    return ""


@situation("NOTHING_WRONG")
def nothing_wrong(evidence: Evidence) -> Verdict | None:
    """(p) Rows came out, and none that was read since waits."""
    if not evidence.rows_out or evidence.silent or not evidence.account.closes:
        return None
    out = count(evidence.rows_out, "row")
    return Verdict(f"nothing is wrong: {out} came out{last_output(evidence)}", healthy=True)


_EXAMINED = (
    "whether it runs; the source and its files; rows that cannot be read; event times; filters; partners of "
    "joins; late rows; the watermark and open groups; the state; the sink"
)


def unexplained(evidence: Evidence) -> Verdict:
    """What is known where no situation holds."""
    facts: list[Fact] = [("status", evidence.status), ("examined", _EXAMINED)]
    if evidence.probes.late:
        facts.append(("not examined", "the data could not be read within a few seconds"))
    if evidence.probes.unreadable:
        listed = ", ".join(sorted(evidence.probes.unreadable))
        facts.append(("not examined", f"the rows of a source that cannot be read again: {listed}"))
    reason = "nothing that WHY examines explains it"
    if not evidence.took_input:
        sentence = f"{evidence.title} has read no rows yet"
    elif evidence.rows_out is None:
        rows = count(evidence.rows_in, "row") if evidence.rows_in else "its input"
        sentence = f"nothing that WHY examines is wrong: {rows} {were(max(1, evidence.rows_in))} read, and "
        sentence += f"{evidence.query.sink} does not tell how many came out"
    elif not evidence.rows_out:
        rows = count(evidence.rows_in, "row")
        sentence = f"none of the {rows} that were read came out, and {reason}"
    else:
        sentence = f"{count(evidence.rows_out, 'row')} came out, and nothing since; {reason}"
    proposal = "" if evidence.plan.transient else f"SHOW PROGRESS {quote_name(evidence.name)};"
    return Verdict(sentence, tuple(facts), proposal, situation="NOT_EXPLAINED")
