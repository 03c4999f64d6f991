"""SHOW and DESCRIBE of what the catalog holds."""

from __future__ import annotations

from typing import Any

from streamsql.catalog import Function, Sink, Stream
from streamsql.connectors.registry import connector
from streamsql.language.statements import function, live_table, sink, stream
from streamsql.language.statements.base import Name
from streamsql.plan.lowering.sources import columns_of
from streamsql.results import Result, Text
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import pairs_of, table
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.function_kinds import WHAT
from streamsql.secrets import redact_option


def _mark(entry: Stream) -> str:
    mark = entry.watermark
    return f"{mark.column.value}, {mark.delay}" if mark else ""


def _show_streams(session: SessionParts, statement: stream.ShowStreams) -> Result:
    rows = [
        (s.name, s.connector or "query", ", ".join(columns_of(s) or ()), _mark(s), s.comment)
        for s in session.catalog.streams.values()
    ]
    return table(("name", "connector", "columns", "watermark", "comment"), rows)


def _describe_stream(session: SessionParts, statement: stream.DescribeStream) -> Result:
    found = session.catalog.stream(statement.name)
    columns = found.columns
    if not columns and found.connector:
        columns = connector(Name(found.connector)).columns(found)
    pairs = [(f"column {c.name}", c.type + (f"  {c.comment}" if c.comment else "")) for c in columns]
    pairs += [("connector", found.connector), ("format", found.format), ("query", found.query)]
    pairs += [(f"option {k}", redact_option(k, v)) for k, v in found.options]
    readers = [q.name for q in session.catalog.queries.values() if found.name.casefold() in q.text.casefold()]
    pairs += [("watermark", _mark(found)), ("comment", found.comment), ("read by", ", ".join(readers))]
    return pairs_of(pairs)


def _create_text(entry: Stream | Sink) -> Result:
    return Text(text=entry.sql() + ";")


def _show_sinks(session: SessionParts, statement: sink.ShowSinks) -> Result:
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
    return table(("name", "connector", "path", "queries", "comment"), rows)


def _fed_by(found: Sink, session: SessionParts) -> list[str]:
    return [q.name for q in session.catalog.queries_into(found.name)]


def _create_stream(session: SessionParts, statement: stream.ShowCreateStream) -> Result:
    return _create_text(session.catalog.stream(statement.name))


def _create_sink(session: SessionParts, statement: sink.ShowCreateSink) -> Result:
    return _create_text(session.catalog.sink(statement.name))


def _describe_sink(session: SessionParts, statement: sink.DescribeSink) -> Result:
    found = session.catalog.sink(statement.name)
    pairs = [(f"column {c.name}", c.type) for c in found.columns]
    pairs += [("connector", found.connector), ("key", ", ".join(found.key))]
    pairs += [("partitioned by", ", ".join(found.partitioned_by))]
    pairs += [(f"option {k}", redact_option(k, v)) for k, v in found.options]
    made = connector(Name(found.connector))
    pairs += [
        ("output modes", ", ".join(made.modes_of(found))),
        ("queries", ", ".join(_fed_by(found, session))),
    ]
    return pairs_of([*pairs, ("comment", found.comment)])


def _show_functions(session: SessionParts, statement: function.ShowPythonFunctions) -> Result:
    rows = [
        (f.name, WHAT[f.kind], f"{f.module}.{f.attribute}", f.schema, f.folder)
        for f in session.catalog.functions.values()
    ]
    return table(("name", "kind", "python", "returns", "folder"), rows)


def _describe_function(session: SessionParts, statement: function.DescribeFunction) -> Result:
    found = session.catalog.function(statement.name)
    pairs = [("name", found.name), ("kind", WHAT[found.kind]), ("takes", _TAKES[found.form])]
    pairs += [(f"column {c.name}", c.type) for c in found.columns]
    pairs += [("returns", found.returns), ("python", f"{found.module}.{found.attribute}")]
    pairs += [("folder", found.folder), ("modules", ", ".join(found.modules))]
    return pairs_of([*pairs, ("called", _how_called(found))])


_TAKES = {
    "plain": "values", "batched": "values, sent in Arrow batches", "pandas": "pandas", "arrow": "pyarrow",
    "rows": "rows",
}  # fmt: skip


def _how_called(found: Function) -> str:
    if found.kind == "processor":
        return f"FROM {found.name}(TABLE(stream) PARTITION BY key)"
    return f"FROM t, LATERAL {found.name}(…)" if found.kind == "table" else f"SELECT {found.name}(…)"


def _create_function(session: SessionParts, statement: function.ShowCreateFunction) -> Result:
    return Text(text=session.catalog.function(statement.name).sql() + ";")


def _live_numbers(found: Sink, session: SessionParts) -> tuple[int, int, str, str]:
    """(rows kept, rows dropped, mode, columns) of a live table."""
    rows = session.live.get(found.name.casefold())
    if rows is None:
        return 0, 0, "", ""
    table, _ = rows.rows()
    listed = ", ".join(f.name for f in rows.schema.fields)
    return (table.num_rows if table is not None else 0), rows.dropped, rows.mode, listed


def _show_live(session: SessionParts, statement: live_table.ShowLiveTables) -> Result:
    rows = []
    for found in session.catalog.sinks.values():
        if found.is_live:
            kept, dropped, mode, listed = _live_numbers(found, session)
            live = session.live.get(found.name.casefold())
            key = ", ".join(live.keys) if live and live.keys else ""
            fed = ", ".join(_fed_by(found, session))
            rows.append((found.name, kept, dropped, mode, key, listed, fed))
    return table(("name", "rows", "dropped", "mode", "key", "columns", "query"), rows, (1, 2))


def _describe_live(session: SessionParts, statement: live_table.DescribeLiveTable) -> Result:
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
    return pairs_of([*pairs, ("keeps", limit), ("query", ", ".join(_fed_by(found, session)))])


def _create_live(session: SessionParts, statement: live_table.ShowCreateLiveTable) -> Result:
    found = session.catalog.live_table(statement.name)
    made = session.catalog.queries.get(found.name.casefold())
    if made and made.live_table:
        return Text(text=made.sql(found) + ";")
    return _create_text(found)


DIRECT: Answers = {
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
}
