"""The parts of a query before it is planned: its SELECT, its sources, its sinks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.calls import Assign, Function, Node, Var, expr
from streamsql.catalog import Sink
from streamsql.errors import NameFault, RuleFault
from streamsql.language.statements.base import Column, Fragment, Name, Trigger
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context, lower_fragment, stream_hint
from streamsql.plan.lowering.lower import Lowered
from streamsql.plan.lowering.sources import Sources
from streamsql.plan.plans import Target


@dataclass(frozen=True)
class QueryParts:
    """The parts of a query: its text, the sources with the program up to the result, the result, its sinks,
    and the functions that compute the rows of each sink from the result.
    """

    body: Fragment
    sources: Sources
    result: Lowered
    targets: tuple[Target, ...]
    functions: tuple[Assign, ...] = ()


def one_result(body: Fragment, sinks: tuple[Sink, ...], sources: Sources, lowered: Lowered) -> QueryParts:
    """The parts of a query with one SELECT for one or more sinks."""
    if len(sinks) == 1:
        result = replace(lowered, node=as_declared(lowered.node, sinks[0].columns))
        return QueryParts(body, sources, result, (Target(sinks[0], lowered.shape),))
    targets, functions = [], []
    for sink in sinks:
        select = ""
        if sink.columns:
            select = sources.free_variable(f"rows_for_{sink.name}")
            functions.append(Assign(select, Function(("rows",), (), as_declared(Var("rows"), sink.columns))))
        targets.append(Target(sink, lowered.shape, select))
    return QueryParts(body, sources, lowered, tuple(targets), tuple(functions))


def as_declared(node: Node, columns: tuple[Column, ...]) -> Node:
    """A result with the column names and types that its sink declares."""
    if not columns:
        return node
    return node.call("toDF", *(c.name for c in columns)).call(
        "select",
        *(expr(f"CAST({quote_name(c.name)} AS {c.type}) AS {quote_name(c.name)}") for c in columns),
    )


def streaming_query(body: Fragment, sources: Sources, context: Context, whose: str) -> Lowered:
    lowered = lower_fragment(body, sources)
    if not lowered.shape.streaming:
        raise RuleFault(
            f"{whose} reads no stream",
            hint=stream_hint(body.text, context) or "CREATE STREAM … first, or query the table with SELECT",
            span=body.span,
            code="NO_STREAM",
        )
    return lowered


def query_sources(context: Context, trigger: Trigger | None) -> Sources:
    """The sources of a query with that trigger. CONTINUOUS cannot count malformed messages."""
    counts = trigger is None or trigger.kind != "continuous"
    return context.sources(counts=counts)


def no_checkpoint(checkpoint: Name) -> RuleFault:
    return RuleFault(
        "a live table takes no CHECKPOINT",
        detail="the console keeps its rows, so another checkpoint would not match them",
        hint="omit CHECKPOINT: the console creates one",
        span=checkpoint.span,
    )


def check_query_free(name: Name, context: Context, sink: str = "") -> None:
    query = context.catalog.queries.get(name.value.casefold())
    if query is not None:
        raise NameFault(
            f"there is already a query {query.name}, which writes to {query.sink}",
            hint=(f"INSERT INTO {sink} AS QUERY another_name …, or " if sink else "")
            + f"DROP QUERY {query.name};",
            span=name.span,
            code="ALREADY_EXISTS",
        )
