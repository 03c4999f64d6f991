"""VERIFY, to its plan: the SELECT of a query as a function of all that its streams have read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.calls import Assign, Call, Node, Program, Var, calls_in, lit
from streamsql.connectors.registry import connector
from streamsql.definitions import Query, Sink, is_staged
from streamsql.errors import RuleFault, Span
from streamsql.features.verify.statement import Verify
from streamsql.language.statements.base import Fragment, Name
from streamsql.language.tokens import quote_name
from streamsql.plan.basic_plans import Plan
from streamsql.plan.context import Context, lower_fragment, reads_of
from streamsql.plan.lowering.late_rows import (
    READER,
    check_sources,
    function_of_rows,
    reading_steps,
)
from streamsql.plan.lowering.shape import Shape
from streamsql.plan.lowering.sources import read_by_spark_alone
from streamsql.plan.plans import Reads
from streamsql.plan.statements.query_parts import as_declared

_WITHIN = "dropDuplicatesWithinWatermark"
"""What Spark does on streams only."""


@dataclass(frozen=True)
class Verification(Plan):
    """VERIFY. program: defines `expected`, the function of the SELECT, and `reader`, a LateRows of the query;
    with inputs, `rest`, the same function over these inputs; for a sink of messages, `messages`, which rows
    become. streams: how many it reads; inputs: those of its first stateful operations, at which rows may be
    late; sessions: whether these are grouped by sessions; sink_rows: the rows of the sink, None where its
    format reads them.
    """

    query: Query
    sink: Sink
    program: Program
    reads: Reads
    streams: int
    inputs: int = 0
    sessions: bool = False
    sink_rows: Node | None = None
    messages: bool = False


def verify(statement: Verify, context: Context) -> Plan:
    """Raises NameFault or RuleFault for a query that cannot be computed again as a batch."""
    query = _query(statement, context)
    span = statement.name.span
    sink = context.catalog.sinks.get(query.sinks[0].casefold())
    _check(query, sink, span, context)
    opaque = read_by_spark_alone(query.text, query.name, span, context.catalog)
    if opaque is not None:
        raise opaque
    assert sink is not None
    if is_staged(query.name):
        context = replace(context, catalog=context.catalog.with_changes())
    sources = context.sources(counts=False)
    lowered = lower_fragment(Fragment(query.text), sources)
    check_sources(sources.bases, span)
    result = as_declared(lowered.node, sink.columns, None, query.columns)
    steps, streams, functions = reading_steps(sources, lowered.shape)
    calls = calls_in((*sources.program, Assign("result", result)))
    sessions = any(op.window == "session_window" for op in lowered.shape.ops)
    within = any(call.method == _WITHIN for call in calls)
    if within or lowered.as_text or sources.views or any(op.kind == "stateful" for op in lowered.shape.ops):
        raise RuleFault(
            f"{query.name} cannot be verified: its SELECT does not run as a batch of DataFrame calls",
            detail="it has WITHIN WATERMARK or a stateful processor, or is sent to Spark as text",
            hint=f"SHOW PROGRESS {quote_name(query.name)};",
            span=span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    folder = query.checkpoint or context.places.checkpoint(query.name)
    arguments = (Var("spark"), lit(folder), result, lit(streams), lit(functions))
    rest = (Assign("rest", function_of_rows(sources, result, lowered.shape)),) if functions else ()
    sink_rows, messages = _read_back(sink)
    program = (
        *sources.program,
        *steps,
        Assign("expected", function_of_rows(sources, result, Shape())),
        *rest,
        *((Assign("messages", messages),) if messages else ()),
        Assign("reader", Call(Var(READER), arguments)),
    )
    reads, count = reads_of(sources), len(functions)
    return Verification(query, sink, program, reads, len(streams), count, sessions, sink_rows, bool(messages))


def _read_back(sink: Sink) -> tuple[Node | None, Node | None]:
    """What gives the rows of a sink, and the function that makes messages of rows."""
    if sink.is_live:
        return None, None
    using = connector(Name(sink.connector))
    return using.read_back(sink), using.messages(sink)


def _query(statement: Verify, context: Context) -> Query:
    if not statement.live_table:
        return context.catalog.query(statement.name)
    table = context.catalog.live_table(statement.name)
    feeding = context.catalog.queries_into(table.name)
    if not feeding:
        raise RuleFault(
            f"no query writes into the live table {table.name}",
            hint=f"INSERT INTO {quote_name(table.name)} SELECT …",
            span=statement.name.span,
            code="NO_QUERY",
        )
    return feeding[0]


def _check(query: Query, sink: Sink | None, span: Span, context: Context) -> None:
    """Raise RuleFault for what cannot be compared."""
    if query.inputs:
        feeding = [q.name for name in query.inputs for q in context.catalog.queries_into(name)]
        raise RuleFault(
            f"{query.name} is computed from live tables, whole, after their micro-batches",
            hint=" ".join(f"VERIFY QUERY {quote_name(name)};" for name in dict.fromkeys(feeding)),
            span=span,
            code="WRONG_KIND",
        )
    if query.together or len(query.sinks) > 1:
        raise RuleFault(
            f"{query.name} cannot be verified: it writes into several sinks",
            hint="INSERT … for each sink",
            span=span,
            code="WRONG_KIND",
        )
    why = _not_read_back(sink)
    if why:
        raise RuleFault(
            f"the rows of {query.name} cannot be verified: {why}",
            detail="live tables, and sinks of files, jdbc and kafka are read back",
            hint=f"CREATE LIVE TABLE name AS {query.text}",
            span=span,
            code="CONNECTOR_NOT_SUPPORTED",
        )


def _not_read_back(sink: Sink | None) -> str:
    """Why the rows of a sink cannot be read back; "" if they can."""
    if sink is None or sink.connector == "table":
        return "a table may hold rows that the query has not written"
    using = connector(Name(sink.connector))
    if sink.is_live or using.keeps_log or using.read_back(sink) is not None:
        return ""
    return using.not_read_back or f"a {sink.connector} sink is not read back"


PLANNERS = {Verify: verify}
