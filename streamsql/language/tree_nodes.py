"""Properties of sqlglot's nodes: function calls, aggregation, position."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from streamsql.errors import Span
from streamsql.language import sqlglot_nodes as exp
from streamsql.language.reference import functions, keywords
from streamsql.language.tokens import tokenize


@cache
def names_of_kind(kind: str) -> frozenset[str]:
    """The functions of that kind in Spark's reference: agg, generator, window, …"""
    return frozenset(name for name, function in functions().items() if function.kind == kind)


@dataclass(frozen=True)
class Call:
    """A function call: its name, case-folded, and the position of the name in the text of the query.

    parted: whether its arguments contain PARTITION BY or ORDER BY, as those of a table function can.
    """

    name: str
    span: Span
    parted: bool = False


@dataclass(frozen=True)
class Holds:
    """The contents of an expression, collected in one walk; of sub-queries only whether there is one."""

    aggregate: bool = False
    distinct: bool = False
    window: bool = False
    generator: bool = False
    clock: bool = False
    subquery: bool = False


def names_word(tree: Any, word: str) -> bool:
    """Whether a word that Spark reserves for a clause stands in a tree as a name without backticks."""
    names = tree.find_all(exp.Identifier)
    return any(not name.quoted and name.name.upper() == word for name in names)


def holds(tree: Any, source: str) -> Holds:
    """The contents of an expression. tree: its node; source: the text that the nodes' positions refer to."""
    queries = (exp.Select, exp.SetOperation)
    aggregate = distinct = window = generator = clock = subquery = False
    for node in tree.walk(prune=lambda n: isinstance(n, queries)):
        if isinstance(node, queries):
            subquery = True
        elif isinstance(node, exp.Column):
            clock = clock or _is_clock_word(node)
        elif isinstance(node, (exp.Identifier, exp.Literal)):
            continue
        elif isinstance(node, exp.Distinct):
            distinct = True
        elif isinstance(node, exp.Window):
            window = True
        else:
            name = name_of(node, source)
            aggregate = aggregate or (is_aggregate(node, source) and not is_windowed(node))
            generator = generator or name in names_of_kind("generator")
            clock = clock or is_clock(node, source)
    return Holds(aggregate, distinct, window, generator, clock, subquery)


def aggregates_outside(tree: Any, source: str) -> bool:
    """Whether a sub-query aggregates columns of the query around it: it does so in a WHERE."""
    conditions = [where for select in tree.find_all(exp.Select) if (where := select.args.get("where"))]
    return any(is_aggregate(n, source) for c in conditions for n in c.walk() if n.parent_select is c.parent)


def calls_in(nodes: Iterable[Any], source: str) -> list[Call]:
    """The function calls among the nodes of a tree, in the order of the text."""
    calls = []
    for node in nodes:
        name = name_of(node, source)
        if name:
            start = node.meta["start"]
            calls.append(Call(name, Span(start, node.meta["end"] + 1)))
    return sorted(calls, key=lambda c: c.span.start)


def is_aggregate(node: Any, source: str) -> bool:
    """Whether a node is a call of an aggregate function of Spark."""
    name = name_of(node, source)
    if name:
        return name in names_of_kind("agg")
    # sqlglot records no position for the few functions that it parses by special rules. LIKE ANY (…) is none.
    if isinstance(node, exp.Any):
        return not isinstance(node.parent, (exp.Like, exp.ILike)) and not isinstance(node.this, exp.Query)
    return isinstance(node, exp.AggFunc) and not isinstance(node, exp.CombinedAggFunc)


@cache
def clock_functions() -> frozenset[str]:
    """The functions of Spark's reference that give the current time, whatever their arguments."""
    meant = "at the start of query evaluation"
    return frozenset(name for name, function in functions().items() if meant in function.meaning)


def is_clock(node: Any, source: str) -> bool:
    """Whether a node is a call that gives the current time."""
    name = name_of(node, source)
    if not name and isinstance(node, exp.Func):  # CURRENT_DATE without parentheses has no position
        name = node.sql_name().casefold()
    function = functions().get(name)
    optional = function is not None and "current or specified time" in function.meaning
    return name in clock_functions() or (optional and not arguments_of(node))


def _is_clock_word(column: Any) -> bool:
    """Whether what sqlglot takes for a column is a word of Spark's grammar for the current time."""
    name = column.name
    plain = not column.table and not column.this.args.get("quoted")
    return plain and name.upper() in keywords() and name.casefold() in clock_functions()


def is_windowed(node: Any) -> bool:
    """Whether a call is followed by OVER (possibly after FILTER, WITHIN GROUP or IGNORE NULLS)."""
    inner, outer = node, node.parent
    between = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
    while isinstance(outer, between) and outer.this is inner:
        inner, outer = outer, outer.parent
    return isinstance(outer, exp.Window) and outer.this is inner


def name_of(node: Any, source: str) -> str:
    """The case-folded name of the function that a node calls; empty if it is not a call."""
    # Functions that sqlglot converts to another node (to_timestamp to a cast) keep their position.
    if isinstance(node, (exp.Identifier, exp.Literal, exp.Star, exp.Column)):
        return ""
    meta = node._meta
    if not meta or "start" not in meta:
        return ""
    return source[meta["start"] : meta["end"] + 1].strip("`").casefold()


