"""SHOW QUERIES, DESCRIBE QUERY and SHOW PROGRESS."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from streamsql.connectors.registry import connector
from streamsql.definitions import Query
from streamsql.language.statements import query as query_statements
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.results import Result
from streamsql.runtime.checkpoints.offsets import step
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import pairs_of, table
from streamsql.runtime.handlers.refresh_remarks import refresh_remarks
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.progress import Reports, number
from streamsql.runtime.queries.run import Running
from streamsql.runtime.why.waiting import waiting_for

_QUERY_COLUMNS = (
    "name", "status", "sink", "mode", "trigger", "batch", "rows in", "rows/s in", "rows/s done",
    "last rates", "watermark", "state rows", "waiting for", "uptime", "last error",
)  # fmt: skip

_EXTENDED = ("late rows", "malformed", "checkpoint", "query")


def _show_queries(parts: SessionParts, statement: query_statements.ShowQueries) -> Result:
    rows = []
    for query in parts.catalog.named(None):
        running = parts.queries.all.get(query.name.casefold())
        trigger = query.trigger.sql().lower() if query.trigger else "default"
        if running is None:
            past = parts.workspace.past(query.name)
            rest = (past.batch if past.batch >= 0 else None, *[None] * 8, past.reason)
            rows.append((query.name, past.status, query.sink, query.mode, trigger, *rest))
        else:
            rows.append(
                (query.name, running.status(), query.sink, running.mode, trigger, *_numbers(running, parts))
            )
        if statement.extended:
            reports: Any = running.reports if running else Reports()
            place = running.plan.checkpoint if running else ""
            rows[-1] = (*rows[-1], reports.late, reports.malformed, place, " ".join(query.text.split()))
    columns = _QUERY_COLUMNS + (_EXTENDED if statement.extended else ())
    shown = table(columns, rows, (5, 6, 7, 8, 11, 15, 16), "no queries")
    return replace(shown, notes=parts.workspace.where_queries_run())


def _numbers(running: Running, parts: SessionParts) -> tuple[Any, ...]:
    reports = running.progress()
    last = reports[-1] if reports else {}
    state = sum(o.get("numRowsTotal", 0) for o in last.get("stateOperators", []))
    watermark = last.get("eventTime", {}).get("watermark", "")
    error = running.fault.message if running.fault else ""
    return (
        last.get("batchId"),
        running.reports.rows_in,
        _rate(last.get("inputRowsPerSecond")),
        _rate(last.get("processedRowsPerSecond")),
        sparkline(running.reports.rates()),
        "" if watermark.startswith("1970-01-01T00:00:00") else watermark,
        state,
        waiting_for(running, parts.places),
        "" if running.ended else _uptime((datetime.now() - running.started).total_seconds()),
        error,
    )


def _uptime(seconds: float) -> str:
    """48 s, 26 min, 3.5 h."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3600:.1f} h"


def _rate(value: Any) -> str | None:
    rate = number(value)
    return None if rate is None else f"{rate:.1f}"


def sparkline(rates: Sequence[float]) -> str:
    """Numbers as one character each, the highest as a full block."""
    top = max(rates, default=0.0)
    return "".join(_BARS[min(7, int(r / top * 7.99))] if top else _BARS[0] for r in rates)


_BARS = "▁▂▃▄▅▆▇█"


def _describe_query(parts: SessionParts, statement: query_statements.DescribeQuery) -> Result:
    query = parts.catalog.query(statement.name)
    sink_entry = parts.catalog.sinks.get(query.sinks[0].casefold())
    pairs: list[tuple[str, Any]] = [("name", query.name), ("sink", query.sink)]
    running = parts.queries.all.get(query.name.casefold())
    past = parts.workspace.past(query.name)
    pairs.append(("delivery", _delivery(parts, query)))
    if query.late:
        written = running.late.written if running and running.late else -1
        upto = f", up to micro-batch {written}" if written >= 0 else ""
        pairs.append(("late rows into", query.late + upto))
    if query.restart:
        pairs.append(("restart", query.restart.sql()))
    if running is None:
        pairs += [("status", past.status), ("since", past.since), ("error", past.reason)]
    if running:
        pairs += _of_run(parts, running)
    for failure in reversed(parts.queries.failures.get(query.name.casefold(), [])):
        at = f", batch {failure.batch}" if failure.batch >= 0 else ""
        pairs.append((f"failed {failure.at}{at}", failure.message))
    pairs.append(("statement", query.sql(sink_entry) + ";"))
    return pairs_of(pairs)


