"""PREVIEW: what is to be looked at, and the programs that read its first records."""

from __future__ import annotations

from dataclasses import replace

from streamsql.calls import Assign, Program
from streamsql.catalog import Stream
from streamsql.connectors.base import check_options, filled_in
from streamsql.connectors.registry import connector
from streamsql.errors import RuleFault
from streamsql.language.statements.base import Fragment, Name
from streamsql.language.statements.look import Preview as PreviewStatement
from streamsql.language.statements.select import Select
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context, reads_of
from streamsql.plan.definitions import check_format, code_of
from streamsql.plan.guesses import stream_name
from streamsql.plan.plans import Plan, Preview, Reads, Run
from streamsql.plan.queries import select
from streamsql.plan.sources import Sources, variable, watermarked

SAMPLE = 1000
"""So many records of a source are looked at to tell its columns; a preview reads no more of it."""


def preview(statement: PreviewStatement, context: Context) -> Plan:
    """The stream to look at: one that is there, or one that CREATE STREAM would make."""
    if statement.name:
        found = context.catalog.relation(statement.name.value)
        if found is not None and not isinstance(found, Stream):
            raise RuleFault(
                f"{statement.name} is a live table; its rows are there to be read",
                hint=f"SELECT * FROM {quote_name(found.name)} LIMIT {statement.limit};",
                span=statement.name.span,
            )
        return Preview(context.catalog.stream(statement.name), statement.limit)
    assert statement.connector
    made = connector(statement.connector, "read")
    if made.needs_columns:
        raise RuleFault(
            f"there is nothing to look at: the rows of {made.name} are what CREATE STREAM says",
            hint=f"CREATE STREAM name (id INT, …) USING {made.name} …; then PREVIEW name;",
            span=statement.connector.span,
        )
    options = {o.key.value.casefold(): o for o in statement.options}
    check_options(made, made.stream_options(()), statement.options, statement.connector)
    check_format(statement.format, made)
    path = options.get(made.path_option.casefold())
    taken = [*context.catalog.relation_names(), *(s.name for s in context.catalog.sinks.values())]
    stream = Stream(
        stream_name(path.value.value if path else "", taken, made.name),
        made.name,
        statement.format.value.lower() if statement.format else "",
        (),
        filled_in(made.reads or (), statement.options, context.here),
    )
    made.check_stream(stream, options, statement.connector)
    return Preview(
        stream,
        statement.limit,
        True,
        path.value if path else None,
        code_of(made.reads or (), options),
    )


def first_rows(stream: Stream, limit: int, context: Context) -> tuple[Program, Reads] | None:
    """The program that reads the first records of a stream as a static DataFrame, from what is there;
    None when its sources, or one of them, are only read as rows come. A stream that is a query is
    made from the first records of each of its sources.
    """
    sources = Sources(context.catalog, context.places)
    node, _ = sources.stream(stream)
    bases = {variable(s.name): s for s in sources.streams.values() if s.connector}
    steps = []
    for step in sources.program:
        base = bases.get(step.name)
        if base:
            frame = connector(Name(base.connector)).at_rest(base, context.places)
            if frame is None:
                return None
            taken = frame.call("limit", SAMPLE if stream.query else limit)
            step = Assign(step.name, watermarked(taken, base.watermark))
        steps.append(step)
    return (*steps, Assign("result", node.call("limit", limit))), reads_of(sources)


def as_they_come(stream: Stream, context: Context) -> Run:
    """The query that reads a stream for as long as somebody looks."""
    catalog = context.catalog.copy()
    catalog.streams[stream.name.casefold()] = stream
    statement = Select(query=Fragment(f"SELECT * FROM {quote_name(stream.name)}"))
    made = select(statement, replace(context, catalog=catalog))
    assert isinstance(made, Run)
    return replace(made, query=replace(made.query, trigger=None))
