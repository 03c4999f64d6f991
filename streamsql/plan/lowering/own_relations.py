"""The console relations that become variables of the program: states, stateful processors, pivots."""

from __future__ import annotations

from streamsql.calls import call, expr
from streamsql.errors import RuleFault
from streamsql.language.console_clauses import fault_of_call
from streamsql.language.origin import Origin
from streamsql.language.query import ConsoleRelation, Query, read_query
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.late_rows import lower_late_rows
from streamsql.plan.lowering.python_functions import called
from streamsql.plan.lowering.shape import Shape
from streamsql.plan.lowering.sources import Sources
from streamsql.plan.lowering.state_tables import lower_state
from streamsql.plan.lowering.stateful_calls import lower_call


def lower_own_relations(query: Query, sources: Sources) -> dict[str, str]:
    """Lower each console relation. Returns its replacement in the query → its name in sources.

    Window tables are lowered with FROM, and calls of other table functions are left to Spark. Raises faults
    with spans.
    """
    _check_calls(query, sources)
    names: dict[str, str] = {}
    for own in query.own:
        if own.kind == "StateTable":
            names[own.name] = lower_state(own, sources)
        if own.kind == "LateTable":
            names[own.name] = lower_late_rows(own, sources)
        if own.kind == "PivotTable":
            names[own.name] = lower_pivot(own, query, sources)
    for own in query.own:
        if own.kind == "StatefulCall" and (name := lower_call(own, query, sources)):
            names[own.name] = name
    return names


def _check_calls(query: Query, sources: Sources) -> None:
    """Raise SyntaxFault, with its span, for an invalid call of a stateful processor."""
    for function, written in called(query.calls, sources.catalog):
        inside = any(own.span.start <= written.span.start < own.span.end for own in query.own)
        if not inside and (function.kind == "processor" or (not function.kind and written.parted)):
            fault = fault_of_call(query.tokens, written)
            fault.hint = fault.hint or f"{function.name}(TABLE(stream) PARTITION BY key)"
            raise fault


PIVOTED = "pivoted"
"""The helper that asks for the values."""


def lower_pivot(own: ConsoleRelation, query: Query, sources: Sources) -> str:
    """Define a PIVOT without IN as a variable of the program. Returns its name in sources. Raises RuleFault
    over a stream, whose values are not known.
    """
    pivot, alias = own.node.get("OpenPivot"), own.node.get("RelationAlias")
    assert pivot
    values, column = pivot.get("PivotValues"), pivot.get("ColumnName")
    assert values and column
    start, ctes = own.span.start, query.body.ctes if query.body else ()
    head = f"{query.text[: ctes[-1].span.end]} SELECT * FROM " if ctes else "SELECT * FROM "
    with Origin(((len(head), start),)).errors():
        frame, shape = sources.lower(head + query.text[start : pivot.span.start], sources)
    aggregates = query.text[values.span.start : values.span.end]
    if shape.streaming:
        raise RuleFault(
            "PIVOT without IN over a stream is not supported",
            detail="the columns of a query over a stream are known when it starts, before its rows",
            hint=f"PIVOT ({aggregates} FOR {column.value} IN ('a', 'b', …)), with the values",
            span=pivot.span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    listed = f"SELECT {aggregates}"
    body = read_query(listed).body
    block = body.block if body else None
    if block is None:
        raise RuleFault(
            "the aggregates of this PIVOT cannot be read",
            hint=f"PIVOT ({aggregates} FOR {column.value} IN ('a', 'b', …)) is left to Spark",
            span=values.span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    named = own.node.get("RelationName")
    relation = (alias.value if alias else named.value.rpartition(".")[2] if named else "").casefold()
    # A qualifier is the relation, or a column that is a struct.
    first, _, rest = column.value.partition(".")
    path = rest if rest and first.casefold() == relation else column.value
    used = {path.partition(".")[0].casefold()}
    for item in block.items:
        columns = item.expression.free_columns()
        used |= {name if of in ("", relation) else of for of, name, _ in columns}
    texts = [listed[item.span.start : item.span.end] for item in block.items]
    node = call(PIVOTED, frame, quote_name(path), sorted(used), *map(expr, texts))
    return sources.define("pivot", node, Shape())
