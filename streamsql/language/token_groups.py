"""Tokens between commas and parentheses, and those that start clauses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsql.language.tokens import Token

OPENING, CLOSING = frozenset("([{"), frozenset(")]}")


def items_of(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens between commas outside of parentheses and `< >`."""
    item: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.text in ("(", "<", "[")
        depth -= token.text in (")", "]") or token.text.count(">") if token.kind == "sign" else 0
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
        behind, depth = first, 0
        while behind < len(tokens):
            depth += (tokens[behind].text in "([") - (tokens[behind].text in ")]")
            if depth < 0 or (depth == 0 and (tokens[behind].text == "|>" or begins_clause(tokens, behind))):
                break
            behind += 1
        yield [item for item in items_of(list(tokens[first:behind])) if item]
