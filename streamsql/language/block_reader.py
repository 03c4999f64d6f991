"""Converts sqlglot's tree of a query to the parts in query_tree.py, each with its position.

sqlglot records positions for names, literals and calls only. The reader therefore walks the tokens of a block
together with its node and locates each clause of the node in the tokens, in SQL's order. If the two do not
agree, or a node has an unsupported part, the query is left to Spark (Unread).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from streamsql.errors import Span
from streamsql.language import sqlglot_nodes as exp
from streamsql.language.expression import TIME_WINDOWS, Expression
from streamsql.language.from_reader import OF_SUBQUERY, FromReader
from streamsql.language.query_tree import (
    Block,
    Body,
    Clause,
    Cte,
    Distinct,
    GroupBy,
    GroupKey,
    Item,
    Join,
    LateralView,
    OrderBy,
    Relation,
    SetTail,
    SortKey,
)
from streamsql.language.token_ranges import LEFT, Unread, check_parts, is_modified
from streamsql.language.tokens import unquote
from streamsql.language.tree_nodes import bare

# The supported parts of a node.
_OF_SELECT = frozenset(
    """expressions distinct from_ joins laterals where group having qualify order sort cluster distribute
    limit
    offset with_ kind operation_modifiers""".split()
)
_OF_UNION = frozenset(
    "this expression distinct by_name order sort cluster distribute limit offset with_ side kind on".split()
)
_SET_OPERATIONS = ("UNION", "INTERSECT", "EXCEPT", "MINUS")
_AROUND = {
    "ORDER": "order", "SORT": "sort", "CLUSTER": "cluster", "DISTRIBUTE": "distribute", "LIMIT": "limit",
    "OFFSET": "offset",
}  # fmt: skip
"""The clauses around the terms of a query, by their first words in SQL's order, and the parts of a node."""
_CLAUSES = {
    "FROM": "from_", "LATERAL": "laterals", "WHERE": "where", "GROUP": "group", "HAVING": "having",
    "QUALIFY": "qualify", **_AROUND,
}  # fmt: skip
"""The clauses of a SELECT behind its list, in the same way."""
_Ranges = dict[str, tuple[int, int]]


