"""SHOW QUERIES, DESCRIBE QUERY and SHOW PROGRESS."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from streamsql.connectors.base import ASYNC_INTERVAL, tracks_asynchronously
from streamsql.connectors.registry import connector
from streamsql.definitions import Query, is_before
from streamsql.language.statements import query as query_statements
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.query_facts import QueryFacts
from streamsql.results import Result, counted
from streamsql.runtime.checkpoints.offsets import step
from streamsql.runtime.engine.moments import brief, millis, to_second, watermark_of
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import named_like, sections_of, session_zone, size_text, table
from streamsql.runtime.handlers.refresh_remarks import remark_line
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.facts import (
    UNREPORTED,
    facts_of,
    fates,
    is_source_of,
    waiting_for,
)
from streamsql.runtime.queries.progress_reports import account_of, number
from streamsql.runtime.queries.run import Running

_QUERY_COLUMNS = (
    "name", "status", "sink", "mode", "trigger", "batch", "rows in", "rows/s in", "rows/s done",
    "last rates", "watermark", "state rows", "waiting for", "lag", "uptime", "last error",
    "rows out", "late rows", "malformed",
)  # fmt: skip
_MATTERS = (
    "name", "status", "late rows", "malformed", "last error", "rows in", "rows out", "rows/s in", "lag",
    "waiting for", "batch", "uptime", "watermark", "state rows", "query", "last rates", "rows/s done", "mode",
    "trigger", "sink",
)  # fmt: skip
"""The columns, the most important first."""


def _show_queries(parts: SessionParts, statement: query_statements.ShowQueries) -> Result:
    rows, zone = [], session_zone(parts)
    columns = (*_QUERY_COLUMNS, *(("checkpoint", "query") if statement.extended else ()))
    # Once, and Spark is not asked for each query: that took 3 ms of each.
    reported = all(catch_up() for catch_up in {run.catch_up for run in parts.queries.all.values()})
    for query in parts.catalog.named(None):
        if is_before(query.name):
            continue
        running = parts.queries.all.get(query.name.casefold())
        trigger = query.trigger.sql().lower().replace("'", "") if query.trigger else "default"
        facts = parts.facts(query.name, zone)
        status = facts.status if reported or running is None else running.status()
        mode = running.mode if running else query.mode
        cells = {"name": query.name, "status": status, "sink": query.sink, "mode": mode, "trigger": trigger}
        more = {
            "checkpoint": running.plan.checkpoint if running else "",
            "query": " ".join(query.text.split()),
        }
        cells |= _numbers(facts, running, parts) | more
        rows.append(tuple(cells.get(column) for column in columns))
    shown = table(
        columns, rows, (5, 6, 7, 8, 11, 13, 14, 16, 17, 18), "no queries", _MATTERS, (("sink", "name"),)
    )
    shown = named_like(shown, statement.pattern)
    return replace(shown, notes=parts.workspace.where_queries_run(), in_full=statement.extended)


def _numbers(facts: QueryFacts, running: Running | None, parts: SessionParts) -> dict[str, Any]:
    """The columns from `batch` on. running: the newest run here; without one, those of it are left out."""
    account = facts.account
    numbers: dict[str, Any] = {
        "batch": facts.batch if facts.batch >= 0 else None,
        "rows in": account.read.value if running is None else account.read.cell,
        "watermark": facts.watermark,
        "state rows": account.held if account.streams else None,  # not known before a report
        "last error": _without_subject(facts.error, facts.query),
        "rows out": None if account.out is None else account.out.cell,
        "late rows": account.late.value,
        "malformed": account.malformed.value,
    }
    if running is not None:
        numbers["last rates"] = sparkline(running.reports.rates())
        numbers["waiting for"] = waiting_for(running, parts.places)
        numbers |= {"rows/s in": None, "rows/s done": None, "lag": "", "uptime": ""}
    if running is not None and not running.ended:
        numbers["rows/s in"] = _rate(facts.rows_per_second)  # Spark's is of the time since its last poll
        numbers["rows/s done"] = _rate(running.reports.latest.get("processedRowsPerSecond"))
        numbers["lag"] = _lag(millis(account.watermark) or None)
        numbers["uptime"] = brief((datetime.now() - running.started).total_seconds())
    return numbers


def _lag(watermark: int | None) -> str:
    """The time by which the watermark is behind the clock; "" if that says nothing of the query's pace."""
    behind = 0.0 if watermark is None else time.time() - watermark / 1_000
    return "" if watermark is None or _unlike_clock(behind) else brief(behind)


