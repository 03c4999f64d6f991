"""BACKFILL of a live table: the rows of a stream before a moment come from a static query."""

from __future__ import annotations

from streamsql.calls import Assign, Var
from streamsql.connectors.registry import connector
from streamsql.connectors.values import Values
from streamsql.definitions import Backfill, Stream, history_name, promoted_name
from streamsql.errors import RuleFault, Span
from streamsql.language.origin import edited
from streamsql.language.query import read_query
from streamsql.language.statements.base import Name
from streamsql.language.statements.live_table import BackfillClause, CreateLiveTable
from streamsql.language.tokens import quote, quote_name
from streamsql.plan.context import Context, lower_fragment, reads_of
from streamsql.plan.plans import Write


def check_clauses(statement: CreateLiveTable, context: Context) -> None:
    """Raise RuleFault for a clause that BACKFILL excludes, and on a Spark Connect server."""
    if statement.begins == "now":
        raise RuleFault(
            "BACKFILL and FROM NOW exclude each other",
            hint="leave out FROM NOW",
            span=statement.name.span,
            code="CLAUSE_CONFLICT",
        )
    if context.server is not None:
        raise RuleFault(
            "BACKFILL needs a Spark of its own",
            hint="leave out BACKFILL",
            span=statement.name.span,
            code="CLAUSE_NOT_SUPPORTED",
        )


def backfilled(
    statement: CreateLiveTable, clause: BackfillClause, context: Context
) -> tuple[str, Backfill, Write]:
    """(the SELECT over the history and the stream, the definition of BACKFILL, what reads the history).
    Raises RuleFault.
    """
    stream = _stream(statement, clause, context)
    time = _event_time(stream, clause, statement)
    name, until = promoted_name(statement.name.value), clause.until.value
    history = history_name(name, stream.name, clause.query.text, until)
    names = [quote_name(c.name) for c in stream.columns]
    assert stream.watermark
    computed, own = stream.watermark.computed, ", ".join(names)
    selected = f"{own}, {computed.text} AS {time}" if computed else own
    read = f"(SELECT {selected} FROM {quote_name(history)})" if computed else quote_name(history)
    given = f"{own}, {time}" if computed else own
    moment = f"TIMESTAMP {quote(until)}"
    # The stream is first: the result of UNION ALL has the watermark of its first part.
    union = (
        f"(SELECT {given} FROM {quote_name(stream.name)} WHERE {time} >= {moment} UNION ALL "
        f"SELECT {given} FROM {read} WHERE {time} < {moment} OR {time} IS NULL)"
    )
    text = _in_place_of(stream, union, statement)
    backfill = Backfill(stream.name, clause.query.text, until, statement.query.text, history)
    return text, backfill, _reading(stream, history, clause, context)


def _stream(statement: CreateLiveTable, clause: BackfillClause, context: Context) -> Stream:
    relations = read_query(statement.query.text).relations
    entries = {r.name.casefold(): context.catalog.relation(r.name) for r in relations}
    streams = {key: entry for key, entry in entries.items() if isinstance(entry, Stream)}
    if clause.stream:
        stream = context.catalog.stream(clause.stream)
        if stream.name.casefold() in streams:
            return stream
    elif len(streams) == 1:
        return next(iter(streams.values()))
    listed = ", ".join(s.name for s in streams.values())
    raise RuleFault(
        f"the SELECT does not read the stream {clause.stream}"
        if clause.stream
        else f"BACKFILL needs one stream, and the SELECT reads {listed or 'none'}",
        hint=" or ".join(f"BACKFILL {quote_name(s.name)} FROM (…)" for s in streams.values()),
        span=clause.stream.span if clause.stream else clause.query.span,
        code="CLAUSE_CONFLICT",
    )


def _event_time(stream: Stream, clause: BackfillClause, statement: CreateLiveTable) -> str:
    """The column that UNTIL is about, in backticks where needed."""
    time = stream.watermark.column.value if stream.watermark else ""
    columns = {c.name.casefold() for c in stream.columns}
    if stream.watermark and columns and (stream.watermark.computed or time.casefold() in columns):
        return quote_name(time)
    raise RuleFault(
        f"the stream {stream.name} has no column of event time, which BACKFILL compares with UNTIL",
        detail="it is a column of the stream itself, named by WITH WATERMARK",
        hint=f"CREATE OR REPLACE STREAM {quote_name(stream.name)} (…) … WITH WATERMARK ts DELAY '1 hour'",
        span=clause.stream.span if clause.stream else statement.query.span,
        code="MISSING_WATERMARK",
    )


def _in_place_of(stream: Stream, union: str, statement: CreateLiveTable) -> str:
    """The SELECT with the union in each place that reads the stream. Raises RuleFault."""
    query = read_query(statement.query.text)
    blocks = query.body.blocks(ctes=True) if query.body else ()
    relations = [r for block in blocks for r in block.relations]
    edits: dict[Span, str] = {}
    for named in query.relations:
        if named.name.casefold() != stream.name.casefold():
            continue
        span = named.span
        at = (r for r in relations if r.span.start <= span.start and span.end <= r.span.end and r.name)
        relation = next(at, None)
        if relation is None or relation.watermark or relation.stream or relation.sample or relation.pivot:
            raise RuleFault(
                f"BACKFILL does not know how {stream.name} is read here",
                hint=f"FROM {quote_name(stream.name)}, without a clause of its own",
                span=statement.query.origin.span(span),
                code="CLAUSE_NOT_SUPPORTED",
            )
        alias = "" if relation.alias else f" AS {quote_name(relation.name)}"
        edits[span] = union + alias
    return edited(query.text, edits)


def _reading(stream: Stream, history: str, clause: BackfillClause, context: Context) -> Write:
    """What reads the static query once: its rows, and their one file. Raises RuleFault."""
    sources = context.sources()
    lowered = lower_fragment(clause.query, sources)
    if lowered.shape.streaming or sources.live:
        raise RuleFault(
            f"BACKFILL reads its query once, and it reads a {'live table' if sources.live else 'stream'}",
            hint="a SELECT over tables and files: SELECT … FROM parquet.`folder`",
            span=clause.query.span,
            code="NOT_ON_STREAMS",
        )
    values = connector(Name("values"))
    assert isinstance(values, Values)
    folder = context.places.values(history)
    rows = values.written(stream, Var("given"), [c.name for c in stream.columns])
    # One file: the stream of history is read in the first micro-batch, before the watermark moves.
    write = Var("result").call("coalesce", 1).attr("write").call("mode", "append").call("parquet", folder)
    given = Var("rows").call("select", *(quote_name(c.name) for c in stream.columns))
    program = (
        *sources.program,
        Assign("rows", lowered.node),
        Assign("given", given),
        Assign("result", rows),
        Assign("", write),
    )
    return Write(program, stream.name, reads_of(sources), folder)