def arguments_of(node: Any) -> list[Any]:
    """The nodes of a call's arguments, in order."""
    return sorted(
        (c for c in node.iter_expressions() if leaves_of(c)),
        key=lambda c: span_of(c).start,
    )


def bare(tree: Any) -> Any:
    """A node without the parentheses around it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def is_named(node: Any) -> bool:
    return isinstance(node, exp.Identifier)


def is_number(tree: Any) -> bool:
    return isinstance(tree, exp.Literal) and not tree.is_string


def leaves_of(tree: Any) -> list[dict[str, int]]:
    return [n._meta for n in tree.walk() if n._meta and "start" in n._meta]


def span_of(tree: Any, default: Span | None = None) -> Span:
    """The span of a node, from its first leaf to its last."""
    metas = leaves_of(tree)
    if not metas:
        return default or Span(0, 1)
    return Span(min(m["start"] for m in metas), max(m["end"] for m in metas) + 1)


def widened(source: str, span: Span) -> Span:
    """A span extended to the closing parentheses of those that it opens, such as those of a call."""
    start, end = span.start, span.end
    if source[end : end + 1] == "(":  # the span is the name of a call
        end += 1
    places, depths = _parentheses(source)
    first, following = bisect_left(places, start), bisect_left(places, end)
    while following < len(places) and depths[following] > depths[first]:
        following += 1
        end = places[following - 1] + 1
    return Span(start, end if depths[following] <= depths[first] else len(source))


@lru_cache(maxsize=64)
def _parentheses(source: str) -> tuple[list[int], list[int]]:
    """The places of the parentheses of a text, and how many are open before each and at the end."""
    places, depths = [], [0]
    for token in tokenize(source, strict=False):
        if token.text in ("(", ")"):
            places.append(token.start)
            depths.append(depths[-1] + (1 if token.text == "(" else -1))
    return places, depths


def normal_form(tree: Any, source: str) -> str:
    """A normal form: equal for expressions that differ only in case, spaces and quoting of names."""
    tree = bare(tree)
    if isinstance(tree, exp.Identifier):
        return str(tree.name).casefold()
    if isinstance(tree, exp.Literal):
        return repr(tree.name) if tree.is_string else str(tree.name).casefold()
    if isinstance(tree, (exp.RawString, exp.National, exp.UnicodeString)):
        return f"{type(tree).__name__}({tree.name!r})"
    name = name_of(tree, source)
    parts = []
    for key, value in tree.args.items():
        if name and key == "this" and isinstance(value, str):
            continue
        values = value if isinstance(value, list) else [value]
        for child in values:
            if isinstance(child, exp.Expr):
                parts.append(f"{key}={normal_form(child, source)}")
            elif child is not None and child is not False:
                parts.append(f"{key}={str(child).casefold()}")
    return f"{name or type(tree).__name__}({','.join(parts)})"


def tables_read(nodes: Sequence[Any]) -> Iterator[Any]:
    """The relations among the nodes of a query that are no WITH query which their place can see: one of a
    query around it, but in a WITH clause only one before it. `WITH s AS (SELECT * FROM s)` reads another s.
    The names in a hint are no relations: they are those of FROM again.
    """
    clauses: dict[int, dict[str, int]] = {}  # the places of the queries of each WITH clause
    places: dict[int, int] = {}
    for clause in (node for node in nodes if isinstance(node, exp.With)):
        named = clauses.setdefault(id(clause), {})
        for place, cte in enumerate(clause.expressions):
            named.setdefault(cte.alias.casefold(), place)
            places[id(cte)] = place
    names = frozenset().union(*clauses.values())

    def is_cte(table: Any) -> bool:
        name, node = table.name.casefold(), table
        while name in names and node.parent is not None:
            above = node.parent
            inside = isinstance(above, exp.With)
            clause = above if inside else above.args.get("with_")
            place = clauses[id(clause)].get(name) if clause is not None and clause is not node else None
            before = places[id(node)] + bool(above.args.get("recursive")) if inside else len(places)
            if place is not None and place < before:
                return True
            node = above
        return False

    hinted = any(isinstance(node, exp.Hint) for node in nodes)
    for table in (node for node in nodes if isinstance(node, exp.Table)):
        in_hint = hinted and table.find_ancestor(exp.Hint)
        if (len(table.parts) > 1 or not is_cte(table)) and not in_hint:
            yield table


def free_columns(select: Any) -> Iterator[tuple[str, str, Any]]:
    """(qualifier, name), folded, and the node of each column of a SELECT or an expression: not those of the
    queries in it, the parameters of lambda functions, hints, units, and names whose first part may be a
    schema.
    """
    parameters: set[str] = set()
    nodes = []
    inner = (exp.Select, exp.SetOperation, exp.Hint)
    for node in select.walk(prune=lambda n: n is not select and isinstance(n, inner)):
        if isinstance(node, exp.Lambda):
            parameters |= {p.name.casefold() for p in node.expressions}
        elif isinstance(node, exp.Column) and not node.args.get("db") and _is_value(node):
            nodes += [node] if is_named(node.this) and leaves_of(node.this) else []
    for node in nodes:
        qualifier, name = node.table.casefold(), node.name.casefold()
        if (qualifier or name) not in parameters:
            yield qualifier, name, node


def _is_value(column: Any) -> bool:
    """Whether a column is none of a function's units, and no name of an argument."""
    named = isinstance(column.parent, (exp.Kwarg, exp.PropertyEQ)) and column.arg_key == "this"
    return column.arg_key != "unit" and not named
