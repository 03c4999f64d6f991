"""SHOW, DESCRIBE and HELP: answers from the catalog and from what the queries report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

from streamsql.catalog import PAYLOAD_FORMATS, Function, Sink, Stream
from streamsql.connectors.base import TRIGGERS, Connector, OptionSpec
from streamsql.connectors.packages import PACKAGES
from streamsql.connectors.registry import connector, connectors
from streamsql.errors import NameFault, did_you_mean
from streamsql.language.grammar import load
from streamsql.language.parser import BUILDERS
from streamsql.language.statements import books as books_statements
from streamsql.language.statements import function, live_table, look, query, session, sink, stream
from streamsql.language.statements.base import Name, Statement, Trigger
from streamsql.language.synopsis import rule_label, synopsis
from streamsql.plan.plans import Run
from streamsql.plan.sources import columns_of
from streamsql.results import Result, Rows, Text
from streamsql.runtime import books
from streamsql.runtime.functions import WHAT
from streamsql.runtime.monitor import Reports, number
from streamsql.runtime.readonly import where_they_run
from streamsql.runtime.running import Running
from streamsql.runtime.store import secrets

if TYPE_CHECKING:
    from streamsql.runtime.session import Session


def answer(statement: Statement, session: Session) -> Result:
    """The answer to a statement that changes nothing."""
    return _ANSWERS[type(statement)](statement, session)


def _table(columns: tuple[str, ...], rows: list[tuple[Any, ...]], numeric: tuple[int, ...] = ()) -> Rows:
    return Rows((), columns, rows, tuple(i in numeric for i in range(len(columns))), glance=True)


def _pairs(pairs: list[tuple[str, Any]]) -> Rows:
    return _table(("property", "value"), [p for p in pairs if p[1] not in ("", None)])


def _mark(entry: Stream) -> str:
    mark = entry.watermark
    return f"{mark.column.value}, {mark.delay}" if mark else ""


def _show_streams(statement: stream.ShowStreams, session: Session) -> Result:
    rows = [
        (s.name, s.connector or "query", ", ".join(columns_of(s) or ()), _mark(s), s.comment)
        for s in session.catalog.streams.values()
    ]
    return _table(("name", "connector", "columns", "watermark", "comment"), rows)


def _describe_stream(statement: stream.DescribeStream, session: Session) -> Result:
    found = session.catalog.stream(statement.name)
    columns = found.columns
    if not columns and found.connector:
        columns = connector(Name(found.connector)).columns(found)
    secret = secrets(found)
    pairs = [(f"column {c.name}", c.type + (f"  {c.comment}" if c.comment else "")) for c in columns]
    pairs += [("connector", found.connector), ("format", found.format), ("query", found.query)]
    pairs += [(f"option {k}", "***" if k.casefold() in secret else v) for k, v in found.options]
    readers = [q.name for q in session.catalog.queries.values() if found.name.casefold() in q.text.casefold()]
    pairs += [("watermark", _mark(found)), ("comment", found.comment), ("read by", ", ".join(readers))]
    return _pairs(pairs)


def _create_text(entry: Stream | Sink) -> Result:
    return Text(text=entry.sql(redact=secrets(entry)) + ";")


def _show_sinks(statement: sink.ShowSinks, session: Session) -> Result:
    rows = [
        (
            s.name,
            s.connector,
            s.option("path") or s.option("table"),
            ", ".join(_fed_by(s, session)),
            s.comment,
        )
        for s in session.catalog.sinks.values()
    ]
    return _table(("name", "connector", "path", "queries", "comment"), rows)


def _fed_by(found: Sink, session: Session) -> list[str]:
    return [q.name for q in session.catalog.queries_into(found.name)]


def _create_stream(statement: stream.ShowCreateStream, session: Session) -> Result:
    return _create_text(session.catalog.stream(statement.name))


def _create_sink(statement: sink.ShowCreateSink, session: Session) -> Result:
    return _create_text(session.catalog.sink(statement.name))


def _describe_sink(statement: sink.DescribeSink, session: Session) -> Result:
    found = session.catalog.sink(statement.name)
    secret = secrets(found)
    pairs = [(f"column {c.name}", c.type) for c in found.columns]
    pairs += [("connector", found.connector), ("key", ", ".join(found.key))]
    pairs += [("partitioned by", ", ".join(found.partitioned_by))]
    pairs += [(f"option {k}", "***" if k.casefold() in secret else v) for k, v in found.options]
    made = connector(Name(found.connector))
    pairs += [
        ("output modes", ", ".join(made.modes_of(found))),
        ("queries", ", ".join(_fed_by(found, session))),
    ]
    return _pairs([*pairs, ("comment", found.comment)])


def _show_functions(statement: function.ShowPythonFunctions, session: Session) -> Result:
    rows = [
        (f.name, WHAT[f.kind], f"{f.module}.{f.attribute}", f.schema, f.folder)
        for f in session.catalog.functions.values()
    ]
    return _table(("name", "kind", "python", "returns", "folder"), rows)


def _describe_function(statement: function.DescribeFunction, session: Session) -> Result:
    found = session.catalog.function(statement.name)
    pairs = [("name", found.name), ("kind", WHAT[found.kind]), ("takes", _TAKES[found.form])]
    pairs += [(f"column {c.name}", c.type) for c in found.columns]
    pairs += [("returns", found.returns), ("python", f"{found.module}.{found.attribute}")]
    pairs += [("folder", found.folder), ("modules", ", ".join(found.modules))]
    return _pairs([*pairs, ("called", _how_called(found))])


_TAKES = {
    "plain": "values", "batched": "values, sent in Arrow batches", "pandas": "pandas", "arrow": "pyarrow",
    "rows": "rows",
}  # fmt: skip


def _how_called(found: Function) -> str:
    if found.kind == "processor":
        return f"FROM {found.name}(TABLE(stream) PARTITION BY key)"
    return f"FROM t, LATERAL {found.name}(…)" if found.kind == "table" else f"SELECT {found.name}(…)"


def _create_function(statement: function.ShowCreateFunction, session: Session) -> Result:
    return Text(text=session.catalog.function(statement.name).sql() + ";")


def _live_numbers(found: Sink, session: Session) -> tuple[int, int, str, str]:
    """(rows kept, rows dropped, mode, columns) of a live table."""
    rows = session.live.get(found.name.casefold())
    if rows is None:
        return 0, 0, "", ""
    table, _ = rows.rows()
    listed = ", ".join(f.name for f in rows.schema.fields)
    return (table.num_rows if table is not None else 0), rows.dropped, rows.mode, listed


def _show_live(statement: live_table.ShowLiveTables, session: Session) -> Result:
    rows = []
    for found in session.catalog.sinks.values():
        if found.is_live:
            kept, dropped, mode, listed = _live_numbers(found, session)
            live = session.live.get(found.name.casefold())
            key = ", ".join(live.keys) if live and live.keys else ""
            fed = ", ".join(_fed_by(found, session))
            rows.append((found.name, kept, dropped, mode, key, listed, fed))
    return _table(("name", "rows", "dropped", "mode", "key", "columns", "query"), rows, (1, 2))


def _describe_live(statement: live_table.DescribeLiveTable, session: Session) -> Result:
    found = session.catalog.live_table(statement.name)
    live = session.live.get(found.name.casefold())
    pairs: list[tuple[str, Any]] = []
    if live:
        pairs += [(f"column {f.name}", f.dataType.simpleString()) for f in live.schema.fields]
    kept, dropped, mode, _ = _live_numbers(found, session)
    pairs += [("rows", kept), ("dropped", dropped or ""), ("output mode", mode)]
    if live and live.keys:
        pairs.append(("key", ", ".join(live.keys)))
    limit = f"{found.retain} rows" if mode == "append" else ""
    return _pairs([*pairs, ("keeps", limit), ("query", ", ".join(_fed_by(found, session)))])


def _create_live(statement: live_table.ShowCreateLiveTable, session: Session) -> Result:
    found = session.catalog.live_table(statement.name)
    made = session.catalog.queries.get(found.name.casefold())
    if made and made.live_table:
        return Text(text=made.sql(found) + ";")
    return _create_text(found)


# ---- queries ----------------------------------------------------------------------------------

_QUERY_COLUMNS = (
    "name", "status", "sink", "mode", "trigger", "batch", "rows in", "rows/s in", "rows/s done",
    "last rates", "watermark", "state rows", "uptime", "last error",
)  # fmt: skip

_EXTENDED = ("late rows", "malformed", "checkpoint", "query")


def _show_queries(statement: query.ShowQueries, session: Session) -> Result:
    rows = []
    for found in session.catalog.queries.values():
        running = session.queries.all.get(found.name.casefold())
        trigger = found.trigger.sql().lower() if found.trigger else "default"
        if running is None:
            past = session.past(found.name)
            rest = (past.batch if past.batch >= 0 else None, *[None] * 7, past.error)
            rows.append((found.name, past.status, found.sink, found.mode, trigger, *rest))
        else:
            rows.append((found.name, running.status(), found.sink, running.mode, trigger, *_numbers(running)))
        if statement.extended:
            reports: Any = running.reports if running else Reports()
            place = running.plan.checkpoint if running else ""
            rows[-1] = (*rows[-1], reports.late, reports.malformed, place, " ".join(found.text.split()))
    columns = _QUERY_COLUMNS + (_EXTENDED if statement.extended else ())
    return replace(_table(columns, rows, (5, 6, 7, 8, 11, 14, 15)), notes=where_they_run(session))


def _numbers(running: Running) -> tuple[Any, ...]:
    reports = running.progress()
    last = reports[-1] if reports else {}
    state = sum(o.get("numRowsTotal", 0) for o in last.get("stateOperators", []))
    watermark = last.get("eventTime", {}).get("watermark", "")
    until = running.ended or datetime.now()
    error = running.fault.message if running.fault else ""
    return (
        last.get("batchId"),
        running.reports.rows_in,
        _rate(last.get("inputRowsPerSecond")),
        _rate(last.get("processedRowsPerSecond")),
        sparkline(running.reports.rates()),
        "" if watermark.startswith("1970-01-01T00:00:00") else watermark,
        state,
        f"{int((until - running.started).total_seconds())} s",
        error,
    )


def _rate(value: Any) -> str | None:
    rate = number(value)
    return None if rate is None else f"{rate:.1f}"


def sparkline(rates: Sequence[float]) -> str:
    """Numbers as one character each, the highest of them as a full block."""
    top = max(rates, default=0.0)
    return "".join(_BARS[min(7, int(r / top * 7.99))] if top else _BARS[0] for r in rates)


_BARS = "▁▂▃▄▅▆▇█"


def _describe_query(statement: query.DescribeQuery, session: Session) -> Result:
    found = session.catalog.query(statement.name)
    sink_entry = session.catalog.sinks.get(found.sinks[0].casefold())
    pairs: list[tuple[str, Any]] = [("name", found.name), ("sink", found.sink)]
    running = session.queries.all.get(found.name.casefold())
    past = session.past(found.name)
    if found.restart:
        pairs.append(("restart", found.restart.sql()))
    if running is None:
        pairs += [("status", past.status), ("since", past.since), ("error", past.error)]
    if running:
        status = running.status()
        pairs += [("status", status), ("output mode", f"{running.mode}  {running.reason}".strip())]
        pairs += [
            ("started", running.started.isoformat(" ", "seconds")),
            ("checkpoint", running.plan.checkpoint),
        ]
        names = _QUERY_COLUMNS[5:12]
        pairs += [(n, str(v)) for n, v in zip(names, _numbers(running), strict=False) if v not in (None, "")]
        if running.reports.late:
            pairs.append(("late rows dropped", running.reports.late))
        if running.reports.malformed:
            pairs.append(("malformed", running.reports.malformed))
        pairs += _last_batch(running)
        pairs.append(("restarts", running.when_again()))
        if running.fault:
            fault = running.fault
            pairs += [("error", fault.message), ("detail", fault.detail), ("hint", fault.hint)]
    for failure in reversed(session.queries.failures.get(found.name.casefold(), [])):
        at = f", batch {failure.batch}" if failure.batch >= 0 else ""
        pairs.append((f"failed {failure.at}{at}", failure.message))
    pairs.append(("statement", found.sql(sink_entry) + ";"))
    return _pairs(pairs)


def _last_batch(running: Running) -> list[tuple[str, Any]]:
    reports = running.progress()
    if not reports:
        return []
    last = reports[-1]
    pairs: list[tuple[str, Any]] = [
        (
            f"source {n}",
            f"{s.get('description', '')}: {s.get('numInputRows', 0)} rows, up to {s.get('endOffset')}",
        )
        for n, s in enumerate(last.get("sources", []))
    ]
    for count, op in enumerate(last.get("stateOperators", [])):
        dropped = op.get("numRowsDroppedByWatermark", 0)
        text = f"{op.get('numRowsTotal', 0)} rows, {op.get('memoryUsedBytes', 0)} bytes"
        name = f"state {count} {op.get('operatorName', '')}"
        pairs.append((name, f"{text}, {dropped} late rows dropped in this batch"))
    phases = ", ".join(f"{k} {v} ms" for k, v in last.get("durationMs", {}).items())
    return [*pairs, ("durations", phases)]


def _show_progress(statement: query.ShowProgress, session: Session) -> Result:
    found = session.catalog.query(statement.name)
    running = session.queries.all.get(found.name.casefold())
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
    return _table(columns, rows, (0, 2, 3, 4, 6, 7))


def why_empty(running: Running, plan: Run) -> tuple[str, ...]:
    """What to say when a SELECT over a stream gave no rows."""
    running.catch_up()
    rows_in = running.reports.rows_in
    if rows_in == 0:
        return (
            "no rows: the streams had nothing to read at this moment; rate and socket make rows as "
            "time goes on: CREATE LIVE TABLE t AS SELECT … keeps reading",
        )
    return held_back(running) or (f"no rows: none of the {rows_in} rows read came through",)


def held_back(running: Running) -> tuple[str, ...]:
    """What to say of groups that append mode holds back until the watermark passes them."""
    reports = running.progress()
    if running.mode != "append" or not reports:
        return ()
    last = reports[-1]
    state = [o for o in last.get("stateOperators", []) if o.get("operatorName") in _GROUPS]
    kept = sum(o.get("numRowsTotal", 0) for o in state)
    watermark = last.get("eventTime", {}).get("watermark", "")
    if not kept or not watermark:
        return ()
    return (
        f"{running.name}: {kept} groups are still open: append shows a window once the watermark "
        f"(now {watermark}) has passed its end",
    )


_GROUPS = ("stateStoreSave", "sessionWindowStateStoreSaveExec")


# ---- connectors and help ----------------------------------------------------------------------


def _show_connectors(statement: session.ShowConnectors, session: Session) -> Result:
    if statement.name is None:
        rows = [
            (c.name, "yes" if c.reads is not None else "", "yes" if c.writes is not None else "", c.help)
            for c in connectors().values()
        ]
        return _table(("name", "reads", "writes", "what it is"), rows)
    return _describe_connector(look.DescribeConnector(name=statement.name), session)


def _describe_connector(statement: look.DescribeConnector, session: Session) -> Result:
    found = connector(statement.name)
    rows = [("connector", "", "", "", found.help), *_abilities(found)]
    reads, writes = found.reads or (), found.writes or ()
    for spec in (*reads, *(s for s in writes if s not in reads)):
        uses = [use for use, specs in (("read", reads), ("write", writes)) if spec in specs]
        rows.append((spec.name, ", ".join(uses), _kind(spec), spec.default, spec.help))
    if found.open_prefix:
        rows.append((f"{found.open_prefix}…", "", "", "", "any other one is handed over as it is"))
    if found.open_options:
        rows.append(("…", "", "", "", "any other option is handed over as it is"))
    return _table(("property", "for", "kind", "default", "what it is"), rows)


def _abilities(found: Connector) -> Iterator[tuple[str, ...]]:
    """Rows of what a connector can do: columns, formats, output modes and triggers."""
    if found.reads is not None:
        columns = ", ".join(f"{c.name} {c.type}" for c in found.fixed_columns)
        if found.needs_columns:
            columns = "declared"
        elif found.infers_columns:
            columns = "declared, or inferred when they are not"
        elif found.formats:
            payloads = ", ".join(f for f in found.formats if f in PAYLOAD_FORMATS)
            columns = f"declared with FORMAT {payloads}; else value"
        yield "columns", "read", "", "", columns or "by its options"
        fields = found.metadata(Stream("", found.name))
        if fields:
            listed = ", ".join(f"{f.name} {f.type}" for f in fields)
            yield "message fields", "read", "", "", f"{listed}; SELECT * leaves them out"
        yield "triggers", "read", "", "", _triggers(found.triggers)
    if found.formats:
        yield "formats", "", "", "", ", ".join(found.formats)
    if found.writes is not None:
        yield "output modes", "write", "", "", _modes(found)
        yield "triggers", "write", "", "", _triggers(found.sink_triggers)
    for name in found.packages or ((found.name,) if found.name in PACKAGES else ()):
        release = PACKAGES[name].releases(metadata.version("pyspark"))[0]
        yield "package", "", "", "", f"{', '.join(release.coordinates)}, fetched when it is first needed"
    if found.takes_key:
        yield "KEY", "write", "", "", "the columns that make the key of a row"


def _modes(found: Connector) -> str:
    """The output modes that a sink takes, and those that a KEY adds."""
    plain, keyed = (found.modes_of(Sink("", found.name, key=key)) for key in ((), ("key",)))
    more = ", ".join(m for m in keyed if m not in plain) if found.takes_key else ""
    return ", ".join(plain) + (f", with KEY {more}" if more else "")


def _triggers(kinds: frozenset[str]) -> str:
    return ", ".join(Trigger(k).sql() if k != "default" else "default" for k in TRIGGERS if k in kinds)


def _kind(spec: OptionSpec) -> str:
    """What an option takes: its kind or choices, and whether it must be there or is never shown."""
    kind = " | ".join(spec.choices) if spec.choices else spec.kind
    return kind + (", required" if spec.required else "") + (", secret" if spec.secret else "")


def _help(statement: session.Help, session: Session) -> Result:
    grammar = load()
    entries = [(synopsis(grammar, r), grammar.help[r], r) for r in BUILDERS if r not in ("Spark", "Select")]
    entries.append(("SELECT …", grammar.help["Select"], "Select"))
    if not statement.words:
        return _table(("statement", "what it does"), sorted((_head(s), h) for s, h, _ in entries))
    asked = " ".join(statement.words)
    wanted = [(s, h, r) for s, h, r in entries if _plain(s).startswith(asked) or asked in _plain(s)]
    if not wanted:
        known = [_head(s) for s, _, _ in entries]
        hint = did_you_mean(asked, known) or "HELP; lists the statements"
        raise NameFault(f"there is no help for {asked}", hint=hint)
    parts = []
    for written, text, rule in wanted:
        parts.append(f"{written}\n    {text}" + _where(rule))
    return Text(text="\n\n".join(parts))


def _plain(written: str) -> str:
    """A synopsis without what may be left out, for looking it up by its first words."""
    depth, out = 0, []
    for word in written.replace("[", " [ ").replace("]", " ] ").split():
        depth += (word == "[") - (word == "]")
        if depth == 0 and word != "]":
            out.append(word)
    return " ".join(out).replace("{DESCRIBE | DESC}", "DESCRIBE").replace("{EXIT | QUIT}", "EXIT")


def _head(written: str) -> str:
    words = []
    for word in _plain(written).split():
        if not word.isupper() or not word.isalpha():
            break
        words.append(word)
    return " ".join(words)


def _where(rule: str) -> str:
    """The clauses that a statement's synopsis and sentence name in <…>, each written out."""
    grammar = load()
    shown, lines, queue = set(), [], [synopsis(grammar, rule) + grammar.help[rule]]
    while queue:
        text = queue.pop(0)
        for name in grammar.rules:
            label = rule_label(name)
            if label in text and name not in shown:
                shown.add(name)
                written = synopsis(grammar, name)
                lines.append(f"\n    {label} is {written}")
                queue.append(written)
    return "".join(lines)


_ANSWERS: dict[type, Callable[[Any, Session], Result]] = {
    stream.ShowStreams: _show_streams,
    stream.DescribeStream: _describe_stream,
    stream.ShowCreateStream: _create_stream,
    sink.ShowSinks: _show_sinks,
    sink.DescribeSink: _describe_sink,
    sink.ShowCreateSink: _create_sink,
    function.ShowPythonFunctions: _show_functions,
    function.DescribeFunction: _describe_function,
    function.ShowCreateFunction: _create_function,
    live_table.ShowLiveTables: _show_live,
    live_table.DescribeLiveTable: _describe_live,
    live_table.ShowCreateLiveTable: _create_live,
    query.ShowQueries: _show_queries,
    query.DescribeQuery: _describe_query,
    query.ShowProgress: _show_progress,
    session.ShowConnectors: _show_connectors,
    look.DescribeConnector: _describe_connector,
    books_statements.ShowBatches: books.show_batches,
    books_statements.DescribeCheckpoint: books.describe_checkpoint,
    session.Help: _help,
}
