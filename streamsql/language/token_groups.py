"""Tokens between commas and parentheses, and those that start clauses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsql.language.tokens import Token

OPENING, CLOSING = frozenset("([{"), frozenset(")]}")


def items_of(tokens: Sequence[Token], *, of_types: bool = False) -> Iterator[list[Token]]:
    """The tokens between commas outside of parentheses. of_types: also outside of the `< >` of types."""
    item: list[Token] = []
    depth = 0
    for token in tokens:
        depth += (token.text in OPENING) - (token.text in CLOSING)
        if of_types and token.kind == "sign":
            depth += token.text.count("<") - token.text.count(">")
        if token.text == "," and depth <= 0:
            yield item
            item = []
        else:
            item.append(token)
    if item:
        yield item


def closing(tokens: Sequence[Token], at: int) -> int:
    """The parenthesis, bracket or brace that closes the one at that token; the end if there is none."""
    depth = 0
    for n in range(at, len(tokens)):
        depth += (tokens[n].text in OPENING) - (tokens[n].text in CLOSING)
        if depth == 0:
            return n
    return len(tokens)


def closers(tokens: Sequence[Token]) -> dict[int, int]:
    """Each opening parenthesis and bracket that is closed, and the closing one."""
    closes, opened = dict[int, int](), list[int]()
    for at, token in enumerate(tokens):
        if token.text in OPENING:
            opened.append(at)
        elif token.text in CLOSING and opened:
            closes[opened.pop()] = at
    return closes


def outside(tokens: Sequence[Token], start: int = 0) -> Iterator[int]:
    """The tokens from that one on that stand outside of parentheses and brackets, an opening one among them.
    The last is the one that closes what is around them, if there is one.
    """
    at = start
    while at < len(tokens):
        yield at
        if tokens[at].text in CLOSING:
            return
        at = closing(tokens, at) + 1 if tokens[at].text in OPENING else at + 1


CLAUSES = frozenset(
    """SELECT FROM WHERE GROUP HAVING QUALIFY ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW ON USING
    JOIN UNION EXCEPT INTERSECT MINUS""".split()
)
_NO_CLAUSES = (("DISTINCT", "FROM"), ("DISTINCT", "ON"), ("*", "EXCEPT"), ("WITHIN", "GROUP"))


def begins_clause(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token starts a clause, and is no name spelled like one and no part of an expression."""
    token, before = tokens[at], tokens[at - 1].upper if at else ""
    word = token.upper
    if word not in CLAUSES or token.kind != "word" or before in (".", "AS"):
        return False
    if word == "WINDOW":
        return [t.upper for t in tokens[at + 2 : at + 3]] == ["AS"]
    return (before, word) not in _NO_CLAUSES


def select_lists(tokens: Sequence[Token]) -> Iterator[list[list[Token]]]:
    """The items of each SELECT list, in the order of the text; DISTINCT is not part of the first."""
    for at, token in enumerate(tokens):
        if token.upper != "SELECT":
            continue
        first = at + 1 + (len(tokens) > at + 1 and tokens[at + 1].upper == "DISTINCT")
        ends = (n for n in outside(tokens, first) if tokens[n].text in _ENDS or begins_clause(tokens, n))
        yield [item for item in items_of(tokens[first : next(ends, len(tokens))]) if item]


_ENDS = CLOSING | {"|>"}