class BlockReader(FromReader):
    """Reads one tree."""

    # ---- queries

    def body(self, tree: Any, lo: int, hi: int) -> Body:
        span = self.span(lo, hi)
        ctes, lo = self.ctes(tree, lo)
        if isinstance(tree, exp.Select):
            if self.word(lo) != "SELECT":
                raise Unread(LEFT)
            ranges = self.ranges(tree, _CLAUSES, lo + 1, hi)
            end = min((ranges[word][0] for word in _AROUND if word in ranges), default=hi)
            return self.modified(tree, Body(span, self.block(tree, lo, end, ranges), (), ctes), ranges)
        if isinstance(tree, exp.Subquery):
            check_parts(tree, OF_SUBQUERY)
            if tree.args.get("pivots") or tree.args.get("sample") or tree.args.get("joins") or tree.alias:
                raise Unread(LEFT)
            close = self.close.get(lo, -1)
            if self.word(lo) != "(" or close < 0 or close >= hi:
                raise Unread("a query in parentheses")
            inner = self.body(tree.this, lo + 1, close)
            if close == hi - 1 and not ctes:
                return inner
            return self.modified(tree, Body(span, inner, (), ctes), self.ranges(tree, _AROUND, close + 1, hi))
        if isinstance(tree, exp.SetOperation):
            return self.set_operation(tree, lo, hi, ctes, span)
        raise Unread(LEFT)

    def ctes(self, tree: Any, lo: int) -> tuple[tuple[Cte, ...], int]:
        clause = tree.args.get("with_")
        if clause is None:
            return (), lo
        if clause.args.get("recursive") or self.word(lo) != "WITH":
            raise Unread("WITH RECURSIVE")
        ctes = []
        at = lo + 1
        for cte in clause.expressions:
            alias = cte.args["alias"]
            columns = tuple(column.name for column in alias.args.get("columns") or ())
            head = self.close.get(at + 1, at) + 1 if columns else at + 1
            if self.word(head) != "AS" or self.word(head + 1) != "(":
                raise Unread("a clause of a WITH query")
            close = self.close[head + 1]
            name = unquote(self.tokens[at])
            body = self.body(cte.this, head + 2, close)
            ctes.append(Cte(name, body, self.span(at, close + 1), columns))
            at = close + 1
            if self.word(at) == ",":
                at += 1
        return tuple(ctes), at

    def set_operation(self, tree: Any, lo: int, hi: int, ctes: tuple[Cte, ...], span: Span) -> Body:
        chain: list[Any] = []
        node = tree
        while isinstance(node, exp.SetOperation) and (not chain or not is_modified(node)):
            check_parts(node, _OF_UNION)
            if node.args.get("by_name") or node.args.get("on") or node.args.get("side"):
                raise Unread("a set operation BY NAME")
            chain.insert(0, node)
            node = node.this
        signs = [i for i in self.level(lo, hi) if any(self.begins(i, word) for word in _SET_OPERATIONS)]
        if len(signs) != len(chain):
            raise Unread("set operations of different precedence")
        ranges = self.ranges(tree, _AROUND, signs[-1] + 1, hi)
        end = min((start for start, _ in ranges.values()), default=hi)
        first = self.term(node, lo, signs[0])
        tails = []
        for number, (sign, operation) in enumerate(zip(signs, chain, strict=True)):
            quantifier = self.word(sign + 1)
            begin = sign + 1 + (quantifier in ("ALL", "DISTINCT"))
            stop = signs[number + 1] if number + 1 < len(signs) else end
            kind = self.word(sign).lower().replace("minus", "except")
            term = self.term(operation.expression, begin, stop)
            tails.append(SetTail(kind, quantifier == "ALL", term, self.span(sign, stop)))
        return self.modified(tree, Body(span, first, tuple(tails), ctes), ranges)

    def term(self, tree: Any, lo: int, hi: int) -> Block | Body:
        body = self.body(tree, lo, hi)
        nested = self.word(lo) == "("
        plain = not (body.tails or body.ctes or body.order_by or body.sort_by or body.limit or body.offset)
        if not nested and not plain:
            raise Unread("a term of a set operation has clauses of its own")
        return body if nested or not plain else body.term

    def modified(self, tree: Any, body: Body, ranges: _Ranges) -> Body:
        """A query with the clauses around its terms: ORDER BY, LIMIT, …"""
        if "DISTRIBUTE" in ranges:
            raise Unread(LEFT)
        order = self.order_by(tree.args["order"], *ranges["ORDER"]) if "ORDER" in ranges else None
        sort = next((self.span(*ranges[word]) for word in ("CLUSTER", "SORT") if word in ranges), None)
        limit, offset = (self.clause(tree, word, ranges) for word in ("LIMIT", "OFFSET"))
        return replace(body, order_by=order, sort_by=sort, limit=limit, offset=offset)

    # ---- one SELECT

    def ranges(self, tree: Any, words: Mapping[str, str], lo: int, hi: int) -> _Ranges:
        """The range of each of these clauses that a node has. Raises Unread if its word is not found."""
        starts: list[tuple[str, int]] = []
        for word in (word for word, part in words.items() if tree.args.get(part)):
            place = next((i for i in self.level(lo, hi) if self.begins(i, word)), None)
            if place is None:
                raise Unread(LEFT)
            starts.append((word, place))
            lo = place + 1
        ends = [*(start for _, start in starts[1:]), hi]
        return {word: (start, end) for (word, start), end in zip(starts, ends, strict=False)}

    def block(self, select: Any, lo: int, hi: int, ranges: _Ranges) -> Block:
        other = "the query has a hint" if select.args.get("hint") else ""
        if not other:
            check_parts(select, _OF_SELECT)
        distinct, at = self.distinct(select, lo + 1)
        first = min((start for start, _ in ranges.values()), default=hi)
        items = self.items(select.expressions, at, first)
        relation: Relation | None = None
        joins: tuple[Join, ...] = ()
        views: tuple[LateralView, ...] = ()
        if "FROM" in ranges:
            start, end = ranges["FROM"]
            relation, joins, views = self.from_clause(select, start + 1, end)
        if "LATERAL" in ranges:
            views += self.lateral_views(select, *ranges["LATERAL"])
        group = self.group_by(select.args["group"], *ranges["GROUP"], items) if "GROUP" in ranges else None
        where, having, qualify = (self.clause(select, w, ranges) for w in ("WHERE", "HAVING", "QUALIFY"))
        span = self.span(lo, hi)
        return Block(span, items, relation, joins, views, distinct, where, group, having, qualify, other)

    def clause(self, tree: Any, word: str, ranges: _Ranges) -> Clause | None:
        """The clause of one word and an expression; None if the node has none."""
        if word not in ranges:
            return None
        part = tree.args[_CLAUSES[word]]
        if word == "LIMIT" and not isinstance(part, exp.Limit):  # FETCH FIRST
            raise Unread(LEFT)
        start, end = ranges[word]
        condition = part.expression if word in ("LIMIT", "OFFSET") else part.this
        return Clause(self.expression(condition, start + 1, end), self.span(start, end))

    def distinct(self, select: Any, at: int) -> tuple[Distinct | None, int]:
        """The DISTINCT of a SELECT, and the start of its list."""
        while at < len(self.tokens) and self.tokens[at].kind == "hint":
            at += 1
        if self.word(at) == "ALL" and self.word(at + 1) not in (",", "FROM", "."):
            return None, at + 1
        tree = select.args.get("distinct")
        if tree is None:
            return None, at
        if self.word(at) != "DISTINCT":
            raise Unread(LEFT)
        span = self.out.within.get(self.tokens[at].start)
        on = tree.args.get("on")
        if on is None:
            return Distinct(span or self.tokens[at].span, (), span is not None), at + 1
        close = self.close.get(at + 2)
        if close is None:  # sqlglot also reads DISTINCT ON without parentheses
            raise Unread(LEFT)
        trees = on.expressions if isinstance(on, exp.Tuple) else [bare(on)]
        columns = self.listed(trees, at + 3, close)
        return Distinct(span or self.span(at, close + 1), columns, span is not None), close + 1

    def items(self, trees: list[Any], lo: int, hi: int) -> tuple[Item, ...]:
        return tuple(self.item(tree, a, b) for tree, a, b in self.paired(trees, lo, hi))

    def item(self, tree: Any, lo: int, hi: int) -> Item:
        if isinstance(tree, exp.QueryTransform):
            raise Unread(LEFT)
        span = self.span(lo, hi)
        if isinstance(tree, exp.Aliases):
            opening = next((i for i in range(lo, hi) if self.close.get(i) == hi - 1), lo)
            end = opening - (self.word(opening - 1) == "AS")
            names = tuple(unquote(t) for t in self.tokens[opening + 1 : hi - 1] if t.text != ",")
            return Item(self.expression(tree.this, lo, end), span, names, True)
        if isinstance(tree, exp.Alias):
            end = hi - 1 - (self.word(hi - 2) == "AS")
            return Item(self.expression(tree.this, lo, end), span, (unquote(self.tokens[hi - 1]),))
        return Item(self.expression(tree, lo, hi), span)

    def group_by(self, tree: Any, lo: int, hi: int, items: tuple[Item, ...]) -> GroupBy:
        span = self.span(lo, hi)
        rest = [self.word(i) for i in (hi - 2, hi - 1)]
        words = [self.word(i) for i in range(lo, hi)]
        sets = any(a == "GROUPING" and b == "SETS" for a, b in zip(words, words[1:], strict=False))
        if words[2:] == ["ALL"]:
            return GroupBy(_keys_of_all(items), span, "" if _keys_of_all(items) else "ALL")
        if sets or rest in (["WITH", "CUBE"], ["WITH", "ROLLUP"]):
            return GroupBy((), span, "GROUPING SETS" if sets else rest[-1])
        if any(v for k, v in tree.args.items() if k not in ("expressions", "rollup", "cube")):
            raise Unread(LEFT)
        keys: list[GroupKey] = []
        for key_tree, a, b in self.paired(tree.expressions, lo + 2, hi):
            if isinstance(key_tree, (exp.Rollup, exp.Cube)):
                inner = key_tree.expressions
                if any(isinstance(e, exp.Tuple) for e in inner):
                    return GroupBy((), span, f"{self.word(a)} of several columns at once")
                keys.append(GroupKey(self.listed(inner, a + 2, b - 1), self.word(a)))
            else:
                keys.append(GroupKey((self.expression(key_tree, a, b),)))
        return GroupBy(tuple(keys), span)

    def order_by(self, tree: Any, lo: int, hi: int) -> OrderBy:
        keys = []
        for ordered, a, b in self.paired(tree.expressions, lo + 2, hi):
            nulls, method = "", "asc"
            if self.word(b - 2) == "NULLS":
                nulls = f"_nulls_{self.word(b - 1).lower()}"
                b -= 2
            if self.word(b - 1) in ("ASC", "DESC"):
                method = self.word(b - 1).lower()
                b -= 1
            keys.append(SortKey(self.expression(ordered.this, a, b), method + nulls))
        return OrderBy(tuple(keys), self.span(lo, hi))


def _keys_of_all(items: tuple[Item, ...]) -> tuple[GroupKey, ...]:
    """The keys of GROUP BY ALL: the items that are not aggregated, and the window itself for a field of it,
    so that the watermark closes it. () where only Spark knows them: a `*`, a constant, which would be an
    ordinal, or no key at all.
    """
    keys: list[Expression] = []
    for expression in (item.expression for item in items):
        if expression.aggregates:
            continue
        if not expression.column_names() or expression.has_window_function or expression.generates:
            return ()
        of, _ = expression.field or (None, "")
        key = of if of is not None and of.call in TIME_WINDOWS else expression
        if not any(key.same(other) for other in keys):
            keys.append(key)
    return tuple(GroupKey((key,)) for key in keys)
