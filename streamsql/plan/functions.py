"""Functions written in Python: planning CREATE FUNCTION, and the calls that make Spark know one."""

from __future__ import annotations

import keyword

from streamsql.calls import Assign, Attr, Node, Var
from streamsql.catalog import Catalog, Function
from streamsql.errors import RuleFault
from streamsql.language import functions
from streamsql.language.tokens import Token


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


def called(tokens: list[Token], catalog: Catalog) -> list[tuple[Function, Token]]:
    """The functions written in Python that a text calls by name, with the places."""
    if not catalog.functions:
        return []
    found = [(catalog.functions.get(name.casefold()), tokens[at]) for name, at in functions.calls(tokens)]
    return [(function, token) for function, token in found if function is not None]


def has_python_aggregate(tokens: list[Token], catalog: Catalog) -> bool:
    """Whether a text calls an aggregate function written in Python."""
    return any(f.kind == "aggregate" for f, _ in called(tokens, catalog))


def refused_on_a_stream(tokens: list[Token], catalog: Catalog) -> RuleFault | None:
    """Why a stream does not take a function that a query calls; None when it takes them all."""
    for function, place in called(tokens, catalog):
        if function.kind == "aggregate":
            return _no_streaming_aggregate(place)
        if function.kind == "table" and _is_parted(tokens, tokens.index(place)):
            return RuleFault(
                f"the table function {place.text} cannot be called with PARTITION BY or ORDER BY on a stream",
                detail="Spark would have to sort the rows of a key, and more of them may come",
                hint="leave it out, or write a stateful processor: a class with handleInputRows",
                span=place.span,
            )
    return None


def _is_parted(tokens: list[Token], call: int) -> bool:
    """Whether a call has PARTITION BY or ORDER BY among its arguments."""
    inside = tokens[call + 2 : functions.closing(tokens, call + 1)]
    depth = 0
    for token in inside:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.upper in ("PARTITION", "ORDER"):
            return True
    return False


def _no_streaming_aggregate(place: Token) -> RuleFault:
    """Spark has no partial form of a Python aggregate, so it cannot go on with one in the next
    micro-batch (Spark: "Streaming aggregation doesn't support group aggregate pandas UDF").
    """
    name = place.text
    return RuleFault(
        f"the aggregate function {name} is written in Python, which a stream does not take",
        detail="a micro-batch would have to go on with the groups of the one before",
        hint=f"a function over the collected values: {name}(collect_list(x)), annotated for a list;\n"
        "or a stateful processor; or feed a live table and aggregate that",
        span=place.span,
    )


def is_module_name(text: str) -> bool:
    """Whether a text is a dotted name as Python's import takes it."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split("."))