def _lag_text(watermark: int | None) -> str:
    """The lag, or why SHOW QUERIES shows none."""
    behind = 0.0 if watermark is None else time.time() - watermark / 1_000
    if behind < 0:
        way = f"{brief(-behind)} ahead of the clock, as in another time zone"
    else:
        way = f"{brief(behind)} behind the clock, as when old data is replayed"
    return f"event times are {way}" if _unlike_clock(behind) else _lag(watermark)


def _unlike_clock(behind: float) -> bool:
    """Whether event times have nothing to do with the clock: over a day behind it, or ahead of it."""
    return behind > 86_400 or behind < -60


def _without_subject(message: str, name: str) -> str:
    """The message of a failure in a place that names the query."""
    return message.removeprefix(f"query {name} ").removeprefix("failed: ")


def _rate(value: Any) -> float | None:
    rate = number(value)
    return None if rate is None else round(rate, 1)


def sparkline(rates: Sequence[float]) -> str:
    """Numbers as one character each, the highest as a full block."""
    top = max(rates, default=0.0)
    return "".join(_BARS[min(7, int(r / top * 7.99))] if top else _BARS[0] for r in rates)


_BARS = "▁▂▃▄▅▆▇█"


def _describe_query(parts: SessionParts, statement: query_statements.DescribeQuery) -> Result:
    running = _unlisted(parts, statement.name)
    query = running.plan.query if running else parts.catalog.query(statement.name)
    running = running or parts.queries.all.get(query.name.casefold())
    sink_entry = parts.catalog.sinks.get(query.sinks[0].casefold()) if query.sinks else None
    restart = ("restart", query.restart.sql() if query.restart else "")
    sections: list[tuple[str, list[tuple[str, Any]]]]
    if running is not None:
        running.catch_up()
        running.status()  # before the failure is asked for: it may fail just now
    zone = session_zone(parts)
    facts = facts_of(running, zone) if running else parts.facts(query.name, zone)
    failure, earlier = _failures(parts, facts, running)
    name = [("name", query.name), ("status", running.status() if running else facts.status)]
    numbers = _numbers(facts, running, parts)
    if running is None:
        past = parts.workspace.past(query.name)
        stopped = [("since", past.since), ("stopped when", "" if past.error else past.reason)]
        sections = [("status", [*name, *failure, *stopped, restart])]
        if facts.account.streams or facts.account.read:
            lost = [(name, _text(numbers[name])) for name in ("malformed", "late rows", "rows out")]
            sections.append(("input", [("rows in", str(facts.account.read)), *lost]))
        sections.append(("output", _output(parts, query, None)))
    else:
        sections = [
            ("status", [*name, *failure, *_status(running, numbers), restart]),
            ("input", _input(parts, running, numbers)),
            ("progress", _progress(running, numbers)),
            ("output", _output(parts, query, running)),
        ]
    sections.append(("earlier failures", earlier))
    stages = [(f"stage {s.name}", " ".join(s.text.split())) for s in parts.catalog.stages_of(query.name)]
    sections.append(("definition", [("statement", query.sql(sink_entry) + ";"), *stages]))
    return sections_of(sections)


def _unlisted(parts: SessionParts, name: Name) -> Running | None:
    """The run of a query that is in no list, such as that of a SELECT whose result is being shown, or the
    one that feeds a live table under another name.
    """
    key = name.value.casefold()
    if key in parts.catalog.queries:
        return None
    if key in parts.catalog.sinks:
        feeding = parts.catalog.writers_of(name.value)
        return parts.queries.all.get(feeding[0].name.casefold()) if len(feeding) == 1 else None
    newest = parts.newest.run
    return newest if newest is not None and newest.name.casefold() == key else None


def _status(running: Running, numbers: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        ("started", running.started.isoformat(" ", "seconds")),
        ("uptime", numbers["uptime"]),
        ("waiting for", numbers["waiting for"]),
        ("restarts", running.when_again()),
        ("checkpoint", running.plan.checkpoint),
    ]


def _input(parts: SessionParts, running: Running, numbers: dict[str, Any]) -> list[tuple[str, Any]]:
    last = running.reports.latest
    pairs: list[tuple[str, Any]] = [(name, _text(numbers[name])) for name in ("rows in", "rows/s in")]
    if running.reports.before.read:
        pairs.insert(1, ("rows in since this start", str(running.reports.run.read)))
    sources, of_streams = last.get("sources", []), dict(running.reports.account.streams)
    for source in sources:
        name, said = _source(source, last.get("batchId"), parts, running, alone=len(sources) == 1)
        pairs.append((name, said))
        if len(sources) > 1:
            pairs.append((f"rows in {name}", f"{of_streams.get(source.get('description', ''), 0):,}"))
    pairs.append(("malformed", numbers["malformed"]))
    return pairs + (_refreshed(parts, running) if running.is_refresh else [])


