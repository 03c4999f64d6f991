"""Functions written in Python: planning CREATE FUNCTION, and the calls that make Spark know one."""

from __future__ import annotations

import keyword
from collections.abc import Iterable

from streamsql.calls import Assign, Attr, Node, Var
from streamsql.catalog import Catalog, Function
from streamsql.errors import RuleFault, Span
from streamsql.language.query import Query
from streamsql.language.tree_nodes import Call


def module_variable(module: str) -> str:
    """The variable of a program that holds a Python module; no stream's variable ends like that."""
    return module.replace(".", "_") + "_module"


def target_of(function: Function) -> Node:
    """The Python function or class, as an attribute of its module's variable."""
    return Attr(Var(module_variable(function.module)), function.attribute)


def registration(function: Function) -> Assign:
    """The call that makes a scalar, aggregate or table function known to Spark under its name."""
    made, returns, make = target_of(function), function.schema, Var("F")
    if function.kind == "table":
        table = make.call("udtf", made, returnType=returns)
        return Assign("", Var("spark").attr("udtf").call("register", function.name, table))
    if function.form in ("pandas", "arrow"):
        value = make.call(f"{function.form}_udf", made, returns)
    else:
        value = make.call("udf", made, returns, useArrow=function.form == "batched")
    return Assign("", Var("spark").attr("udf").call("register", function.name, value))


def called(calls: Iterable[Call], catalog: Catalog) -> list[tuple[Function, Call]]:
    """The functions written in Python among the calls of a query."""
    if not catalog.functions:
        return []
    known = [(catalog.functions.get(call.name), call) for call in calls]
    return [(function, call) for function, call in known if function is not None]


def has_python_aggregate(calls: Iterable[Call], catalog: Catalog) -> bool:
    """Whether an aggregate function written in Python is among the calls."""
    return any(f.kind == "aggregate" for f, _ in called(calls, catalog))


def refused_on_a_stream(query: Query, catalog: Catalog) -> RuleFault | None:
    """Why a stream does not take a function that a query calls; None when it takes them all."""
    for function, call in called(query.calls, catalog):
        name = query.text[call.span.start : call.span.end]
        if function.kind == "aggregate":
            return _no_streaming_aggregate(name, call.span)
        if function.kind == "table" and call.parted:
            return RuleFault(
                f"the table function {name} cannot be called with PARTITION BY or ORDER BY on a stream",
                detail="Spark would have to sort the rows of a key, and more of them may come",
                hint="leave it out, or write a stateful processor: a class with handleInputRows",
                span=call.span,
            )
    return None


def _no_streaming_aggregate(name: str, span: Span) -> RuleFault:
    """Spark has no partial form of a Python aggregate, so it cannot go on with one in the next
    micro-batch (Spark: "Streaming aggregation doesn't support group aggregate pandas UDF").
    """
    return RuleFault(
        f"the aggregate function {name} is written in Python, which a stream does not take",
        detail="a micro-batch would have to continue the groups of the previous one",
        hint=f"a function over the collected values: {name}(collect_list(x)), annotated for a list;\n"
        "or a stateful processor; or feed a live table and aggregate that",
        span=span,
    )


def is_module_name(text: str) -> bool:
    """Whether a text is a dotted name as Python's import takes it."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split("."))
