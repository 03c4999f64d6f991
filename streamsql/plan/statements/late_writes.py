"""ON LATE INTO, to its plan: the late rows of a query and the sink that takes them."""

from __future__ import annotations

from collections.abc import Iterator

from streamsql.calls import Assign, Function, Var, call, calls_in, expr
from streamsql.connectors.registry import connector, connectors
from streamsql.definitions import Query, Sink, Stream
from streamsql.errors import NameFault, Note, RuleFault, Span
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context
from streamsql.plan.lowering.late_rows import READER, check_sources, drops_behind_a_join, reading_steps
from streamsql.plan.plans import Late, live_rows
from streamsql.plan.statements.query_parts import QueryParts
from streamsql.plan.streaming.rules import Choice

_BY_BATCH = {
    "foreach": "CREATE SINK name USING foreach_batch OPTIONS (function '…'); the function is called with "
    "(rows, batch_id)",
    "python": "a function that writes them: CREATE SINK name USING foreach_batch OPTIONS (function '…')",
}
"""What takes late rows instead of a sink that is called for each row or partition of a running stream."""
_UNBATCHED = ("continuous", "real_time")
"""Triggers without micro-batches that can be read again."""


def late_plan(query: Query, parts: QueryParts, context: Context, name: Name | None) -> Late | None:
    """The plan of ON LATE INTO; None without it. name: the sink as written, None when the query is started
    again. Raises NameFault or RuleFault.
    """
    if not query.late:
        return None
    name = name or Name(query.late, parts.body.span)
    sink = _sink(query, context, name)
    if query.trigger and query.trigger.kind in _UNBATCHED:
        words = query.trigger.kind.replace("_", " ").upper()
        raise RuleFault(
            f"ON LATE INTO is not supported with TRIGGER {words}",
            detail="late rows are read again micro-batch by micro-batch",
            hint="TRIGGER EVERY INTERVAL 1 SECOND",
            span=name.span,
            code="TRIGGER_NOT_SUPPORTED",
        )
    program = (*parts.sources.program, Assign("result", parts.result.node))
    bases = parts.sources.bases
    if not any(c.method == "withWatermark" for c in calls_in(program)):
        raise RuleFault(
            "ON LATE INTO needs a watermark: without one no row is late",
            hint="CREATE OR REPLACE STREAM … WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES",
            span=name.span,
            code="MISSING_WATERMARK",
        )
    check_sources(bases, name.span)
    _check_files_stay(bases, name.span)
    steps, streams, functions = reading_steps(parts.sources, parts.result.shape)
    if not functions:
        raise RuleFault(
            "this query drops no late rows, so that ON LATE INTO would write none",
            detail="rows are late for windows, deduplication, joins of streams and stateful processors only, "
            "and in a query of DataFrame calls (EXPLAIN PYSPARK)",
            hint="leave ON LATE INTO out",
            span=name.span,
            code="NO_STATE",
        )
    spark, folder = Var("spark"), query.checkpoint or call("checkpoint", query.name)
    free = parts.sources.free_variable
    reader, writer = Var(free("late_reader")), free("late_writer")
    reads = Assign(reader.name, call(READER, spark, folder, Var("result"), streams, functions))
    selects = (_select(free("late_columns"), sink),) if sink.columns else ()
    keeping = live_rows(sink, reader.call("empty").attr("schema"), "append")
    write = connector(Name(sink.connector)).batch_writer(sink)
    writes = call("LateRowsWriter", spark, folder, reader, write, *(Var(s.name) for s in selects))
    return Late(
        sink,
        (*steps, reads, *selects),
        (keeping,) if sink.is_live else (),
        (Assign(writer, writes), Assign("", Var(writer).call("begin"))),
        writer,
        tuple(_notes(sink, parts)),
    )


def _notes(sink: Sink, parts: QueryParts) -> Iterator[Note]:
    """How often a late row may be written, and which late rows are not."""
    using = connector(Name(sink.connector))
    if not using.once_by_batch_id:
        yield Note("AT_LEAST_ONCE", f"late rows into {sink.name}: {using.delivery(sink)}")
    later = drops_behind_a_join(parts.result.shape)
    if later:
        yield Note("LATE_ROWS_OF_JOIN", later)


def without_complete(choices: list[Choice], query: Query, name: Name | None) -> list[Choice]:
    """The output modes in which the watermark drops rows, for ON LATE INTO. Raises RuleFault."""
    remaining = [c for c in choices if c.mode != "complete"]
    if not query.late or remaining == choices:
        return choices
    if not remaining:
        raise RuleFault(
            "ON LATE INTO is not supported in output mode complete",
            detail="the state is kept whole in this mode, so that no row is late",
            hint="leave ON LATE INTO out, or write OUTPUT MODE UPDATE",
            span=name.span if name else None,
            code="CLAUSE_NOT_SUPPORTED",
        )
    return remaining


def _select(name: str, sink: Sink) -> Assign:
    """The function that gives late rows the columns that their sink declares, by name."""
    columns = (expr(f"CAST({quote_name(c.name)} AS {c.type}) AS {quote_name(c.name)}") for c in sink.columns)
    return Assign(name, Function(("rows",), (), Var("rows").call("select", *columns)))


def _sink(query: Query, context: Context, name: Name) -> Sink:
    """The sink of late rows. Raises NameFault or RuleFault for one that cannot take them."""
    sink = context.catalog.sink(name)
    using = connector(Name(sink.connector))
    if using.batch_writer(sink) is None:
        able = [c.name for c in connectors().values() if c.writes is not None and c.writes_batches]
        more = _BY_BATCH.get(using.name, "")
        raise RuleFault(
            f"a {using.name} sink takes no late rows: they are written micro-batch by micro-batch",
            hint=more or f"connectors for it: {', '.join(able)}",
            span=name.span,
            code="CONNECTOR_NOT_SUPPORTED",
        )
    if query.writes_into(sink.name):
        raise RuleFault(
            f"{sink.name} is the sink of the query itself",
            hint="another sink, whose columns are those of the late rows",
            span=name.span,
            code="CLAUSE_CONFLICT",
        )
    others = context.catalog.writers_of(sink.name)
    feeding = [q.name for q in others if q.name.casefold() != query.name.casefold()]
    if sink.is_live and feeding:
        raise NameFault(
            f"the query {feeding[0]} already feeds {sink.name}",
            detail="a live table has the rows of one query",
            hint=f"CREATE SINK {quote_name(f'{sink.name}_2')} USING memory;",
            span=name.span,
            code="ALREADY_EXISTS",
        )
    return sink


def _check_files_stay(bases: list[Stream], span: Span) -> None:
    """Raise RuleFault for a stream that removes the files which it has read."""
    for stream in bases:
        clean = stream.option("cleanSource")
        if clean.casefold() in ("delete", "archive"):
            raise RuleFault(
                f"the rows of {stream.name} cannot be read again: cleanSource '{clean}' removes its files",
                hint="cleanSource 'off'",
                span=span,
                code="CONNECTOR_NOT_SUPPORTED",
            )