def _text(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, (int, float)) else str(value)


def _progress(running: Running, numbers: dict[str, Any]) -> list[tuple[str, Any]]:
    """The numbers of the newest micro-batch, as names and texts."""
    last = running.reports.latest
    operators = last.get("stateOperators", [])
    shown = ["batch", "rows/s done", "last rates", "watermark", "lag"]
    shown += ["state rows"] * (len(operators) > 1)  # those of one are told with it
    if not running.ended:
        numbers = numbers | {"lag": _lag_text(watermark_of(last))}
    pairs: list[tuple[str, Any]] = [(name, _text(numbers[name])) for name in shown]
    batch = account_of(last).late
    for op in operators:
        dropped = op.get("numRowsDroppedByWatermark", 0)
        size = f"{counted(op.get('numRowsTotal', 0), 'row')}, {size_text(op.get('memoryUsedBytes', 0))}"
        late = f", {replace(batch, number=dropped).of('late row')} dropped in this batch" if dropped else ""
        kind = op.get("operatorName", "")
        pairs.append((f"state of {_STATE.get(kind, kind)}", f"{size}{late}"))
    late_rows = running.reports.account.late
    if late_rows:
        pairs.append(("late rows", str(late_rows)))
        if not running.plan.transient:
            more = "; Spark counts groups of them, so there may be more" if late_rows.at_least else ""
            listed = f"SELECT * FROM LATE ROWS OF QUERY {quote_name(running.name)}; lists them{more}"
            pairs.append(("the late rows", listed))
    pairs.append(("durations", _durations(last.get("durationMs", {}))))
    return pairs


_STATE = {
    "stateStoreSave": "groups",
    "sessionWindowStateStoreSaveExec": "sessions",
    "symmetricHashJoin": "a join",
    "dedupe": "distinct keys",
    "dedupeWithinWatermark": "distinct keys",
    "globalLimit": "LIMIT",
    "flatMapGroupsWithState": "a Python function",
    "applyInPandasWithState": "a Python function",
    "transformWithStateExec": "a Python function",
    "transformWithStateInPySparkExec": "a Python function",
}
"""What Spark's names of operators with state stand for."""
_STEPS = {
    "latestOffset": "look for input",
    "getOffset": "look for input",
    "getBatch": "look for input",
    "queryPlanning": "plan",
    "addBatch": "compute and write",
    "walCommit": "record progress",
    "commitOffsets": "record progress",
    "commitBatch": "record progress",
}
"""What Spark's names of the steps of a micro-batch stand for, in the order in which they are shown."""


def _durations(report: dict[str, int]) -> str:
    """How long a micro-batch took, and its steps."""
    steps = dict.fromkeys(_STEPS.values(), 0)
    for name, took in report.items():
        if name != "triggerExecution":
            said = _STEPS.get(name, name)
            steps[said] = steps.get(said, 0) + took
    total = report.get("triggerExecution")
    parts = ", ".join(f"{said} {took:,} ms" for said, took in steps.items() if took)
    return ": ".join(filter(None, ("" if total is None else f"{total:,} ms", parts)))


def _output(parts: SessionParts, query: Query, running: Running | None) -> list[tuple[str, Any]]:
    pairs = [("sink", query.sink), ("delivery", _delivery(parts, query))]
    if recorded := _recorded(parts, query):
        pairs.append(("checkpointed", recorded))
    if running:
        pairs.append(("output mode", f"{running.mode}: {running.reason}".removesuffix(": ")))
        given = running.reports.account.out
        uncounted = UNREPORTED if running.reports.account.read else ""
        pairs.append(("rows out", uncounted if given is None else str(given)))
        fate = fates(running.plan, running.reports.account, running.mode)
        pairs += [(name, str(amount)) for name, amount in fate]
    if query.late:
        written = running.late.written if running and running.late else -1
        upto = f", up to micro-batch {written}" if written >= 0 else ""
        pairs.append(("late rows into", query.late + upto))
    return pairs


