"""Functions written in Python: their registration with Spark, and where streams do not support them."""

from __future__ import annotations

import keyword
from collections.abc import Iterable

from streamsql.calls import Assign, Attr, Node, Var
from streamsql.catalog import Catalog
from streamsql.definitions import Function
from streamsql.errors import RuleFault
from streamsql.language.query import Query
from streamsql.language.tree_nodes import Call


def module_variable(module: str) -> str:
    """The program's variable for a Python module; its ending differs from those of streams."""
    return module.replace(".", "_") + "_module"


def target_of(function: Function) -> Node:
    """The Python function or class: an attribute of its module's variable."""
    return Attr(Var(module_variable(function.module)), function.attribute)


def registration(function: Function) -> Assign:
    """The call that registers a scalar, aggregate or table function with Spark under its name."""
    target, returns, functions = target_of(function), function.schema, Var("F")
    if function.kind == "table":
        table = functions.call("udtf", target, returnType=returns)
        return Assign("", Var("spark").attr("udtf").call("register", function.name, table))
    if function.form in ("pandas", "arrow"):
        value = functions.call(f"{function.form}_udf", target, returns)
    else:
        value = functions.call("udf", target, returns, useArrow=function.form == "batched")
    return Assign("", Var("spark").attr("udf").call("register", function.name, value))


def called(calls: Iterable[Call], catalog: Catalog) -> list[tuple[Function, Call]]:
    """The functions written in Python among the calls of a query."""
    if not catalog.functions:
        return []
    pairs = [(catalog.functions.get(call.name), call) for call in calls]
    return [(function, call) for function, call in pairs if function is not None]


def has_python_aggregate(calls: Iterable[Call], catalog: Catalog) -> bool:
    """Whether an aggregate function written in Python is among the calls."""
    return any(f.kind == "aggregate" for f, _ in called(calls, catalog))


def refused_on_a_stream(query: Query, catalog: Catalog) -> RuleFault | None:
    """The error for a called function that streams do not support; None if there is none."""
    for function, call in called(query.calls, catalog):
        name = query.text[call.span.start : call.span.end]
        if function.kind == "aggregate":
            # Spark has no partial aggregation for it, so it cannot continue one in the next micro-batch
            # (Spark: "Streaming aggregation doesn't support group aggregate pandas UDF").
            return RuleFault(
                f"the aggregate function {name} is written in Python, which is not supported on a stream",
                detail="a micro-batch would have to continue the groups of the previous one",
                hint=f"a function over the collected values: {name}(collect_list(x)), annotated for a list;\n"
                "or a stateful processor; or feed a live table and aggregate that",
                span=call.span,
                code="NOT_ON_STREAMS",
            )
        if function.kind == "table" and call.parted:
            return RuleFault(
                f"the table function {name} cannot be called with PARTITION BY or ORDER BY on a stream",
                detail="Spark would have to sort the rows of a key, and more of them can arrive later",
                hint="omit the clause, or write a stateful processor: a class with handleInputRows",
                span=call.span,
                code="NOT_ON_STREAMS",
            )
    return None


def is_module_name(text: str) -> bool:
    """Whether a text is a valid dotted name for Python's import."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split("."))
