"""ADVANCE STREAM and FLUSH QUERY: event time moves on."""

from __future__ import annotations

from streamsql.calls import Assign, calls_in
from streamsql.connectors.registry import connector
from streamsql.connectors.values import Values
from streamsql.definitions import Stream
from streamsql.errors import RuleFault
from streamsql.language.durations import durations_in
from streamsql.language.query import read_query
from streamsql.language.statements.base import Name
from streamsql.language.statements.query import FlushQuery
from streamsql.language.statements.stream import AdvanceStream
from streamsql.language.tokens import quote, quote_name
from streamsql.plan.context import Context
from streamsql.plan.lowering.sources import read_by_spark_alone
from streamsql.plan.plans import Flush, Plan, Refresh, Run, Write
from streamsql.plan.statements.existing import start_plan

LOSING = frozenset({"socket"})
"""Sources whose unread input is lost when a query stops."""


def advance_stream(statement: AdvanceStream, context: Context) -> Plan:
    """ADVANCE STREAM: a stream of values with a watermark. Raises NameFault or RuleFault."""
    stream = context.catalog.stream(statement.name)
    source = connector(Name(stream.connector)) if stream.connector else None
    if not isinstance(source, Values):
        raise RuleFault(
            f"the event time of {stream.name} cannot be advanced: it reads {stream.connector or 'a query'}",
            detail="only a stream USING values is written by this console",
            hint=_instead(stream, statement, context),
            span=statement.name.span,
            code="WRONG_KIND",
        )
    if stream.watermark is None:
        raise RuleFault(
            f"the stream {stream.name} has no watermark, so that nothing depends on its event time",
            hint=f"CREATE OR REPLACE STREAM {quote_name(stream.name)} (…) USING values WITH WATERMARK …",
            span=statement.name.span,
            code="MISSING_WATERMARK",
        )
    write = source.advance(stream, statement.to.value, context.places)
    message = f"event time of {stream.name} advanced to {statement.to}"
    return Write((Assign("", write),), message, folder=context.places.values(stream.name))


def _instead(stream: Stream, statement: AdvanceStream, context: Context) -> str:
    """What to type for a stream that cannot be advanced."""
    for relation in read_query(stream.query).relations if stream.query else ():
        base = context.catalog.streams.get(relation.name.casefold())
        if base is not None and base.connector == "values":
            return f"ADVANCE STREAM {quote_name(base.name)} TO TIMESTAMP {quote(statement.to.value)};"
    reading = [
        q.name
        for q in context.catalog.queries.values()
        if stream.name.casefold() in read_query(q.text).words and not q.together
    ]
    return f"FLUSH QUERY {quote_name(reading[0])};" if reading else "FLUSH QUERY name; is for any source"


def flush_query(statement: FlushQuery, context: Context) -> Plan:
    """FLUSH QUERY: a query with a watermark, whose sources can be resumed. Raises NameFault or RuleFault."""
    query = context.catalog.query(statement.name)
    run = start_plan(query, context)
    if isinstance(run, Refresh):
        feeding = [q.name for t in run.reads.live for q in context.catalog.queries_into(t.name)]
        raise RuleFault(
            f"{query.name} is computed from live tables and holds nothing back",
            hint=" ".join(f"FLUSH QUERY {quote_name(name)};" for name in dict.fromkeys(feeding)),
            span=statement.name.span,
            code="WRONG_KIND",
        )
    if not any(call.method == "withWatermark" for call in calls_in(run.program)):
        place = statement.name.span
        raise read_by_spark_alone(query.text, query.name, place, context.catalog) or RuleFault(
            f"the query {query.name} has no watermark, so that it waits for no event time",
            hint=f"WHY QUERY {quote_name(query.name)};",
            span=statement.name.span,
            code="MISSING_WATERMARK",
        )
    _check_restarts(run, statement)
    texts = (query.text, *(s.query for s in run.reads.streams if s.query))
    return Flush(run, sum(map(durations_in, texts)))


def _check_restarts(run: Run, statement: FlushQuery) -> None:
    """Raise RuleFault for a query that has no micro-batches, or whose restart would lose input."""
    how = "FLUSH restarts the query with a micro-batch of no rows and a later watermark"
    kind = run.query.trigger.kind if run.query.trigger else ""
    if kind in ("continuous", "real_time"):
        raise RuleFault(
            f"a query with the trigger {kind.replace('_', ' ').upper()} cannot be flushed",
            detail=how,
            hint="INSERT … TRIGGER EVERY INTERVAL 1 SECOND …",
            span=statement.name.span,
            code="TRIGGER_NOT_SUPPORTED",
        )
    for stream in run.reads.streams:
        if stream.connector in LOSING:
            raise RuleFault(
                f"{run.query.name} cannot be flushed: a restart loses input of the {stream.connector} source "
                f"of {stream.name}",
                detail=how,
                hint="OUTPUT MODE UPDATE emits open groups as they are",
                span=statement.name.span,
                code="CONNECTOR_NOT_SUPPORTED",
            )
