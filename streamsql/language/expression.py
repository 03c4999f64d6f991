"""A scalar expression of a query: its text, its position and its sqlglot tree.

All properties (is it a column, an aggregation, a comparison, a call) come from the tree, never from the text.
They do not include sub-queries inside the expression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from streamsql.errors import Span
from streamsql.language import sqlglot_nodes as exp
from streamsql.language.tree_nodes import (
    Holds,
    aggregates_outside,
    arguments_of,
    bare,
    free_columns,
    holds,
    is_named,
    is_number,
    leaves_of,
    name_of,
    normal_form,
    span_of,
    widened,
)

TIME_WINDOWS = frozenset({"window", "session_window"})
"""Spark's grouping functions of event time (Spark guide, "Types of time windows")."""
WINDOW_TYPE = "STRUCT<start: TIMESTAMP, end: TIMESTAMP>"
"""The type of their values."""
MOST_ROWS = 2**31 - 1
_WHOLE = frozenset("TINYINT BYTE SMALLINT SHORT INT INTEGER BIGINT LONG".split())
_PARTS_OF_TIME = frozenset(
    "hour minute second month quarter dayofweek weekday dayofmonth day dayname monthname weekofyear".split()
)


@dataclass(frozen=True)
class Expression:
    """source: the text of the whole query; span: the expression's place in it; tree: sqlglot's node."""

    source: str = field(repr=False, compare=False)
    span: Span
    tree: Any = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        return self.source[self.span.start : self.span.end]

    # ---- the kind of expression
    @property
    def column(self) -> tuple[str, str] | None:
        """(qualifier, name) as written, for a plain column `k` or `t.k`; None for other expressions."""
        tree = self.tree
        if not isinstance(tree, exp.Column) or tree.args.get("db") or not is_named(tree.this):
            return None
        return tree.table, tree.name

    @property
    def column_name(self) -> str:
        """The case-folded name of a plain column; empty for other expressions."""
        column = self.column
        return column[1].casefold() if column else ""

    @property
    def output_name(self) -> str:
        """The name of the output column, if the expression is a plain column (`a.b.c` gives c)."""
        tree = self.tree
        while isinstance(tree, exp.Dot):
            tree = tree.expression
        plain = isinstance(tree, (exp.Column, exp.Identifier)) and is_named(tree.this)
        return str(tree.name) if plain else ""

    @property
    def is_star(self) -> bool:
        """Whether it is `*` or `t.*`, with or without EXCEPT."""
        tree = self.tree
        return isinstance(tree, exp.Star) or (
            isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star)
        )

    @property
    def is_predicate(self) -> bool:
        """Whether it is a comparison, AND, OR, NOT or the like."""
        return isinstance(bare(self.tree), (exp.Predicate, exp.Connector, exp.Not))

    @property
    def whole_number(self) -> int | None:
        """The value of an integer literal, as Spark accepts it for LIMIT and ordinals; else None."""
        text = self.text
        plain = text.isascii() and text.isdigit() and len(text) <= 10
        return int(text) if plain and int(text) <= MOST_ROWS else None

    @property
    def literal(self) -> int | str | None:
        """The value of an INT or BIGINT literal, or of a string without escapes; else None."""
        tree = bare(self.tree)
        if isinstance(tree, exp.Neg) and is_number(tree.this):
            number = self._part(tree.this).literal
            return -number if isinstance(number, int) else None
        if not isinstance(tree, exp.Literal) or not leaves_of(tree):
            return None
        place = span_of(tree)
        written, value = self.source[place.start : place.end], str(tree.this)
        if not tree.is_string:
            return int(value) if value == written and value.isdigit() and len(value) <= 18 else None
        plain = "\\" not in value and written in (f"'{value}'", f'"{value}"')
        return value if plain and not {"'", '"'} & set(value) else None

    @property
    def ordinal(self) -> int | None:
        """The ordinal of a SELECT item, for `2` or `(2)`; else None."""
        return (
            replace(self, tree=tree, span=span_of(tree)).whole_number
            if is_number(tree := bare(self.tree))
            else None
        )

    @property
    def call(self) -> str:
        """The function's name, such as `window` for `window(ts, '5 minutes')`; empty if it is not a call."""
        return name_of(self.tree, self.source)

    @property
    def field(self) -> tuple[Expression, str] | None:
        """The call and the case-folded name of a field of its value: `window(ts, '1 minute').start`."""
        tree = self.tree
        if not isinstance(tree, exp.Dot) or not is_named(tree.expression):
            return None
        of = self._part(tree.this)
        return (of, tree.expression.name.casefold()) if of.call else None

    def arguments(self) -> list[Expression]:
        """The arguments of the call."""
        return [self._part(a) for a in arguments_of(self.tree)]

    def same(self, other: Expression) -> bool:
        """Whether both are the same expression, ignoring case, spaces and outer parentheses."""
        return self.normal == other.normal

    @cached_property
    def normal(self) -> str:
        return normal_form(self.tree, self.source)

    # ---- contents
    @cached_property
    def _holds(self) -> Holds:
        return holds(self.tree, self.source)

    @property
    def aggregates(self) -> bool:
        """Whether it contains an aggregate function (without OVER)."""
        return self._holds.aggregate

    @property
    def aggregates_distinct(self) -> bool:
        """Whether it aggregates distinct values: `count(DISTINCT x)`."""
        return self._holds.distinct

    @property
    def has_window_function(self) -> bool:
        return self._holds.window

    @property
    def generates(self) -> bool:
        """Whether it contains a generator such as `explode(…)`, which returns several rows for one."""
        return self._holds.generator

    @property
    def asks_the_time(self) -> bool:
        """Whether it depends on the current time: `now()`, `CURRENT_DATE`."""
        return self._holds.clock

    @property
    def has_subquery(self) -> bool:
        return self._holds.subquery

    @property
    def aggregates_outside(self) -> bool:
        """Whether it has a query that aggregates columns of the query around it."""
        return self.has_subquery and aggregates_outside(self.tree, self.source)

    def column_names(self) -> frozenset[str]:
        """The case-folded names of its columns (the last part of a dotted name)."""
        names = {n.name.casefold() for n in self.tree.find_all(exp.Column) if is_named(n.this)}
        dotted = {n.expression.name.casefold() for n in self.tree.find_all(exp.Dot)}
        return frozenset(names | dotted)

    def references(self) -> list[tuple[str, str]]:
        """(qualifier, column), case-folded, of each of its columns."""
        references = []
        for node in self.tree.find_all(exp.Column):
            if is_named(node.this):
                outer = node.parent
                if isinstance(outer, exp.Dot):
                    references.append(("?", node.name.casefold()))  # a field of a struct
                else:
                    references.append((node.table.casefold(), node.name.casefold()))
        return references

    def columns(self) -> list[tuple[str, str, Span]]:
        """(qualifier, column), case-folded, and the position of each of its columns."""
        nodes = [n for n in self.tree.find_all(exp.Column) if is_named(n.this) and leaves_of(n)]
        return [(n.table.casefold(), n.name.casefold(), span_of(n)) for n in nodes]

    def free_columns(self) -> list[tuple[str, str, Span]]:
        """As columns(), of those that free_columns of tree_nodes gives."""
        return [(of, name, span_of(node)) for of, name, node in free_columns(self.tree)]

    # ---- conditions

    def conjuncts(self) -> list[Expression]:
        """The conditions joined by AND."""
        tree = bare(self.tree)
        if isinstance(tree, exp.And):
            return [c for side in (tree.left, tree.right) for c in self._part(side).conjuncts()]
        return [self._part(tree) if tree is not self.tree else self]

    def comparisons(self) -> list[tuple[Expression, str, Expression]]:
        """The comparisons of a condition as (a, "=" or "<", b); `<` also stands for `<=`. Empty for other
        conditions. BETWEEN gives two comparisons.
        """
        tree = bare(self.tree)
        if isinstance(tree, exp.And):
            return [c for part in self.conjuncts() for c in part.comparisons()]
        if isinstance(tree, exp.Between):
            middle = self._part(tree.this)
            low, high = self._part(tree.args["low"]), self._part(tree.args["high"])
            return [(low, "<", middle), (middle, "<", high)]
        if not isinstance(tree, (exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)):
            return []
        left, right = self._part(tree.left), self._part(tree.right)
        if isinstance(tree, (exp.GT, exp.GTE)):
            return [(right, "<", left)]
        return [(left, "<" if isinstance(tree, (exp.LT, exp.LTE)) else "=", right)]

    def terms(self, sign: int = 1) -> list[tuple[int, Expression]]:
        """The terms of a sum, each with its sign."""
        tree = bare(self.tree)
        if isinstance(tree, (exp.Add, exp.Sub)):
            right = sign if isinstance(tree, exp.Add) else -sign
            return [*self._part(tree.left).terms(sign), *self._part(tree.right).terms(right)]
        if isinstance(tree, exp.Neg):
            return self._part(tree.this).terms(-sign)
        return [(sign, self._part(tree))]

    def divisions(self) -> list[tuple[Expression, Expression, Expression]]:
        """(whole, left, right) of each division with `/` in it."""
        nodes = self.tree.find_all(exp.Div)
        return [(self._part(n), self._part(n.left), self._part(n.right)) for n in nodes]

    def is_whole(self, type_of: Callable[[str], str]) -> bool:
        """Whether it is certainly a whole number. type_of: the type of a column, folded, "" if not known."""
        tree = bare(self.tree)
        if isinstance(tree, exp.Column):
            return type_of(self._part(tree).column_name) in _WHOLE
        if isinstance(tree, exp.Literal):
            return self._part(tree).whole_number is not None
        if isinstance(tree, (exp.Add, exp.Sub, exp.Mul, exp.Mod)):
            return all(self._part(side).is_whole(type_of) for side in (tree.left, tree.right))
        if isinstance(tree, (exp.Sum, exp.Max, exp.Min)):
            return self._part(tree.this).is_whole(type_of)
        return isinstance(tree, exp.Count)

    def has_few_values(self, type_of: Callable[[str], str]) -> bool:
        """Whether it has few different values, whatever the data are: a condition, a BOOLEAN column, a CASE
        or IF whose results are such values or literals, a part of a time, such as hour(at). type_of: as for
        is_whole.
        """
        tree = bare(self.tree)
        if isinstance(tree, exp.Column):
            return type_of(self._part(tree).column_name) == "BOOLEAN"
        if isinstance(tree, exp.Case):
            results = [branch.args.get("true") for branch in tree.args["ifs"]] + [tree.args.get("default")]
        elif isinstance(tree, exp.If):
            results = [tree.args.get("true"), tree.args.get("false")]
        else:
            kinds = (exp.Literal, exp.Null, exp.Boolean, exp.Predicate, exp.Connector, exp.Not)
            return isinstance(tree, kinds) or name_of(tree, self.source) in _PARTS_OF_TIME
        return all(result is None or self._part(result).has_few_values(type_of) for result in results)

    @property
    def is_call(self) -> bool:
        """Whether it contains a function call."""
        return any(name_of(n, self.source) for n in self.tree.walk())

    def bare_column(self) -> tuple[str, str] | None:
        """(qualifier, name), case-folded, of a plain column, ignoring parentheses; else None."""
        column = self._part(bare(self.tree)).column
        return (column[0].casefold(), column[1].casefold()) if column else None

    def wanted_first(self) -> Expression | None:
        """The expression that a condition requires to be 1: x in `x = 1`, `1 = x`, `x <= 1` and `x < 2`;
        else None.
        """
        tree = bare(self.tree)
        if not isinstance(tree, (exp.EQ, exp.LTE, exp.LT, exp.GTE, exp.GT)):
            return None
        right = {exp.EQ: "1", exp.LTE: "1", exp.LT: "2"}.get(type(tree))
        left = {exp.EQ: "1", exp.GTE: "1", exp.GT: "2"}.get(type(tree))
        if right and is_number(tree.right) and tree.right.name == right:
            return self._part(tree.left)
        if left and is_number(tree.left) and tree.left.name == left:
            return self._part(tree.right)
        return None

    def row_number(self) -> RowNumber | None:
        """The parts of row_number() OVER (PARTITION BY … ORDER BY …); None for other expressions."""
        window = self.tree
        if not isinstance(window, exp.Window) or not isinstance(window.this, exp.RowNumber):
            return None
        keys, order = window.args.get("partition_by") or [], window.args.get("order")
        if not keys or order is None or window.args.get("spec"):
            return None
        return RowNumber(
            tuple(self._part(k) for k in keys),
            tuple(Ordering(self._part(o.this), bool(o.args.get("desc"))) for o in order.expressions),
        )

    def parts_like(self, other: Expression) -> list[Expression]:
        """The sub-expressions that are the same as another, in the order of their places."""
        alike = (self._part(node) for node in self.tree.find_all(type(other.tree)))
        return sorted((p for p in alike if p.same(other)), key=lambda p: p.span.start)

    def _part(self, tree: Any) -> Expression:
        return replace(self, tree=tree, span=widened(self.source, span_of(tree, self.span)))


@dataclass(frozen=True)
class Ordering:
    expression: Expression
    descending: bool


@dataclass(frozen=True)
class RowNumber:
    """A row_number() OVER (…)."""

    keys: tuple[Expression, ...]
    order: tuple[Ordering, ...]

    def same(self, other: RowNumber | None) -> bool:
        def form(number: RowNumber) -> tuple[Any, ...]:
            order = [(o.expression.normal, o.descending) for o in number.order]
            return [k.normal for k in number.keys], order

        return other is not None and form(self) == form(other)
