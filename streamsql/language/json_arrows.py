"""Operators of PostgreSQL and DuckDB that Spark does not have: -> and ->>, and comparisons with ALL or ANY
of a SELECT. Errors say its own form.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamsql.errors import RuleFault, Span
from streamsql.language.query import Query
from streamsql.language.tokens import Token, unquote

_ARROWS = ("->", "->>")


def check_json_arrows(query: Query) -> None:
    """Raise RuleFault for the first `json -> 'key'`, with get_json_object as the hint."""
    tokens = query.tokens
    for at in range(1, len(tokens) - 1):
        if tokens[at].text not in _ARROWS or tokens[at].kind != "sign":
            continue
        start = _operand(tokens, at)
        lambda_of = tokens[at].text == "->" and start > 0 and tokens[start - 1].text in (",", "(")
        if start == at or not _is_key(tokens[at + 1]) or (lambda_of and _in_call(tokens, start)):
            continue
        last, path = at, "$"
        while last + 1 < len(tokens) and tokens[last].text in _ARROWS and _is_key(tokens[last + 1]):
            key = tokens[last + 1]
            path += f"[{key.text}]" if key.kind == "number" else f".{unquote(key)}"
            last += 2
        json = query.text[tokens[start].start : tokens[at - 1].end]
        raise RuleFault(
            f"{tokens[at].text} is an operator of PostgreSQL and DuckDB, which Spark does not have",
            hint=f"get_json_object({json}, '{path}')",
            span=Span(tokens[start].start, tokens[last - 1].end),
            code="OTHER_CONSOLE",
        )


_MOST = {">": "max", ">=": "max", "<": "min", "<=": "min"}
"""A comparison → the value that it is compared with if it is to be true for ALL."""


def check_quantified(query: Query) -> None:
    """Raise RuleFault for the first `a > ALL (SELECT …)` or `a = ANY (SELECT …)`, with what to write."""
    tokens = query.tokens
    for at in range(2, len(tokens) - 2):
        word, sign = tokens[at].upper, tokens[at - 1].text
        select = tokens[at + 1].text == "(" and tokens[at + 2].upper == "SELECT"
        if word not in ("ALL", "ANY", "SOME") or not select or sign not in (*_MOST, "=", "<>", "!="):
            continue
        start = _operand(tokens, at - 1)
        left = query.text[tokens[start].start : tokens[at - 2].end] if start < at - 1 else "value"
        raise RuleFault(
            f"Spark has no {sign} {word} (SELECT …)",
            hint=_quantified(query, left, at),
            span=Span(tokens[at - 1].start, tokens[at].end),
            code="OTHER_CONSOLE",
        )


def _quantified(query: Query, left: str, at: int) -> str:
    """What a comparison with ALL or ANY, the token at that place, is in Spark."""
    tokens, sign, word = query.tokens, query.tokens[at - 1].text, query.tokens[at].upper
    column, rest = "…", "FROM …"
    if tokens[at + 4].upper == "FROM":
        depth, last = 1, at + 2
        while depth and last + 1 < len(tokens):
            depth += (tokens[last].text == "(") - (tokens[last].text == ")")
            last += bool(depth)
        column = tokens[at + 3].text
        rest = query.text[tokens[at + 4].start : tokens[last - 1].end]
    if sign in _MOST:
        most = _MOST[sign]
        most = most if word == "ALL" else "min" if most == "max" else "max"
        return f"{left} {sign} (SELECT {most}({column}) {rest})"
    if (sign == "=") != (word == "ALL"):
        return f"{left} {'IN' if sign == '=' else 'NOT IN'} (SELECT {column} {rest})"
    return "compare with the min and the max of the SELECT"


def _is_key(token: Token) -> bool:
    return token.kind in ("string", "number")


def _operand(tokens: Sequence[Token], arrow: int) -> int:
    """The first token of the operand before an arrow: a name, or a call or parenthesis; the arrow if none."""
    at = arrow - 1
    if tokens[at].text == ")":
        depth = 0
        while at >= 0:
            depth += (tokens[at].text == ")") - (tokens[at].text == "(")
            if depth == 0:
                break
            at -= 1
        if at > 0 and tokens[at - 1].kind == "word" and tokens[at - 1].end == tokens[at].start:
            at -= 1
        return max(at, 0)
    if tokens[at].kind == "string":
        return at
    if tokens[at].kind not in ("word", "quoted"):
        return arrow
    while at > 1 and tokens[at - 1].text == "." and tokens[at - 2].kind in ("word", "quoted"):
        at -= 2
    return at


def _in_call(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token stands behind the first argument of a call, where an arrow is that of a lambda."""
    depth = 0
    commas = 0
    for n in range(at - 1, -1, -1):
        text = tokens[n].text
        depth += (text in ")]") - (text in "([")
        commas += depth == 0 and text == ","
        if depth < 0:
            called = n > 0 and tokens[n - 1].kind == "word" and tokens[n - 1].end == tokens[n].start
            return called and commas > 0
    return False
