"""A second INSERT into a live table: refused, with both queries as the one that feeds it written out.

The rows of a live table are those of one query: by the numbers of its micro-batches each counts once.
"""

from __future__ import annotations

from dataclasses import replace

from streamsql.definitions import Query, Sink
from streamsql.errors import NameFault, Span, StreamsqlError
from streamsql.language.query import read_query
from streamsql.language.redaction import redact
from streamsql.language.statements.base import Fragment, Name
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context
from streamsql.plan.statements.query_parts import check_streaming, lowered_query
from streamsql.plan.statements.query_run import run_again


def check_one_query(sinks: list[Sink], names: tuple[Name, ...], second: Query, context: Context) -> None:
    """Raise NameFault for a live table that another query feeds already. second: the query of the INSERT;
    names: where its sinks are written.
    """
    for sink, place in zip(sinks, names, strict=True):
        feeding = context.catalog.queries_into(sink.name) if sink.is_live else []
        if feeding:
            raise _refused(sink, feeding[0], second, place.span, context)


def _refused(sink: Sink, first: Query, second: Query, span: Span, context: Context) -> NameFault:
    both = _as_one(sink, first, second, context)
    text = "SELECT …" if second.together else redact(second.text)
    if not both:
        hint = f"CREATE LIVE TABLE another_name AS {text};"
    elif first.live_table:
        hint = both.sql(sink).replace("CREATE LIVE TABLE", "CREATE OR REPLACE LIVE TABLE", 1) + ";"
    else:
        hint = f"DROP QUERY {quote_name(first.name)}; {both.sql(sink)};"
    return NameFault(
        f"the query {first.name} already feeds {sink.name}",
        detail="a live table has the rows of one query",
        hint=hint,
        span=span,
        code="ALREADY_EXISTS",
    )


def _as_one(sink: Sink, first: Query, second: Query, context: Context) -> Query | None:
    """The query that has the rows of both; None if there is none."""
    together = first.together or second.together or len(first.sinks) > 1 or len(second.sinks) > 1
    if together or first.columns != second.columns:
        return None
    both = replace(first, text=f"{_term(first.text)} UNION ALL {_term(second.text)}")
    try:
        if _groups(first, context) != _groups(second, context):
            return None  # no output mode suits groups and single rows
        run_again(both, (sink,), Fragment(both.text), context)
    except StreamsqlError:
        return None
    return both


def _groups(query: Query, context: Context) -> bool:
    body = Fragment(query.text)
    _, lowered = lowered_query(body, (), context)
    check_streaming(lowered, body, context, f"the query {query.name}")
    return bool(lowered.shape.aggregates)


def _term(text: str) -> str:
    """A query as a term of UNION ALL."""
    body = read_query(text).body
    around = body is None or body.ctes or body.order_by or body.sort_by or body.limit or body.offset
    return f"({text.strip()})" if around else text.strip()
