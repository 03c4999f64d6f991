"""The parts of a query before it is planned: its SELECT, its sources, its sinks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from streamsql.calls import Assign, Function, Node, Var, expr
from streamsql.definitions import Query, Sink
from streamsql.errors import NameFault, RuleFault, Span, did_you_mean
from streamsql.language.statements.base import Column, Fragment, Name, QueryClauses, Trigger
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context, lower_fragment, unknown_stream
from streamsql.plan.lowering.lower import Lowered
from streamsql.plan.lowering.shape import IN_RESULT, Shape
from streamsql.plan.lowering.sources import Sources
from streamsql.plan.plans import Target
from streamsql.plan.streaming import rules


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


def one_result(
    body: Fragment,
    sinks: tuple[Sink, ...],
    sources: Sources,
    lowered: Lowered,
    given: tuple[str, ...] = (),
) -> QueryParts:
    """One SELECT for one sink or several. given: the columns of the one sink that INSERT names."""
    if len(sinks) == 1:
        columns = sinks[0].columns
        node = as_declared(lowered.node, columns, lowered.shape, given)
        result = replace(lowered, node=node, shape=shape_as_declared(lowered.shape, columns, given))
        return QueryParts(body, sources, result, (Target(sinks[0], result.shape),))
    targets, functions = [], []
    for sink in sinks:
        select = ""
        if sink.columns:
            select = sources.free_variable(f"rows_for_{sink.name}")
            functions.append(Assign(select, Function(("rows",), (), as_declared(Var("rows"), sink.columns))))
        targets.append(Target(sink, lowered.shape, select))
    return QueryParts(body, sources, lowered, tuple(targets), tuple(functions))


def query_of(statement: QueryClauses, name: str, sinks: tuple[str, ...], text: str, **more: Any) -> Query:
    """The query that a statement starts, with its clauses. more: further fields."""
    return Query(
        name,
        sinks,
        text,
        statement.output_mode.value if statement.output_mode else "",
        statement.trigger,
        statement.checkpoint.value if statement.checkpoint else "",
        restart=statement.restart,
        late=statement.late.value if statement.late else "",
        **more,
    )


def as_declared(
    node: Node, columns: tuple[Column, ...], shape: Shape | None = None, given: tuple[str, ...] = ()
) -> Node:
    """A result under the names and types that its sink declares. shape: its hidden columns stay; given: the
    columns that INSERT names; the others are NULL.
    """
    given = given or tuple(c.name for c in columns)
    if not given:
        return node
    hidden = shape.hidden if shape else ()
    flag = (IN_RESULT,) if shape and shape.has_flag else ()
    node = node.call("toDF", *hidden, *given, *flag)
    if not columns:
        return node
    given_names = {name.casefold() for name in given}
    values = [
        f"CAST({quote_name(c.name) if c.name.casefold() in given_names else 'NULL'} AS {c.type})"
        for c in columns
    ]
    return node.call(
        "select",
        *map(expr, hidden),
        *(expr(f"{value} AS {quote_name(c.name)}") for value, c in zip(values, columns, strict=True)),
        *map(expr, flag),
    )


def shape_as_declared(shape: Shape, columns: tuple[Column, ...], given: tuple[str, ...] = ()) -> Shape:
    """The shape of a result under the names that its sink declares (given: as in `as_declared`)."""
    given = given or tuple(c.name for c in columns)
    if not given:
        return shape
    current = [c.casefold() for c in shape.columns or shape.items]
    names = dict(zip(current, given, strict=True)) if len(current) == len(given) else {}
    renamed = shape.with_keys(lambda key: key if key in shape.hidden else names.get(key.casefold()))
    return replace(renamed, columns=tuple(c.name for c in columns) or given)


def lowered_query(
    body: Fragment,
    sinks: tuple[Sink, ...],
    context: Context,
    mode: str = "",
    trigger: Trigger | None = None,
    given: tuple[str, ...] = (),
) -> tuple[Sources, Lowered]:
    """The sources and the result of a query. A live table of its own, in output mode update, gets the keys of
    the groups that are not selected as hidden columns (lowering/hidden_keys.py).

    mode, trigger: as written; given: as in `one_result`.
    """
    if len(sinks) == 1 and sinks[0].keeps_groups and not sinks[0].key and mode in ("", "update"):
        sources = query_sources(context, trigger)
        sources.keeps_keys, sources.hides_all = True, bool(sinks[0].columns or given)
        lowered = lower_fragment(body, sources)
        shape = lowered.shape
        can_update = shape.complete and not shape.loses_groups and rules.verdict(shape, "update") is None
        if not sources.keeps_hidden or ((shape.hidden or shape.has_flag) and can_update):
            return sources, lowered
    sources = query_sources(context, trigger)
    return sources, lower_fragment(body, sources)


def check_streaming(
    lowered: Lowered, body: Fragment, context: Context, whose: str, hint: str = "", instead: str = ""
) -> None:
    """Raise RuleFault for a query that reads no stream, NameFault if a stream may be misspelt. whose: the
    query, for the message; hint: what to do; instead: the statement that does the same for tables.
    """
    if not lowered.shape.streaming:
        hint = hint or "CREATE STREAM … first, or query the table with SELECT"
        shown = "" if instead else hint
        raise unknown_stream(body, context, hint) or RuleFault(
            f"{whose} reads no stream", hint=shown, proposal=instead, span=body.span, code="NO_STREAM"
        )


def query_sources(context: Context, trigger: Trigger | None) -> Sources:
    """The sources of a query with that trigger. CONTINUOUS cannot count malformed messages, and REAL TIME
    does not measure event times.
    """
    kind = trigger.kind if trigger else ""
    context = replace(context, times=context.times and kind != "real_time")
    return context.sources(counts=kind != "continuous", batched=kind not in ("continuous", "real_time"))


def check_keys(targets: tuple[Target, ...], span: Span) -> None:
    """A sink's KEY is among the columns that it gets, and tells its rows apart. Raises NameFault at the
    query, RuleFault at its GROUP BY.
    """
    for target in targets:
        _check_grouping_sets(target, span)
        columns = tuple(c.name for c in target.sink.columns) or target.shape.columns or ()
        column_names = {c.casefold() for c in columns}
        missing = [k for k in target.sink.key if k.casefold() not in column_names] if columns else []
        if missing:
            raise NameFault(
                f"the KEY of {target.sink.name}, {', '.join(missing)}, is not a column of this query",
                hint=did_you_mean(missing[0], columns) or f"columns: {', '.join(columns)}",
                span=span,
                code="UNKNOWN_COLUMN",
            )


def _check_grouping_sets(target: Target, span: Span) -> None:
    """A KEY tells a total apart from the group whose keys are NULL. Raises RuleFault at the grouping."""
    keys = {k.casefold() for k in target.sink.key}
    op = next((op for op in reversed(target.shape.aggregates) if op.several), None)
    distinguished = (
        op is not None
        and op.grouping_columns
        and (target.sink.columns or keys & {name.casefold() for name in op.grouping_columns})
    )
    if not keys or op is None or distinguished:
        return
    listed = ", ".join(map(quote_name, target.sink.key))
    raise RuleFault(
        f"the KEY of {target.sink.name} does not tell a total from the group whose keys are NULL",
        detail="ROLLUP, CUBE and GROUPING SETS give NULL for the keys by which a row is not grouped",
        hint=f"SELECT grouping_id() AS level, …; and a sink with KEY ({listed}, level)",
        span=op.span or span,
        code="AMBIGUOUS_KEY",
    )


def no_checkpoint(checkpoint: Name) -> RuleFault:
    return RuleFault(
        "a live table takes no CHECKPOINT",
        detail="the console keeps its rows, so another checkpoint would not match them",
        hint="omit CHECKPOINT: the console creates one",
        span=checkpoint.span,
        code="CLAUSE_NOT_SUPPORTED",
    )


def no_late_rows(late: Name) -> RuleFault:
    return RuleFault(
        "ON LATE INTO needs a stream, and this query reads live tables only",
        hint="leave ON LATE INTO out",
        span=late.span,
        code="CLAUSE_NOT_SUPPORTED",
    )


def check_query_free(name: Name, context: Context, sink: str = "") -> None:
    query = context.catalog.queries.get(name.value.casefold())
    if query is not None:
        raise NameFault(
            f"there is already a query {query.name}, which writes to {query.sink}",
            hint=(f"INSERT INTO {sink} AS QUERY another_name …, or " if sink else "")
            + f"DROP QUERY {quote_name(query.name)};",
            span=name.span,
            code="ALREADY_EXISTS",
        )
