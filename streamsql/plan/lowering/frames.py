"""Intermediate results of lowering: relations, items of a SELECT list, and the state that clauses share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.calls import Node
from streamsql.errors import Note, Span
from streamsql.language.expression import Expression
from streamsql.language.query import Query, try_expression
from streamsql.language.tokens import quote_name
from streamsql.language.window_words import Reading, window_names
from streamsql.plan.lowering import window_tables
from streamsql.plan.lowering.shape import Op, Shape
from streamsql.plan.lowering.sources import Sources
from streamsql.plan.lowering.window_lengths import check_lengths
from streamsql.plan.streaming import join_bounds

STREAM_IN_EXPRESSION = "an expression reads a stream"
"""Why a query is left to Spark that has a sub-query over a stream in an expression."""


def with_own_names(query: Query, names: dict[str, str]) -> str:
    """The text of a query with the replacements of its console relations, where they have one."""
    return query.with_names({own.span: names[own.name] for own in query.own if own.name in names})


class Unknown(Exception):
    """A query that the lowering leaves to Spark; the message is the reason."""


class RuleUnknown(Unknown):
    """An unsupported use of the console's own clauses; it is an error, since Spark does not have them."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span


@dataclass(frozen=True)
class Item:
    """One item of a SELECT list. name: the name of the output column, if it is known."""

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

    def without(self, fields: tuple[str, ...], hidden: tuple[str, ...] = ()) -> str:
        """Its text; a `*` without the given message fields and hidden columns."""
        if not self.text.endswith("*"):
            return self.sql
        table = self.text.removesuffix("*").casefold()
        left_out = [*(f for f in fields if f.casefold().startswith(table)), *hidden]
        return f"{self.text} EXCEPT ({', '.join(left_out)})" if left_out else self.sql

    @property
    def name(self) -> str:
        return self.alias or self.expression.output_name


@dataclass
class Frame:
    """A relation while it is built. hidden: columns to drop after the sort; they come first.
    width: the number of columns after them, None if not known.
    distinct: the names of a SELECT DISTINCT, the only allowed sort keys; None if all are allowed.
    names: the names of its relations, case-folded; window: the window table that it is or contains.
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
        """Its names and columns for the condition of a join."""
        columns = self.shape.columns
        folded = None if columns is None else frozenset(c.casefold() for c in columns)
        return join_bounds.Side(self.names, folded, self.shape.event_time)

    def shown(self) -> Frame:
        """This relation without its hidden columns, and without the group keys among them."""
        if not self.hidden:
            return self
        return replace(self, node=self.node.call("drop", *self.hidden), hidden=(), aggregated=False)


class Clauses:
    """The state that all clauses share: the query, the sources and intermediate results. Each clause is a
    method of a subclass; `_Lowering` in lower.py combines them.

    names: the replacement of each console relation; text: the query with these replacements.
    """

    def __init__(
        self, query: Query, names: dict[str, str], sources: Sources, *, keeps_keys: bool = False
    ) -> None:
        self.read = query
        self.text = with_own_names(query, names)
        self.own_names = names
        self.sources = sources
        self.ctes: dict[str, tuple[Node, Shape]] = {}
        self.sorted = False
        self.left = ""
        # Of the current block: its SESSION table, its WHERE, the names that it requires to be 1.
        self.window: Frame | None = None
        self.filter: Expression | None = None
        self.wanted = frozenset[str]()
        # Relations (or structs) that the query names.
        self.qualified = query.qualifiers
        # Whether the rows of the block at hand reach a live table row by row: see hidden_keys.py.
        self.keeps_keys = keeps_keys
        # Whether a block over a window table also gives window_time to the aggregation around it.
        self.carries_time = False
        # For words of other dialects: the one event time of the block at hand, "" if there is none, and
        # whether count(DISTINCT x) can be computed exactly.
        self.event_time = ""
        self.exact_distinct = False

    def leave(self, reason: str) -> None:
        """Leave the whole text to Spark; its shape is still determined here."""
        self.left = self.left or reason

    def checked(self, expression: Expression) -> Expression:
        """An expression for Spark; the relations of its sub-queries are registered as views."""
        check_lengths(expression, self.sources.catalog.functions)
        if expression.has_subquery:
            if self.ctes:
                raise Unknown("an expression reads a WITH query")
            if self.sources.register_views(self.read, expression.span, self.own_names):
                raise Unknown(STREAM_IN_EXPRESSION)
        if self.own_names:
            expression = replace(expression, source=self.text)
        expression = self.in_spark_words(expression)
        return (
            window_tables.with_session_columns(expression, self.window.names) if self.window else expression
        )

    def in_spark_words(self, expression: Expression) -> Expression:
        """An expression with the words of other dialects as Spark has them; a note says as what."""
        if not self.read.words & (window_names() | {"distinct"} if self.exact_distinct else window_names()):
            return expression
        reading = Reading(self.event_time, self.exact_distinct, frozenset(self.sources.catalog.functions))
        read = try_expression(reading.of(expression.text)) if expression.text else None
        if read is None or not reading.words:
            return expression
        for written, form in reading.words:
            self.sources.note(Note("READ_AS", f"{written} is read as {form}"))
        return read
