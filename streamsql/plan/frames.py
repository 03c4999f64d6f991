"""What a query is built of while it is lowered: relations, items of a SELECT list, what is known so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from streamsql.calls import Node
from streamsql.errors import Source, Span
from streamsql.language import functions
from streamsql.language.grammar import Node as Parsed
from streamsql.language.grammar import text_of
from streamsql.language.tokens import quote_name, tokenize, unquote
from streamsql.plan import ranges, windows
from streamsql.plan.shape import Op, Shape
from streamsql.plan.sources import Sources


class Unknown(Exception):
    """A shape that the lowering leaves to Spark; the text says which."""


class RuleUnknown(Unknown):
    """Something of our own language that has no reading; it becomes an error, not a fallback."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span


@dataclass(frozen=True)
class Item:
    """One item of a SELECT list."""

    text: str
    alias: str
    span: Span
    aliases: tuple[str, ...] = ()

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
        """The column name that comes out, as far as it is a plain one."""
        if self.alias:
            return self.alias
        words = tokenize(self.text)
        plain = all(t.kind in ("word", "quoted") or t.text == "." for t in words)
        return words[-1].text.strip("`") if plain and words else ""


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
    window: windows.WindowTable | None = None

    def then(self, op: Op) -> Frame:
        """This relation after one more operation."""
        return replace(self, shape=self.shape.then(op))

    @property
    def side(self) -> ranges.Side:
        """What the condition of a join may name of it."""
        columns = self.shape.columns
        folded = None if columns is None else frozenset(c.casefold() for c in columns)
        return ranges.Side(self.names, folded, self.shape.event_time)

    def shown(self) -> Frame:
        """This relation without its hidden columns; the groups they told apart are gone with them."""
        if not self.hidden:
            return self
        return replace(self, node=self.node.call("drop", *self.hidden), hidden=(), aggregated=False)


class Clauses:
    """What all clauses share: the text, the sources, and what is known so far. Each clause is a method of a
    class made of this one; `_Lowering` in lower.py is all of them.
    """

    def __init__(self, text: str, sources: Sources) -> None:
        self.source = Source("", text)
        self.sources = sources
        self.ctes: dict[str, tuple[Node, Shape]] = {}
        self.sorted = False
        self.left = ""
        # Of the block at hand: its SESSION table, and whether it has a WHERE; names that it wants to be 1.
        self.window: Frame | None = None
        self.filtered = False
        self.wanted = frozenset[str]()
        tokens = tokenize(text)
        # Words that stand before a dot anywhere: relations (or structs) asked for by name.
        self.qualified = {
            unquote(t).casefold()
            for t, after in pairwise(tokens)
            if t.kind in ("word", "quoted") and after.text == "."
        }

    def leave(self, reason: str) -> None:
        """The whole text goes to Spark, but what streaming makes of it is still found out here."""
        self.left = self.left or reason

    def text(self, node: Parsed, rule: str) -> str:
        part = node.get(rule)
        assert part
        return self.checked(text_of(self.source, part))

    def checked(self, text: str) -> str:
        """An expression's text; what it needs around it is seen to here."""
        if functions.has_subquery(text):
            if self.ctes:
                raise Unknown("an expression reads a WITH query")
            if self.sources.register_views(text):
                raise Unknown("an expression reads a stream")
        if any(t.kind == "hint" for t in tokenize(text)):
            raise Unknown("the query has a hint")
        return windows.with_session_columns(text, self.window.names) if self.window else text
