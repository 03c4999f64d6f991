"""The cursor in a statement, what is offered there, and what the grammar expects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streamsql.catalog import Catalog
from streamsql.language.grammar import load
from streamsql.language.parser import BUILDERS
from streamsql.language.tokens import Token, unquote
from streamsql.shell.completion.columns import Columns, Pair, Resolver

NAME, FUNCTION, KEYWORD = range(3)


class Offer(NamedTuple):
    """A candidate before it is held against what is typed.

    keys: what is compared with it, the text itself when empty; typed: what it replaces, where that is
    not the word at the cursor; closes: whether a quote that is open ends behind it.
    """

    text: str
    kind: str
    rank: int = NAME
    keys: tuple[str, ...] = ()
    typed: str | None = None
    closes: bool = False


@dataclass(frozen=True)
class Spot:
    """The cursor: tokens of its statement before it, without the word that is typed, and behind it."""

    tokens: list[Token]
    typed: str
    behind: tuple[Token, ...]
    catalog: Catalog
    columns: Columns | None

    @property
    def resolver(self) -> Resolver:
        return Resolver(self.catalog, self.columns)

    @property
    def lower(self) -> bool:
        """Whether keywords are written in small letters here."""
        shown = self.typed if self.typed.strip("`") else (self.tokens[0].text if self.tokens else "")
        return shown.islower()

    def has(self, word: str, within: int | None = None) -> bool:
        """Whether a keyword stands before the cursor, among the first tokens."""
        return any(t.upper == word for t in self.tokens[:within])

    def behind_word(self, word: str) -> str:
        """The name behind the first such keyword, "" when there is none."""
        at = next((i for i, t in enumerate(self.tokens[:-1]) if t.upper == word), None)
        return "" if at is None else unquote(self.tokens[at + 1])


def explained(tokens: list[Token]) -> list[Token]:
    """The statement behind EXPLAIN and its form, if one is there."""
    if tokens and tokens[0].upper == "EXPLAIN":
        rest = tokens[2 if len(tokens) > 1 and tokens[1].upper in _EXPLAIN_FORMS else 1 :]
        if rest and rest[0].upper != "QUERY":
            return rest
    return tokens


_EXPLAIN_FORMS = frozenset("PYSPARK LOGICAL EXTENDED FORMATTED CODEGEN COST".split())


def dotted(tokens: list[Token], typed: str) -> tuple[list[Token], str]:
    """Tokens and typed word with a key of several parts (`spark.sql.shu`) as the one word."""
    end, at = len(tokens), len(tokens)
    while (
        at
        and tokens[at - 1].text not in ("(", ")", ",", "=", ";")
        and (at == end or tokens[at - 1].end == tokens[at].start)
    ):
        joined = tokens[at - 1].kind in ("word", "quoted", "number") or tokens[at - 1].text in (".", "-")
        if not joined or (at == end and tokens[at - 1].text not in (".", "-")):
            break
        at -= 1
    return tokens[:at], "".join(t.text for t in tokens[at:]) + typed


def expected(tokens: list[Token]) -> dict[str, None]:
    """The keywords (in quotes) and terminals that may follow the tokens of a statement."""
    grammar = load()
    wanted: dict[str, None] = {}
    for rule in BUILDERS:
        if rule != "Spark" or not tokens:
            wanted.update(dict.fromkeys(grammar.expected(rule, tokens)))
    return wanted


def declared(tokens: Sequence[Token]) -> list[Pair]:
    """The columns that a CREATE declares: (name, type)."""
    opening = next((i for i, t in enumerate(tokens) if t.text == "(" or t.upper == "USING"), None)
    if opening is None or tokens[opening].text != "(":
        return []
    found: list[Pair] = []
    depth, start = 0, opening + 1
    for at in range(opening, len(tokens)):
        text = tokens[at].text
        depth += (text in ("(", "<")) - (text in (")", ">"))
        if depth == 0 or (depth == 1 and text == ","):
            part = tokens[start:at]
            if part and part[0].kind in ("word", "quoted"):
                words = [t.text for t in part[1:]]
                ends = (i for i, w in enumerate(words) if w.upper in ("COMMENT", "NOT"))
                found.append((unquote(part[0]), " ".join(words[: next(ends, len(words))])))
            start = at + 1
        if depth == 0:
            break
    return found
