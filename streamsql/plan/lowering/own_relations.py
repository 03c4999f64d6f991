"""The console's own relations of a query that become variables of the program: states, stateful
processors.
"""

from __future__ import annotations

from streamsql.language.console_clauses import fault_of_call
from streamsql.language.query import Query
from streamsql.plan.lowering.python_functions import called
from streamsql.plan.lowering.sources import Sources
from streamsql.plan.lowering.state_tables import lower_state
from streamsql.plan.lowering.stateful_calls import lower_call


def lower_own_relations(query: Query, sources: Sources) -> dict[str, str]:
    """Lower each; the name that stands for it in the query → the name under which sources knows it.

    A window table is lowered where it stands, and a call of a table function is left to Spark. Raises placed
    faults.
    """
    _check_calls(query, sources)
    names: dict[str, str] = {}
    for own in query.own:
        if own.kind == "StateTable":
            names[own.name] = lower_state(own, sources)
    for own in query.own:
        if own.kind == "StatefulCall" and (name := lower_call(own, query, sources)):
            names[own.name] = name
    return names


def _check_calls(query: Query, sources: Sources) -> None:
    """Raise a placed SyntaxFault for a stateful processor that is not called as one."""
    for function, call in called(query.calls, sources.catalog):
        inside = any(own.span.start <= call.span.start < own.span.end for own in query.own)
        if not inside and (function.kind == "processor" or (not function.kind and call.parted)):
            fault = fault_of_call(query.tokens, call)
            fault.hint = fault.hint or f"{function.name}(TABLE(stream) PARTITION BY key)"
            raise fault