def _failures(
    parts: SessionParts, facts: QueryFacts, running: Running | None
) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """(the current failure, the earlier ones, each once)."""
    fault, name = running.fault if running else None, facts.query
    error = _without_subject(facts.error, name)
    failures = list(reversed(parts.queries.failures.get(name.casefold(), [])))
    pairs: list[tuple[str, Any]] = []
    if error:
        pairs.append(("error", error))
        if fault:
            state = getattr(fault.__cause__, "getSqlState", lambda: "")() or ""
            pairs += [("detail", fault.detail), ("hint", fault.hint), ("SQLSTATE", state)]
        if failures and _without_subject(failures[0].message, name) == error:
            newest = failures.pop(0)
            pairs.append(("failed", newest.at + _in_batch(newest.batch)))
    earlier = [(f"failed {f.at}{_in_batch(f.batch)}", f.message) for f in failures]
    return pairs, [(when, _without_subject(message, name)) for when, message in earlier]


def _in_batch(batch: int) -> str:
    return f", batch {batch}" if batch >= 0 else ""


def _delivery(parts: SessionParts, query: Query) -> str:
    """What each sink of a query promises after a failure."""
    promises = {}
    for name in query.sinks:
        sink = parts.catalog.sinks.get(name.casefold())
        promises[name] = connector(Name(sink.connector)).delivery(sink) if sink else "as the table's format"
    if len(set(promises.values())) == 1:
        return next(iter(promises.values()))
    return "; ".join(f"{name}: {promise}" for name, promise in promises.items())


def _recorded(parts: SessionParts, query: Query) -> str:
    """How the progress of a query is recorded, where it is not before and after each micro-batch."""
    every = ""
    sinks = [sink for name in query.sinks if (sink := parts.catalog.sinks.get(name.casefold()))]
    if query.trigger and query.trigger.kind == "real_time":
        every = f", every {query.trigger.interval}"
    elif not any(map(tracks_asynchronously, sinks)):
        return ""
    elif (interval := int(sinks[0].option(ASYNC_INTERVAL, "1000"))) > 0:
        every = f", at most every {counted(interval, 'millisecond')}"
    return f"asynchronously{every}; what was written since is written again after a failure"


def _refreshed(parts: SessionParts, running: Running) -> list[tuple[str, Any]]:
    """How far a query over live tables is behind these."""
    refresher = running.handle
    return [
        ("inputs", ", ".join(running.plan.query.inputs)),
        ("micro-batches behind", refresher.behind),
        ("skipped snapshots", refresher.skipped),
        ("remark", remark_line(running.name, parts)),
    ]


def _source(
    report: dict[str, Any], batch: Any, parts: SessionParts, running: Running, *, alone: bool
) -> tuple[str, str]:
    """The name of a source, and what the report of a micro-batch says of it. alone: it has no other."""
    offset = report.get("endOffset")
    text = offset if isinstance(offset, str) else json.dumps(offset)
    read = "" if offset is None else f", up to {step(text, text)}"
    place = report.get("description", "")
    streams = running.plan.reads.streams
    named = [s.name for s in streams if is_source_of(s, place, parts.places)]
    if alone and len(streams) == 1:
        named = [streams[0].name]
    said = f"{counted(report.get('numInputRows', 0), 'row')} in batch {batch}{read}"
    return (f"from {named[0]}", said) if named else ("from", f"{place}: {said}")


def _show_progress(parts: SessionParts, statement: query_statements.ShowProgress) -> Result:
    query = parts.catalog.query(statement.name)
    running = parts.queries.all.get(query.name.casefold())
    rows, zone = [], session_zone(parts)
    for r in running.progress(statement.last) if running else []:
        account = account_of(r)
        rows.append(
            (
                r.get("batchId"),
                _to_second(millis(r.get("timestamp")), zone),
                r.get("numInputRows"),
                _rate(r.get("processedRowsPerSecond")),
                r.get("durationMs", {}).get("triggerExecution"),
                _to_second(watermark_of(r), zone),
                account.held,
                account.late.value,
                account.malformed.value,
            )
        )
    columns = (
        "batch", "time", "rows in", "rows/s", "ms", "watermark", "state rows", "late rows", "malformed",
    )  # fmt: skip
    return table(columns, rows, (0, 2, 3, 4, 6, 7, 8), "no micro-batch has reported yet", _PROGRESS)


_PROGRESS = ("late rows", "malformed", "batch", "rows in", "ms", "rows/s", "watermark", "state rows", "time")


def _to_second(moment: int | None, zone: str) -> str:
    return "" if moment is None else to_second(moment, zone)


DIRECT: Answers = {
    query_statements.ShowQueries: _show_queries,
    query_statements.DescribeQuery: _describe_query,
    query_statements.ShowProgress: _show_progress,
}
