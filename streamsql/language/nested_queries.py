"""The queries inside of a query: those in expressions, and whether one can stand by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

from streamsql.errors import Span
from streamsql.language import sqlglot_nodes as exp
from streamsql.language.query_tree import Query
from streamsql.language.token_groups import closing
from streamsql.language.tree_nodes import tables_read

_BEGINS = ("SELECT", "WITH", "FROM")


def queries_in_parentheses(query: Query) -> list[Span]:
    """The places of all queries in parentheses, without these; outer ones first."""
    found, tokens = list[Span](), query.tokens
    for at, (opening, first) in enumerate(pairwise(tokens)):
        close = closing(tokens, at) if opening.text == "(" and first.upper in _BEGINS else len(tokens)
        if close < len(tokens):
            found.append(Span(first.start, tokens[close - 1].end))
    return found


def in_queries(query: Query) -> Iterator[Span]:
    """The place of each IN (SELECT …), from the word IN on."""
    tokens = query.tokens
    for at in range(len(tokens) - 2):
        begins = [t.upper for t in tokens[at : at + 3]] in (["IN", "(", "SELECT"], ["IN", "(", "WITH"])
        close = closing(tokens, at + 1) if begins else len(tokens)
        if close < len(tokens):
            yield Span(tokens[at].start, tokens[close].end)


def stands_alone(query: Query, columns: Callable[[str], Iterable[str] | None]) -> bool:
    """Whether a query names no column of a query around it, as far as can be told. What its WITH queries
    read is no relation of the query itself.

    columns: those of a relation by its name; None when they are not known.
    """
    if query.tree is None:
        return False

    def outside(kind: Any) -> list[Any]:
        return [n for n in query.nodes_of(kind) if n.find_ancestor(exp.CTE) is None]

    tables, aliases = outside(exp.Table), outside(exp.TableAlias)
    spans = [cte.span for cte in query.body.ctes] if query.body else []
    names = {t.alias_or_name.casefold() for t in tables}
    names |= {alias.name.casefold() for alias in aliases if alias.this}
    names |= {  # also those inside window tables
        relation.name.casefold()
        for relation in query.relations
        if not any(span.start <= relation.span.start < span.end for span in spans)
    }
    column_names, complete = {a.alias.casefold() for a in outside(exp.Alias)}, True
    column_names |= {c.name.casefold() for alias in aliases for c in alias.args.get("columns") or ()}
    if query.tree.find(exp.Lateral):
        column_names |= _GENERATED
    for table in tables_read(query.nodes):
        own = columns(table.name)
        complete = complete and own is not None
        column_names |= {name.casefold() for name in own or ()}
    for column in outside(exp.Column):
        table = column.table.casefold()
        if table and table not in names | column_names | _STRUCTS:
            return False
        if not table and complete and column.name.casefold() not in column_names | _STRUCTS:
            return False
    return True


def _names_items(aliased: Any) -> bool:
    """Whether an alias with a list of columns stands for the items of a SELECT or the columns of a generator,
    and not for the columns of tables.
    """
    if isinstance(aliased, exp.Subquery):
        return isinstance(aliased.unnest(), exp.Query)
    return isinstance(aliased, (exp.CTE, exp.Lateral, exp.Unnest, exp.Values))


def joins_in_the_optimizer(query: Query) -> bool:
    """Whether Spark makes joins or aggregations of what is neither in the text: of a query in an expression,
    of LATERAL and of EXCEPT ALL. Its checks for streams do not see these.
    """
    if query.tree is None:
        return True
    inside = (exp.From, exp.Join, exp.Subquery, exp.SetOperation, exp.CTE)
    for node in query.nodes:
        if isinstance(node, (exp.Except, exp.Intersect)) and not node.args.get("distinct"):
            return True
        lateral = isinstance(node, exp.Lateral) and not node.args.get("view")
        nested = (
            isinstance(node, exp.Query) and node.parent is not None and not isinstance(node.parent, inside)
        )
        if lateral or nested:
            return True
    return False


_STRUCTS = frozenset(("window", "session_window"))
"""What GROUP BY makes, and is named without a relation."""
_GENERATED = frozenset(("col", "pos", "key", "value"))
"""The columns of explode and its like that are given no names."""


def reads_all_columns(query: Query) -> bool:
    """Whether it may use columns that it does not name: by a `*` other than that of count(*), NATURAL JOIN,
    PIVOT, an alias with a list of columns or a whole table as an argument.
    """
    if query.tree is None or query.words & {"natural", "pivot", "unpivot", "table"}:
        return True
    if any(
        alias.args.get("columns") and not _names_items(alias.parent)
        for alias in query.nodes_of(exp.TableAlias)
    ):
        return True
    return any(not isinstance(star.parent, exp.Count) for star in query.nodes_of(exp.Star))
