"""Converts FROM and its joins, from sqlglot's tree and the tokens, to the relations in query_tree.py."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import Any

from streamsql.errors import Source, Span
from streamsql.language import sqlglot_nodes as exp
from streamsql.language.query_tree import Body, Join, LateralView, Relation
from streamsql.language.statements.base import watermark_of
from streamsql.language.token_ranges import LEFT, TokenRanges, Unread, check_parts
from streamsql.language.tokens import unquote

_JOIN_WORDS = frozenset("NATURAL LEFT RIGHT FULL OUTER INNER CROSS SEMI ANTI ASOF LATERAL JOIN".split())
_KINDS = {"semi": "left_semi", "anti": "left_anti"}
# The supported parts of a node.
_OF_TABLE = frozenset("this db catalog alias pivots sample joins".split())
OF_SUBQUERY = frozenset(
    "this alias order sort cluster distribute limit offset with_ pivots sample joins".split()
)


class FromReader(TokenRanges):
    """Reads FROM and its joins."""

    def body(self, tree: Any, lo: int, hi: int) -> Body:
        """A query in parentheses; see block_reader.py."""
        raise NotImplementedError

    def from_clause(
        self, select: Any, lo: int, hi: int
    ) -> tuple[Relation, tuple[Join, ...], tuple[LateralView, ...]]:
        """The first relation, those joined to it, and the joins with UNNEST as views."""
        pieces = list(self.joined(lo, hi))
        trees = select.args.get("joins") or []
        if len(pieces) != len(trees) + 1:
            raise Unread("joins in joins")
        first = self.relation(select.args["from_"].this, pieces[0][1], pieces[0][2])
        joins, unnested = list[Join](), list[LateralView]()
        for tree, piece in zip(trees, pieces[1:], strict=True):
            if isinstance(tree.this, exp.Unnest):
                unnested.append(self.unnest(tree, *piece))
            elif unnested:
                raise Unread("a join behind UNNEST")
            else:
                joins.append(self.join(tree, *piece))
        return first, tuple(joins), tuple(unnested)

    def unnest(self, tree: Any, head: int, start: int, relation_end: int, end: int) -> LateralView:
        """CROSS JOIN UNNEST(x) AS t(c), as other dialects have LATERAL VIEW."""
        words = [self.word(i) for i in range(head, start - 1)]
        close = self.close.get(start + 1)
        on = tree.args.get("on")
        left = words in (["LEFT"], ["LEFT", "OUTER"]) and isinstance(on, exp.Boolean) and on.this
        place = tree.this.args.get("offset") or None
        unnamed = place is not None and not isinstance(place, exp.Identifier)
        if close is None or unnamed or not (left or (words in (["CROSS"], []) and not on)):
            raise Unread("this join with UNNEST")
        name, columns = _alias(tree.this)
        columns += (place.name,) if place else ()
        generator = self.expression(tree.this, start, close + 1)
        return LateralView(generator, name, columns, bool(left), self.span(head, end), bool(place))

    def joined(self, lo: int, hi: int) -> Iterator[tuple[int, int, int, int]]:
        """For each join: (its start, start and end of its relation, end of its condition)."""
        heads = [lo, *(at for at in self.level(lo, hi) if at > lo and self.begins_join(at))]
        for head, end in pairwise([*heads, hi]):
            signs = (at for at in range(head, end) if self.word(at) in (",", "JOIN"))
            start = lo if head == lo else next(signs) + 1
            conditions = (at for at in self.level(start, end) if at > start and self.begins_condition(at))
            yield head, start, next(conditions, end), end

    def begins_join(self, at: int) -> bool:
        """Whether a join begins at that token: a comma, or the first of its words."""
        return self.word(at) == "," or (self.is_join(at) and not self.is_join(at - 1))

    def is_join(self, at: int) -> bool:
        """Whether the words from that token on are those of a join."""
        words = takewhile(_JOIN_WORDS.__contains__, map(self.word, range(at, len(self.tokens))))
        return "JOIN" in words and self.word(at - 1) not in (".", "AS")

    def begins_condition(self, at: int) -> bool:
        word = self.word(at) == "ON" or (self.word(at) == "USING" and self.word(at + 1) == "(")
        return word and self.word(at - 1) != "."

    def join(self, tree: Any, head: int, start: int, relation_end: int, end: int) -> Join:
        relation = self.relation(tree.this, start, relation_end)
        span = self.span(head, end)
        if self.word(head) == ",":
            return Join(relation, "inner", self.span(start, end), comma=True)
        words = [self.word(i) for i in range(head, start - 1)]
        if set(words) & {"ASOF", "LATERAL"}:
            raise Unread(f"a {words[0]} join")
        kind = "_".join(w.lower() for w in words if w not in ("OUTER", "NATURAL")) or "inner"
        kind = _KINDS.get(kind, kind)
        if "NATURAL" in words:
            return Join(relation, kind, span, natural=True)
        if tree.args.get("using"):
            names = tuple(unquote(t) for t in self.tokens[relation_end + 2 : end - 1] if t.text != ",")
            return Join(relation, kind, span, using=names)
        if relation_end == end:  # without a condition, where sqlglot reads ON TRUE
            return Join(relation, kind, span)
        return Join(relation, kind, span, self.expression(tree.args["on"], relation_end + 1, end))

    def relation(self, tree: Any, lo: int, hi: int) -> Relation:
        span = self.span(lo, hi)
        name_end = lo
        parts: dict[str, Any] = {}
        if isinstance(tree, exp.Subquery) and self.word(lo) == "(":
            check_parts(tree, OF_SUBQUERY)
            name_end = self.close[lo] + 1
            # sqlglot reads nested parentheses as one sub-query.
            parts["query"] = self.body(tree.this, lo + 1, name_end - 1)
        elif isinstance(tree, exp.Table) and all(isinstance(p, exp.Identifier) for p in tree.parts):
            check_parts(tree, _OF_TABLE)
            name_end = lo + 2 * len(tree.parts) - 1
            name = ".".join(unquote(t) for t in self.tokens[lo:name_end:2])
            if name in self.out.own:
                parts["own"] = self.out.own[name]
            else:
                parts |= {"name": name, "written": self.text_of(lo, name_end)}
                parts["stream"] = self.tokens[lo].start in self.out.streams
        else:
            raise Unread(LEFT)
        if tree.args.get("joins"):
            raise Unread("joins in joins")
        alias, columns = _alias(tree)
        pivots = tree.args.get("pivots")
        if pivots and all(pivot.args.get("unpivot") for pivot in pivots):
            raise Unread("UNPIVOT")
        watermark = self.out.watermarks.get(self.tokens[name_end - 1].end)
        rest = self.span(name_end, hi) if name_end < hi else span
        if watermark:  # its tokens were cut out, so it can end after the last remaining token
            span = Span(span.start, max(span.end, watermark.span.end))
        return Relation(
            span,
            alias=alias,
            watermark=watermark_of(Source("", self.text), watermark) if watermark else None,
            sample=rest if tree.args.get("sample") else None,
            pivot=rest if pivots else None,
            columns=columns,
            **parts,
        )

    def lateral_views(self, select: Any, lo: int, hi: int) -> tuple[LateralView, ...]:
        starts = [i for i in self.level(lo, hi) if self.begins(i, "LATERAL")]
        trees = select.args["laterals"]
        if len(starts) != len(trees):
            raise Unread(LEFT)
        views = []
        for tree, a, b in zip(trees, starts, [*starts[1:], hi], strict=True):
            outer = self.word(a + 2) == "OUTER"
            start = a + 2 + outer
            if not tree.args.get("view") or self.word(start + 1) != "(":
                raise Unread(LEFT)
            end = self.close[start + 1] + 1
            generator = self.expression(tree.this, start, end)
            views.append(LateralView(generator, *_alias(tree), outer, self.span(a, b)))
        return tuple(views)


def _alias(tree: Any) -> tuple[str, tuple[str, ...]]:
    """The alias of a relation, "" for none, and the names that it gives to the columns."""
    alias = tree.args.get("alias")
    if alias is None:
        return "", ()
    columns = tuple(column.name for column in alias.args.get("columns") or ())
    return alias.name if alias.this is not None else "", columns