def _of_run(parts: SessionParts, running: Running) -> list[tuple[str, Any]]:
    """What DESCRIBE QUERY tells of the newest run of a query."""
    pairs: list[tuple[str, Any]] = [
        ("status", running.status()),
        ("output mode", f"{running.mode}  {running.reason}".strip()),
        ("started", running.started.isoformat(" ", "seconds")),
        ("checkpoint", running.plan.checkpoint),
    ]
    names = _QUERY_COLUMNS[5:13]
    pairs += [
        (n, str(v)) for n, v in zip(names, _numbers(running, parts), strict=False) if v not in (None, "")
    ]
    if running.reports.late:
        pairs.append(("late rows dropped", running.reports.late))
        if not running.plan.transient:
            grouped = "; Spark counts groups of them, so there may be more"
            more = grouped if running.plan.shape.aggregates else ""
            listed = f"SELECT * FROM LATE ROWS OF QUERY {quote_name(running.name)}; lists them{more}"
            pairs.append(("late rows", listed))
    if running.reports.malformed:
        pairs.append(("malformed", running.reports.malformed))
    if running.is_refresh:
        pairs += _refreshed(parts, running)
    pairs += _last_batch(running)
    pairs.append(("restarts", running.when_again()))
    if running.fault:
        fault = running.fault
        pairs += [("error", fault.message), ("detail", fault.detail), ("hint", fault.hint)]
    return pairs


def _delivery(parts: SessionParts, query: Query) -> str:
    """What each sink of a query promises after a failure."""
    promises = {}
    for name in query.sinks:
        sink = parts.catalog.sinks.get(name.casefold())
        promises[name] = connector(Name(sink.connector)).delivery(sink) if sink else "as the table's format"
    if len(set(promises.values())) == 1:
        return next(iter(promises.values()))
    return "; ".join(f"{name}: {promise}" for name, promise in promises.items())


def _refreshed(parts: SessionParts, running: Running) -> list[tuple[str, Any]]:
    """How far a query over live tables is behind these."""
    refresher = running.handle
    return [
        ("inputs", ", ".join(running.plan.query.inputs)),
        ("micro-batches behind", refresher.behind),
        ("skipped snapshots", refresher.skipped),
        ("remark", "; ".join(refresh_remarks(running.name, parts))),
    ]


def _source(report: dict[str, Any]) -> str:
    """What a progress report says of a source."""
    offset = report.get("endOffset")
    text = offset if isinstance(offset, str) else json.dumps(offset)
    read = "" if offset is None else f", up to {step(text, text)}"
    return f"{report.get('description', '')}: {report.get('numInputRows', 0)} rows{read}"


def _last_batch(running: Running) -> list[tuple[str, Any]]:
    reports = running.progress()
    if not reports:
        return []
    last = reports[-1]
    pairs: list[tuple[str, Any]] = [
        (f"source {n}", _source(s)) for n, s in enumerate(last.get("sources", []))
    ]
    for count, op in enumerate(last.get("stateOperators", [])):
        dropped = op.get("numRowsDroppedByWatermark", 0)
        text = f"{op.get('numRowsTotal', 0)} rows, {op.get('memoryUsedBytes', 0)} bytes"
        name = f"state {count} {op.get('operatorName', '')}"
        pairs.append((name, f"{text}, {dropped} late rows dropped in this batch"))
    phases = ", ".join(f"{k} {v} ms" for k, v in last.get("durationMs", {}).items())
    return [*pairs, ("durations", phases)]


def _show_progress(parts: SessionParts, statement: query_statements.ShowProgress) -> Result:
    query = parts.catalog.query(statement.name)
    running = parts.queries.all.get(query.name.casefold())
    rows = []
    for r in running.progress(statement.last) if running else []:
        state = r.get("stateOperators", [])
        rows.append(
            (
                r.get("batchId"),
                r.get("timestamp"),
                r.get("numInputRows"),
                _rate(r.get("processedRowsPerSecond")),
                r.get("durationMs", {}).get("triggerExecution"),
                r.get("eventTime", {}).get("watermark", ""),
                sum(o.get("numRowsTotal", 0) for o in state),
                sum(o.get("numRowsDroppedByWatermark", 0) for o in state),
            )
        )
    columns = ("batch", "time", "rows in", "rows/s", "ms", "watermark", "state rows", "late rows dropped")
    return table(columns, rows, (0, 2, 3, 4, 6, 7))


DIRECT: Answers = {
    query_statements.ShowQueries: _show_queries,
    query_statements.DescribeQuery: _describe_query,
    query_statements.ShowProgress: _show_progress,
}
