"""SHOW, DESCRIBE and SHOW CREATE of the catalog's entries."""

from __future__ import annotations

from collections.abc import Callable

from streamsql.catalog import Catalog
from streamsql.connectors.registry import connector
from streamsql.definitions import Function, Sink, Stream, text_of
from streamsql.guard import informing
from streamsql.language.durations import shown
from streamsql.language.redaction import redact
from streamsql.language.statements import function, sink, stream
from streamsql.language.statements.base import Name
from streamsql.language.struct_types import in_capitals
from streamsql.plan.resolver import Resolver
from streamsql.plan.streaming.readers import queries_over
from streamsql.results import Result, Text
from streamsql.runtime.evidence.event_times import measured_of
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import named_like, pairs_of, table
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.function_kinds import WHAT
from streamsql.runtime.source_states import source_state
from streamsql.secrets import redact_option


def _watermark_text(entry: Stream) -> str:
    watermark = entry.watermark
    return f"{watermark.column.value}, {shown(watermark.delay)}" if watermark else ""


def column_names(parts: SessionParts, entry: Stream) -> str:
    """The columns of a stream; of one that is a query, those that its text tells."""
    columns = Resolver(parts.catalog).of_stream(entry)
    names = [name for name, _ in columns.named]
    return ", ".join([*names, "…"] if entry.query and not columns.complete else names)


def _show_streams(parts: SessionParts, statement: stream.ShowStreams) -> Result:
    rows = [
        (s.name, s.connector or "query", column_names(parts, s), _watermark_text(s), s.comment)
        for s in parts.catalog.streams.values()
    ]
    listed = table(("name", "connector", "columns", "watermark", "comment"), rows, nothing="no streams")
    return named_like(listed, statement.pattern)


def _describe_stream(parts: SessionParts, statement: stream.DescribeStream) -> Result:
    entry = parts.catalog.stream(statement.name)
    columns = entry.columns
    if not columns and entry.connector:
        columns = connector(Name(entry.connector)).columns(entry)
    pairs = [
        (f"column {c.name}", in_capitals(c.type) + (f"  {c.comment}" if c.comment else "")) for c in columns
    ]
    pairs += [("connector", entry.connector), ("format", entry.format), ("key", ", ".join(entry.key))]
    if entry.query:
        pairs += [("columns", column_names(parts, entry)), ("query", entry.query)]
    pairs += [(f"option {k}", redact_option(k, v)) for k, v in entry.options]
    pairs += _not_known(entry, "read")
    if state := informing(lambda: source_state(parts, entry), None):
        pairs += [*state.facts, ("not received", state.fault)]
    readers = [query.name for query in queries_over(entry.name, parts.catalog)]
    pairs += _event_times(parts, entry)
    pairs += [
        ("watermark", _watermark_text(entry)),
        ("comment", entry.comment),
        ("read by", ", ".join(readers)),
    ]
    return pairs_of(pairs)


def _not_known(entry: Stream | Sink, use: str) -> list[tuple[str, str]]:
    """What is not known of a stream or sink. use: "read" or "write"."""
    listed = connector(Name(entry.connector)).not_known if entry.connector else ()
    return [(title, text) for title, purpose, text in listed if purpose == use]


def _event_times(parts: SessionParts, entry: Stream) -> list[tuple[str, str]]:
    """The event times in the newest micro-batches of the queries over a stream."""
    measured = measured_of(entry, parts.queries.all.values())
    if not measured:
        return []
    zone = str(parts.spark.conf.get("spark.sql.session.timeZone"))
    return [(f"event times in {running.name}", times.text(zone)) for running, times in measured]


def _show_sinks(parts: SessionParts, statement: sink.ShowSinks) -> Result:
    rows = [
        (
            s.name,
            s.connector,
            s.option("path") or s.option("table") or s.option("topic"),
            ", ".join(_fed_by(s, parts)),
            s.comment,
        )
        for s in parts.catalog.sinks.values()
        if not s.owner
    ]
    listed = table(("name", "connector", "target", "queries", "comment"), rows, nothing="no sinks")
    return named_like(listed, statement.pattern)


def _fed_by(entry: Sink, parts: SessionParts) -> list[str]:
    return [q.name for q in parts.catalog.writers_of(entry.name)]


def _describe_sink(parts: SessionParts, statement: sink.DescribeSink) -> Result:
    entry = parts.catalog.sink(statement.name)
    pairs = [(f"column {c.name}", c.type) for c in entry.columns]
    pairs += [("connector", entry.connector), ("key", ", ".join(entry.key))]
    pairs += [("partitioned by", ", ".join(entry.partitioned_by))]
    pairs += [(f"option {k}", redact_option(k, v)) for k, v in entry.options]
    writer = connector(Name(entry.connector))
    pairs += [
        *_not_known(entry, "write"),
        ("output modes", ", ".join(writer.modes_of(entry))),
        ("queries", ", ".join(_fed_by(entry, parts))),
    ]
    return pairs_of([*pairs, ("comment", entry.comment)])


def _show_functions(parts: SessionParts, statement: function.ShowPythonFunctions) -> Result:
    rows = [
        (f.name, WHAT[f.kind], f"{f.module}.{f.attribute}", f.schema, f.folder)
        for f in parts.catalog.functions.values()
    ]
    listed = table(("name", "kind", "python", "returns", "folder"), rows, nothing="no functions")
    return named_like(listed, statement.pattern)


def _describe_function(parts: SessionParts, statement: function.DescribeFunction) -> Result:
    entry = parts.catalog.functions[statement.name.value.casefold()]
    pairs = [("name", entry.name), ("kind", WHAT[entry.kind]), ("takes", _TAKES[entry.form])]
    pairs += [(f"column {c.name}", c.type) for c in entry.columns]
    pairs += [("returns", entry.returns), ("python", f"{entry.module}.{entry.attribute}")]
    pairs += [("folder", entry.folder), ("modules", ", ".join(entry.modules))]
    return pairs_of([*pairs, ("called", how_called(entry))])


_TAKES = {
    "plain": "values", "batched": "values, sent in Arrow batches", "pandas": "pandas", "arrow": "pyarrow",
    "rows": "rows",
}  # fmt: skip


def how_called(entry: Function) -> str:
    if entry.kind == "processor":
        return f"FROM {entry.name}(TABLE(stream) PARTITION BY key)"
    return f"FROM t, LATERAL {entry.name}(…)" if entry.kind == "table" else f"SELECT {entry.name}(…)"


def _created_by(definition: Callable[[Catalog, Name], str]) -> Callable[..., Result]:
    """The handler of a SHOW CREATE. definition: gives the statement that makes an entry."""
    return lambda parts, statement: Text(text=definition(parts.catalog, statement.name) + ";")


DIRECT: Answers = {
    stream.ShowStreams: _show_streams,
    stream.DescribeStream: _describe_stream,
    stream.ShowCreateStream: _created_by(lambda catalog, name: catalog.stream(name).sql()),
    sink.ShowSinks: _show_sinks,
    sink.DescribeSink: _describe_sink,
    sink.ShowCreateSink: _created_by(lambda catalog, name: catalog.sink(name).sql()),
    function.ShowPythonFunctions: _show_functions,
    function.DescribeFunction: _describe_function,
    function.ShowCreateFunction: _created_by(lambda catalog, name: redact(text_of(catalog.function(name)))),
}
