"""The operands of a sign in an expression, by the tokens beside it."""

from __future__ import annotations

from collections.abc import Sequence

from streamsql.language.token_groups import CLOSING, OPENING
from streamsql.language.tokens import Token

_NO_CALLS = frozenset("SELECT WHERE AND OR NOT IN ON BY WHEN THEN ELSE HAVING FROM AS LIKE VALUES".split())
"""Words before a parenthesis or bracket that call nothing."""


def operand(tokens: Sequence[Token], sign: int) -> int:
    """The first token of the operand before a sign: a value with its casts, elements and fields; the sign if
    there is none.
    """
    at = sign - 1
    if at >= 0 and tokens[at].text in CLOSING:
        at = _before_group(tokens, at)
    elif (
        at < 0
        or tokens[at].kind not in ("word", "quoted", "string", "number")
        or tokens[at].kind == "word"
        and tokens[at].upper in _NO_CALLS
    ):
        return sign
    if at > 1 and tokens[at - 1].text in ("::", "."):
        return operand(tokens, at - 1)
    return at


def _before_group(tokens: Sequence[Token], close: int) -> int:
    """The first token of what a bracket at that place closes: a call, an element or a parenthesis."""
    depth, at = 0, close
    while at > 0:
        depth += (tokens[at].text in CLOSING) - (tokens[at].text in OPENING)
        if depth == 0:
            break
        at -= 1
    if at == 0:
        return at
    before, beside = tokens[at - 1], tokens[at - 1].end == tokens[at].start
    if beside and before.text in CLOSING and tokens[at].text == "[":
        return _before_group(tokens, at - 1)
    named = before.kind in ("word", "quoted") and before.upper not in _NO_CALLS
    named = named and (beside or (tokens[at].text == "{" and before.upper == "MAP"))
    element = beside and before.kind == "string" and tokens[at].text == "["
    return at - 1 if named or element else at
