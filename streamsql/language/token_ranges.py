"""Ranges of a query's tokens that belong to nodes of sqlglot's tree; the base of the query's readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from streamsql.errors import Span
from streamsql.language.console_clauses import Cut
from streamsql.language.expression import Expression
from streamsql.language.token_groups import begins_clause, closers

LEFT = "the query has a clause that is left to Spark"


class Unread(Exception):
    """A query with an unsupported part; the message names it."""


class TokenRanges:
    """The tokens without the console's clauses; ranges [lo, hi) are indexes of them."""

    def __init__(self, text: str, out: Cut) -> None:
        self.text = text
        self.out = out
        self.tokens = out.remaining
        self.close = closers(self.tokens)

    def begins(self, at: int, word: str) -> bool:
        """Whether the token starts that clause, and is not a name spelled like it."""
        if word == "LATERAL":
            return (
                self.word(at) == word and self.word(at + 1) == "VIEW" and self.word(at - 1) not in (".", "AS")
            )
        return self.word(at) == word and begins_clause(self.tokens, at)

    def word(self, at: int) -> str:
        return self.tokens[at].upper if 0 <= at < len(self.tokens) else ""

    def span(self, lo: int, hi: int) -> Span:
        if lo >= hi or hi > len(self.tokens):
            raise Unread(LEFT)
        return Span(self.tokens[lo].start, self.tokens[hi - 1].end)

    def text_of(self, lo: int, hi: int) -> str:
        return self.text[self.tokens[lo].start : self.tokens[hi - 1].end]

    def level(self, lo: int, hi: int) -> Iterator[int]:
        """The indexes of a range that are outside parentheses."""
        at = lo
        while at < hi:
            yield at
            at = self.close[at] if at in self.close else at + 1

    def split(self, lo: int, hi: int) -> list[tuple[int, int]]:
        """A range split at its commas."""
        commas = [i for i in self.level(lo, hi) if self.word(i) == ","]
        starts, ends = [lo, *(c + 1 for c in commas)], [*commas, hi]
        pieces = list(zip(starts, ends, strict=True))
        if any(a >= b for a, b in pieces):
            raise Unread(LEFT)
        return pieces

    def paired(self, trees: Sequence[Any], lo: int, hi: int) -> Iterator[tuple[Any, int, int]]:
        """Each node of a list with its range. Raises Unread if these are not as many."""
        pieces = self.split(lo, hi)
        if len(pieces) != len(trees):
            raise Unread(LEFT)
        for tree, (start, end) in zip(trees, pieces, strict=True):
            yield tree, start, end

    def listed(self, trees: Sequence[Any], lo: int, hi: int) -> tuple[Expression, ...]:
        return tuple(self.expression(*piece) for piece in self.paired(trees, lo, hi))

    def expression(self, tree: Any, lo: int, hi: int) -> Expression:
        return Expression(self.text, self.span(lo, hi), tree)


def check_parts(tree: Any, supported: frozenset[str]) -> None:
    """Raise Unread for a node with a part whose name is not in `supported`."""
    if any(value for key, value in tree.args.items() if key not in supported):
        raise Unread(LEFT)


def is_modified(tree: Any) -> bool:
    return any(
        tree.args.get(k) for k in ("order", "sort", "limit", "offset", "with_", "cluster", "distribute")
    )
