"""A list behind SELECT in which a comma is missing."""

from __future__ import annotations

from collections.abc import Sequence

from streamsql.errors import Span
from streamsql.language.query import read_query
from streamsql.language.token_groups import CLAUSES
from streamsql.language.tokens import Token, tokenize

_WITHIN = frozenset("AS DISTINCT ALL AND OR NOT IN IS LIKE BETWEEN CASE WHEN THEN ELSE OVER".split())
"""Words within an expression."""


def missing_comma(text: str, offset: int) -> tuple[str, Span] | None:
    """(the query with a comma before the token at which it cannot be read, or before the one in front of it;
    what stands behind the comma), if it can be read then. None for another text.
    """
    tokens = tokenize(text, strict=False)
    near = [n for n, token in enumerate(tokens) if token.start <= offset][-2:]
    for at in near:
        if at == 0 or not (_is_value(tokens[at - 1]) and _is_value(tokens[at]) and _in_select(tokens[:at])):
            continue
        end = tokens[at - 1].end
        corrected = f"{text[:end]},{text[end:]}"
        if read_query(corrected).tree is not None:
            return f"{corrected.strip()};", tokens[at].span
    return None


def _is_value(token: Token) -> bool:
    """Whether an expression can begin or end with a token."""
    return token.text == ")" or (token.kind != "sign" and token.upper not in CLAUSES | _WITHIN)


def _in_select(before: Sequence[Token]) -> bool:
    """Whether tokens end within the list behind a SELECT, and in no parenthesis in it."""
    depth = 0
    for token in reversed(before):
        depth += (token.text == ")") - (token.text == "(")
        if depth < 0:
            return False
        if depth == 0 and token.upper in CLAUSES:
            return token.upper == "SELECT"
    return False
