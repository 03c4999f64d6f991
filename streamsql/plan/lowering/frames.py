"""What a query is built of while it is lowered: relations, items of a SELECT list, what is known so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.calls import Node
from streamsql.errors import Span
from streamsql.language.expression import Expression
from streamsql.language.query import Query
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering import window_tables
from streamsql.plan.lowering.shape import Op, Shape
from streamsql.plan.lowering.sources import Sources
from streamsql.plan.streaming import join_bounds


class Unknown(Exception):
    """A shape that the lowering leaves to Spark; the text says which."""


class RuleUnknown(Unknown):
    """Something of our own language that has no reading; it becomes an error, not a fallback."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span


@dataclass(frozen=True)
class Item:
    """One item of a SELECT list. name: of the column that comes out, as far as it is a plain one."""

    expression: Expression
    alias: str
    span: Span
    aliases: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.expression.text

    @property
    def sql(self) -> str:
        if self.aliases:
            return f"{self.text} AS ({', '.join(map(quote_name, self.aliases))})"
        return f"{self.text} AS {quote_name(self.alias)}" if self.alias else self.text

    def without(self, fields: tuple[str, ...]) -> str:
        """Its text, a `*` without the fields of messages that it would bring."""
        if not self.text.endswith("*"):
            return self.sql
        table = self.text.removesuffix("*").casefold()
        left_out = [f for f in fields if f.casefold().startswith(table)]
        return f"{self.text} EXCEPT ({', '.join(left_out)})" if left_out else self.sql

    @property
    def name(self) -> str:
        return self.alias or self.expression.output_name


@dataclass
class Frame:
    """A relation being built. hidden: columns to drop once the sort is done, which come first.
    width: how many columns come behind them, None when not known.
    distinct: the names of a SELECT DISTINCT, which alone may sort it; None when all may.
    names: what its relations are called, folded; window: the window table that it is or holds.
    """

    node: Node
    shape: Shape
    hidden: tuple[str, ...] = ()
    aggregated: bool = False
    filtered_groups: bool = False
    width: int | None = None
    distinct: frozenset[str] | None = None
    names: frozenset[str] = frozenset()
    window: window_tables.WindowTable | None = None

    def then(self, op: Op) -> Frame:
        """This relation after one more operation."""
        return replace(self, shape=self.shape.then(op))

    @property
    def side(self) -> join_bounds.Side:
        """What the condition of a join may name of it."""
        columns = self.shape.columns
        folded = None if columns is None else frozenset(c.casefold() for c in columns)
        return join_bounds.Side(self.names, folded, self.shape.event_time)

    def shown(self) -> Frame:
        """This relation without its hidden columns; the groups they told apart are gone with them."""
        if not self.hidden:
            return self
        return replace(self, node=self.node.call("drop", *self.hidden), hidden=(), aggregated=False)


class Clauses:
    """What all clauses share: the query, the sources, and what is known so far. Each clause is a method of a
    class made of this one; `_Lowering` in lower.py is all of them.

    names: what stands for each of the console's own relations; text: the query with these names in place.
    """

    def __init__(self, query: Query, text: str, names: dict[str, str], sources: Sources) -> None:
        self.read = query
        self.text = text
        self.own_names = names
        self.sources = sources
        self.ctes: dict[str, tuple[Node, Shape]] = {}
        self.sorted = False
        self.left = ""
        # Of the block at hand: its SESSION table, and whether it has a WHERE; names that it wants to be 1.
        self.window: Frame | None = None
        self.filtered = False
        self.wanted = frozenset[str]()
        # Relations (or structs) asked for by name.
        self.qualified = query.qualifiers

    def leave(self, reason: str) -> None:
        """The whole text goes to Spark, but what streaming makes of it is still determined here."""
        self.left = self.left or reason

    def checked(self, expression: Expression) -> Expression:
        """An expression, as it is handed to Spark; the views that its sub-queries read are registered."""
        if expression.has_subquery:
            if self.ctes:
                raise Unknown("an expression reads a WITH query")
            if self.sources.register_views(self.read, expression.span, self.own_names):
                raise Unknown("an expression reads a stream")
        if self.own_names:
            expression = replace(expression, source=self.text)
        return (
            window_tables.with_session_columns(expression, self.window.names) if self.window else expression
        )
