"""Whether an expression has few different values, whatever the data are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamsql.language.expression import Expression
from streamsql.language.tree_nodes import bare, exp_module, name_of

_PARTS_OF_TIME = frozenset(
    "hour minute second month quarter dayofweek weekday dayofmonth day dayname monthname weekofyear".split()
)


def has_few_values(expression: Expression, type_of: Callable[[str], str]) -> bool:
    """True for a condition, a BOOLEAN column, a CASE or IF whose results are such values or literals, and a
    part of a time, such as hour(at). type_of: the type of a column, folded, "" if not known.
    """
    return _few(expression.tree, expression, type_of)


def _few(tree: Any, of: Expression, type_of: Callable[[str], str]) -> bool:
    exp, tree = exp_module(), bare(tree)
    if isinstance(tree, exp.Column):
        return type_of(of.under(tree).column_name) == "BOOLEAN"
    if isinstance(tree, exp.Case):
        results = [branch.args.get("true") for branch in tree.args["ifs"]] + [tree.args.get("default")]
    elif isinstance(tree, exp.If):
        results = [tree.args.get("true"), tree.args.get("false")]
    else:
        kinds = (exp.Literal, exp.Null, exp.Boolean, exp.Predicate, exp.Connector, exp.Not)
        return isinstance(tree, kinds) or name_of(tree, of.source).casefold() in _PARTS_OF_TIME
    return all(result is None or _few(result, of, type_of) for result in results)
