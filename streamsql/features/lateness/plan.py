"""SHOW LATENESS, to its plan."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.definitions import Query, Stream
from streamsql.errors import RuleFault, StreamsqlError
from streamsql.features.lateness.statement import ShowLateness
from streamsql.language.tokens import quote_name
from streamsql.plan.basic_plans import Plan
from streamsql.plan.context import Context
from streamsql.plan.lowering.late_rows import check_sources, stream_batches


@dataclass(frozen=True)
class Lateness(Plan):
    """SHOW LATENESS. queries: those that read the stream; none if its source cannot be read again, so that
    their reports tell its lateness; chart: whether the distribution is asked for.
    """

    stream: Stream
    queries: tuple[Query, ...]
    chart: bool = False


def show_lateness(statement: ShowLateness, context: Context) -> Plan:
    """SHOW LATENESS: the queries whose micro-batches of the stream can be read again; none if its source
    cannot. Raises NameFault or RuleFault.
    """
    stream, name = context.catalog.stream(statement.name), statement.name
    if stream.watermark is None or not stream.connector:
        raise RuleFault(
            f"the lateness of {stream.name} is not known: it has no "
            + ("watermark" if stream.connector else "source of its own"),
            detail="lateness is measured by the event-time column of a watermark",
            hint="CREATE OR REPLACE STREAM … USING … WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES",
            span=name.span,
            code="MISSING_WATERMARK",
        )
    try:
        check_sources([stream], name.span)
    except RuleFault:
        return Lateness(stream, (), statement.chart)
    queries = tuple(q for q in context.catalog.queries.values() if _reads(q, stream, context))
    if not queries:
        raise RuleFault(
            f"no query has read the stream {stream.name}",
            detail="a row is late against the micro-batches before its own",
            hint=f"CREATE LIVE TABLE name AS SELECT count(*) AS n FROM {quote_name(stream.name)};",
            span=name.span,
            code="NO_QUERY",
        )
    return Lateness(stream, queries, statement.chart)


def _reads(query: Query, stream: Stream, context: Context) -> bool:
    try:
        own = not query.together and not query.inputs
        return own and bool(stream_batches(stream, query, context.sources(counts=False)))
    except StreamsqlError:  # START QUERY tells what is wrong with it
        return False


PLANNERS = {ShowLateness: show_lateness}
