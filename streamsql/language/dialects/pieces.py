"""The pieces of a statement that are read one by one: the items of a SELECT list, what stands in FROM, the
condition of WHERE … A query in parentheses has pieces of its own; in the piece around it a place-holder
stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamsql.language.token_groups import OPENING, closing
from streamsql.language.tokens import Token

_CLAUSES = {
    "SELECT": "SELECT ", "FROM": "SELECT * FROM ", "WHERE": "SELECT * FROM t WHERE ",
    "HAVING": "SELECT ", "QUALIFY": "SELECT ", "BY": "SELECT ", "ON": "SELECT ", "VALUES": "SELECT ",
    "LIMIT": "SELECT * FROM t LIMIT ", "OFFSET": "SELECT * FROM t OFFSET ", "FETCH": "SELECT * FROM t FETCH ",
    "USING SAMPLE": "SELECT * FROM t USING SAMPLE ",
}  # fmt: skip
"""A word that begins a clause, and the statement in which what follows it is read."""
_LISTS = frozenset(("SELECT", "BY"))
_TAILS = frozenset(("LIMIT", "OFFSET", "FETCH", "USING SAMPLE"))
"""Clauses behind a query, which are read with their word."""
_ENDS = frozenset(("UNION", "EXCEPT", "INTERSECT", "MINUS", "WINDOW", "GROUP", "ORDER", "SORT", "CLUSTER",
                   "DISTRIBUTE", "PARTITION", "EMIT", "FOR", "|>", ";", "WITH", "WITHIN"))  # fmt: skip
"""Words that end a piece, though none of a known kind begins with them."""
_QUERY = frozenset(("SELECT", "WITH", "VALUES"))


@dataclass(frozen=True)
class Piece:
    """The characters from start to end of a text, read behind `before`; nested: the places of the queries in
    parentheses inside of it, with their pieces.
    """

    before: str
    start: int
    end: int
    nested: tuple[Nested, ...]

    def text_in(self, text: str) -> str:
        """The piece as a statement, with place-holders for the queries in it."""
        parts, at = [self.before], self.start
        for number, query in enumerate(self.nested):
            parts += [text[at : query.start], placeholder(number)]
            at = query.end
        return "".join([*parts, text[at : self.end]])


@dataclass(frozen=True)
class Nested:
    """A query in parentheses, and its pieces."""

    start: int
    end: int
    pieces: tuple[Piece, ...]


def placeholder(number: int) -> str:
    """What stands for a query in parentheses. It is no text: Spark reads `SELECT 'a'` as a literal there."""
    return f"SELECT query_{number}_"


def pieces_of(tokens: Sequence[Token]) -> tuple[Piece, ...]:
    """The pieces of the queries of a statement, in order."""
    found: list[Piece] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if _opens_query(tokens, at):
            close = closing(tokens, at)
            found += _level(tokens[at + 1 : close])
            at = close
        elif token.upper in _QUERY and not (token.upper == "WITH" and not _begins_query(tokens, at)):
            end = next((n for n in range(at, len(tokens)) if tokens[n].text == ";"), len(tokens))
            found += _level(tokens[at:end])
            at = end
        elif token.upper == "FROM" and at == 0:
            found += _level(tokens)
            break
        at += 1
    return tuple(found)


def _begins_query(tokens: Sequence[Token], at: int) -> bool:
    """Whether a WITH is that of a query: `WITH name AS (` or `WITH name (a) AS (`."""
    words = [t.upper for t in tokens[at + 1 : at + 3]]
    if words[:1] == ["RECURSIVE"] or words[1:] == ["AS"]:
        return True
    behind = [t.upper for t in tokens[closing(tokens, at + 2) + 1 :][:1]]
    return words[1:] == ["("] and behind == ["AS"]


def _level(tokens: Sequence[Token]) -> Iterator[Piece]:
    """The pieces of one query, without those of the queries in parentheses, which are nested in them."""
    clause, start, at = "", 0, 0
    while at < len(tokens):
        word = _clause_at(tokens, at)
        if clause in _TAILS and word not in (*_ENDS, "SELECT", "FROM"):
            word = ""
        if word or (tokens[at].text == "," and clause in _LISTS):
            yield from _piece(clause, tokens[start:at])
            clause = clause if not word else word if word in _CLAUSES else ""
            start = _first_of(tokens, at) if word == "SELECT" else at if clause in _TAILS else at + 1
            at = max(start, at + 1)
            continue
        if not clause and _opens_query(tokens, at):
            yield from _level(tokens[at + 1 : closing(tokens, at)])
        at = closing(tokens, at) + 1 if tokens[at].text in OPENING else at + 1
    if at == len(tokens):  # every parenthesis is closed
        yield from _piece(clause, tokens[start:])


def _opens_query(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token is a parenthesis around a query."""
    return tokens[at].text == "(" and at + 1 < len(tokens) and tokens[at + 1].upper in _QUERY


def _clause_at(tokens: Sequence[Token], at: int) -> str:
    """The clause that begins at a token, or the word that ends one; "" for any other token."""
    token = tokens[at]
    if token.kind not in ("word", "sign") or (at and tokens[at - 1].text == "."):
        return ""
    word = token.upper
    behind = tokens[at + 1].upper if at + 1 < len(tokens) else ""
    if word == "USING" and behind == "SAMPLE":
        return "USING SAMPLE"
    if word == "FOR":
        return "FOR" if behind in ("UPDATE", "SHARE") else ""
    if word in ("ON", "BY") and at and tokens[at - 1].upper not in _ENDS:
        return ""
    if word in ("EXCEPT", "WINDOW", "PARTITION", "WITH", "WITHIN") and behind == "(":
        return ""
    if word == "WITH" and at and not _begins_query(tokens, at):
        return ""
    if word == "FROM" and at and tokens[at - 1].upper == "DISTINCT":
        return ""  # IS DISTINCT FROM
    if word == "EMIT" and behind not in ("CHANGES", "FINAL", "ON"):
        return ""
    return word if word in _CLAUSES or word in _ENDS else ""


_BEFORE_ITEMS = frozenset(("DISTINCT", "ALL", "WITHIN", "WATERMARK"))


def _first_of(tokens: Sequence[Token], at: int) -> int:
    """The first item behind SELECT, and behind DISTINCT, DISTINCT ON (…) and WITHIN WATERMARK."""
    at += 1
    while at < len(tokens) and (tokens[at].upper in _BEFORE_ITEMS or tokens[at].kind == "hint"):
        if tokens[at].upper == "DISTINCT" and at + 2 < len(tokens) and tokens[at + 1].upper == "ON":
            at = closing(tokens, at + 2)
        at += 1
    return at


_ORDER = frozenset(("ASC", "DESC", "NULLS", "FIRST", "LAST"))


def _piece(clause: str, tokens: Sequence[Token]) -> Iterator[Piece]:
    if clause == "BY":
        while tokens and tokens[-1].upper in _ORDER:
            tokens = tokens[:-1]
    if not clause or not tokens or (clause == "BY" and tokens[0].upper == "ALL"):
        return
    before = "SELECT * FROM t " if clause in _TAILS else _CLAUSES[clause]
    nested: list[Nested] = []
    at = 0
    while at < len(tokens):
        if _opens_query(tokens, at):
            close = min(closing(tokens, at), len(tokens) - 1)
            inner = tokens[at + 1 : close]
            if inner:
                nested.append(Nested(inner[0].start, inner[-1].end, tuple(_level(inner))))
            at = close
        at += 1
    yield Piece(before, tokens[0].start, tokens[-1].end, tuple(nested))
