"""The console relations that become variables of the program: states, stateful processors, pivots."""

from __future__ import annotations

from streamsql.language.console_clauses import fault_of_call
from streamsql.language.query import Query
from streamsql.plan.lowering.late_rows import lower_late_rows
from streamsql.plan.lowering.pivots import lower_pivot
from streamsql.plan.lowering.python_functions import called
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
    for function, call in called(query.calls, sources.catalog):
        inside = any(own.span.start <= call.span.start < own.span.end for own in query.own)
        if not inside and (function.kind == "processor" or (not function.kind and call.parted)):
            fault = fault_of_call(query.tokens, call)
            fault.hint = fault.hint or f"{function.name}(TABLE(stream) PARTITION BY key)"
            raise fault
