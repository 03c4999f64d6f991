"""The parts of a query, each with its position in the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from streamsql.errors import Span
from streamsql.language import unread_query
from streamsql.language.expression import Expression
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Watermark
from streamsql.language.tokens import Token, quote_name, unquote
from streamsql.language.tree_nodes import Call, calls_in, names_of_kind


@dataclass(frozen=True)
class Item:
    """One item of a SELECT list. aliases: the names after AS; listed: whether they are in parentheses."""

    expression: Expression
    span: Span
    aliases: tuple[str, ...] = ()
    listed: bool = False


@dataclass(frozen=True)
class ConsoleRelation:
    """A console relation. kind: WindowTable, StateTable, LateTable, StatefulCall or PivotTable; node: the
    matched node; name: its replacement in sqlglot's tree.
    """

    kind: str
    node: Node
    span: Span
    name: str


@dataclass(frozen=True)
class Relation:
    """A relation of FROM or JOIN: a name (dotted; written: with its backticks), a query in parentheses, or a
    console relation.

    columns: the names that an alias gives to its columns.
    """

    span: Span
    name: str = ""
    written: str = ""
    query: Body | None = None
    own: ConsoleRelation | None = None
    alias: str = ""
    stream: bool = False
    watermark: Watermark | None = None
    sample: Span | None = None
    pivot: Span | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Join:
    """kind: the value for DataFrame.join (inner, left, left_semi, cross, …); comma: written as a comma;
    natural: it joins by all columns that both sides have.
    """

    relation: Relation
    kind: str
    span: Span
    condition: Expression | None = None
    using: tuple[str, ...] = ()
    comma: bool = False
    natural: bool = False


@dataclass(frozen=True)
class LateralView:
    """ordinality: whether the place of each value, from 1, is its last column (UNNEST WITH ORDINALITY)."""

    generator: Expression
    name: str
    columns: tuple[str, ...]
    outer: bool
    span: Span
    ordinality: bool = False


@dataclass(frozen=True)
class GroupKey:
    """A key of GROUP BY; several: ROLLUP or CUBE, over these expressions."""

    expressions: tuple[Expression, ...]
    several: str = ""


@dataclass(frozen=True)
class GroupBy:
    """other: a form other than plain keys, ROLLUP and CUBE: ALL, GROUPING SETS, WITH CUBE."""

    keys: tuple[GroupKey, ...]
    span: Span
    other: str = ""


@dataclass(frozen=True)
class Distinct:
    """SELECT DISTINCT; on: the columns of DISTINCT ON; within: WITHIN WATERMARK."""

    span: Span
    on: tuple[Expression, ...] = ()
    within: bool = False

    @property
    def keeps_first(self) -> bool:
        """Whether it is the console's deduplication rather than Spark's DISTINCT."""
        return bool(self.on) or self.within


@dataclass(frozen=True)
class Clause:
    """A clause with one expression; span: the whole clause."""

    expression: Expression
    span: Span


@dataclass(frozen=True)
class Block:
    """One SELECT. other: an unsupported clause, such as a hint or WINDOW."""

    span: Span
    items: tuple[Item, ...]
    relation: Relation | None = None
    joins: tuple[Join, ...] = ()
    views: tuple[LateralView, ...] = ()
    distinct: Distinct | None = None
    where: Clause | None = None
    group_by: GroupBy | None = None
    having: Clause | None = None
    qualify: Clause | None = None
    other: str = ""

    @property
    def relations(self) -> list[Relation]:
        """What FROM and each JOIN reads."""
        return [r for r in (self.relation, *(j.relation for j in self.joins)) if r is not None]

    @property
    def reads_one_relation(self) -> bool:
        return self.relation is not None and not self.joins and not self.views


@dataclass(frozen=True)
class SortKey:
    """method: the method of Column: asc, desc_nulls_last, …"""

    expression: Expression
    method: str


@dataclass(frozen=True)
class OrderBy:
    keys: tuple[SortKey, ...]
    span: Span


@dataclass(frozen=True)
class SetTail:
    """kind: union, intersect or except; every: ALL."""

    kind: str
    every: bool
    term: Block | Body
    span: Span


@dataclass(frozen=True)
class Cte:
    """A WITH query. columns: the names that it gives to its columns."""

    name: str
    query: Body
    span: Span
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Body:
    """A query: WITH, the terms of a set operation, and the clauses around them."""

    span: Span
    term: Block | Body
    tails: tuple[SetTail, ...] = ()
    ctes: tuple[Cte, ...] = ()
    order_by: OrderBy | None = None
    sort_by: Span | None = None
    limit: Clause | None = None
    offset: Clause | None = None

    @property
    def block(self) -> Block | None:
        """Its SELECT if it has only one, without the clauses around it; else None."""
        return self.term if isinstance(self.term, Block) and not self.tails else None

    @property
    def plain_block(self) -> Block | None:
        """Its SELECT if it is nothing else: no WITH, no set operation, no order and no limit; else None."""
        around = self.ctes or self.order_by or self.sort_by or self.limit or self.offset
        return None if around else self.block

    def blocks(self, *, ctes: bool = False) -> Iterator[Block]:
        """Its SELECTs, each after those that it reads; not those in expressions. ctes: those of WITH, too."""
        named = [cte.query for cte in self.ctes] if ctes else []
        for term in (*named, self.term, *(tail.term for tail in self.tails)):
            if isinstance(term, Body):
                yield from term.blocks(ctes=ctes)
                continue
            for relation in term.relations:
                if relation.query is not None:
                    yield from relation.query.blocks(ctes=ctes)
            yield term


@dataclass(frozen=True)
class Named:
    """The name of a relation in a query, and its position."""

    name: str
    span: Span


@dataclass(frozen=True)
class Query:
    """A parsed query. own: its console relations, in the order of the text; relations: the names that it
    reads, without its WITH queries, including those inside console relations.

    body: None if the query is left to Spark, then reason says why; tree: sqlglot's tree, None if sqlglot
    could not parse the text; nodes: those of the tree, each before its parts; stopped: the position of
    sqlglot's error. has_stream: STREAM is written before a relation. spark_tokens: the tokens that Spark's
    parser could read: without the console's clauses, and with a name for each console relation. computed: the
    folded names of the event times that WATERMARK clauses compute.
    """

    text: str
    tokens: tuple[Token, ...] = field(repr=False)
    own: tuple[ConsoleRelation, ...] = ()
    own_clauses: tuple[tuple[str, Span], ...] = ()
    body: Body | None = None
    reason: str = ""
    tree: Any = field(default=None, repr=False, compare=False)
    nodes: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    stopped: Span | None = None
    has_stream: bool = False
    has_watermark: bool = False
    relations: tuple[Named, ...] = ()
    computed: frozenset[str] = frozenset()
    spark_tokens: tuple[Token, ...] = field(default=(), repr=False)

    @property
    def has_own_clauses(self) -> bool:
        """Whether the query has a clause that only the console and Spark's streams have. A call of a table
        function may be one of Spark's.
        """
        own = any(own.kind != "StatefulCall" for own in self.own)
        return own or bool(self.own_clauses) or self.has_stream or self.has_watermark

    def nodes_of(self, *kinds: type) -> list[Any]:
        """The nodes of these classes of sqlglot."""
        return [node for node in self.nodes if isinstance(node, kinds)]

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """All function calls in the query."""
        if self.tree is None:
            return tuple(unread_query.calls_of_tokens(self.tokens))
        calls = calls_in(self.nodes, self.text)
        for own in self.own:
            inside = [t for t in self.tokens if own.span.start <= t.start and t.end <= own.span.end]
            calls += unread_query.calls_of_tokens(inside)
        return tuple(sorted(set(calls), key=lambda c: c.span.start))

    @cached_property
    def words(self) -> frozenset[str]:
        """All names and words of the query, case-folded; they include every column that it uses."""
        return unread_query.words_of(self.tokens)

    @property
    def names(self) -> tuple[Named, ...]:
        """Each name and word outside of the console's own relations: in a statement that is not a query, any
        of them may be a relation.
        """
        inside = [own.span for own in self.own]
        return tuple(
            Named(unquote(t), t.span)
            for t in self.tokens
            if t.kind in ("word", "quoted") and not any(s.start <= t.start < s.end for s in inside)
        )

    @cached_property
    def qualifiers(self) -> frozenset[str]:
        """The names before a dot, case-folded: the relations (or structs) that the query names."""
        pairs = zip(self.tokens, self.tokens[1:], strict=False)
        names = (name for name, sign in pairs if name.kind in ("word", "quoted") and sign.text == ".")
        return frozenset(unquote(name).casefold() for name in names)

    @cached_property
    def named_queries(self) -> frozenset[str]:
        """The names of WITH queries, case-folded, also where the query has no body."""
        return frozenset(name for name, *_ in unread_query.with_queries(self.tokens))

    @cached_property
    def seems_to_group(self) -> bool:
        """Whether the query seems to group rows; for queries without a body."""
        words = {t.upper for t in self.tokens if t.kind == "word"}
        called = {call.name for call in self.calls}
        return bool(words & {"GROUP", "DISTINCT", "AGGREGATE"} or called & names_of_kind("agg"))

    @property
    def seems_to_filter_groups(self) -> bool:
        """Whether groups can leave the result again; for queries without a body."""
        filters = "having" in self.words or "where" in self.words and any(t.text == "|>" for t in self.tokens)
        return self.seems_to_group and filters

    def with_names(self, names: Mapping[Span, str]) -> str:
        """The text with a name in place of each span. Its length does not change, so spans stay valid."""
        out = self.text
        for span, name in names.items():
            quoted = quote_name(name)
            out = out[: span.start] + quoted.ljust(span.end - span.start) + out[span.end :]
        return out
