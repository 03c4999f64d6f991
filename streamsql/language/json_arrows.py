"""Operators of PostgreSQL and DuckDB that Spark does not have: -> ->> #> #>>, comparisons with ALL or ANY of
a SELECT, and files as relations. Errors say its own form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from streamsql.errors import RuleFault, Span
from streamsql.language.file_formats import extension, read_by
from streamsql.language.operands import operand
from streamsql.language.query import Query
from streamsql.language.token_groups import closing
from streamsql.language.tokens import Token, quote, quote_name, unquote

_ARROWS = ("->", "->>")
_HASHES = ("#>", "#>>")


def check_json_arrows(query: Query) -> None:
    """Raise RuleFault for the first `json -> 'key'`, with get_json_object as the hint."""
    tokens = query.tokens
    for at in range(1, len(tokens) - 1):
        if tokens[at].text not in _ARROWS or tokens[at].kind != "sign":
            continue
        start = operand(tokens, at)
        lambda_of = tokens[at].text == "->" and start > 0 and tokens[start - 1].text in (",", "(")
        if start == at or not _is_key(tokens[at + 1]) or (lambda_of and _in_call(tokens, start)):
            continue
        last, path = at, "$"
        while last + 1 < len(tokens) and tokens[last].text in _ARROWS and _is_key(tokens[last + 1]):
            path += _step(tokens[last + 1])
            last += 2
        raise _refused(query, start, at, last, tokens[at].text, path)


def _step(key: Token) -> str:
    """The part of a path that a key stands for; DuckDB takes a whole path, which begins with $."""
    name = unquote(key)
    if key.kind == "number":
        return f"[{key.text}]"
    return name[1:] if name.startswith("$") else f".{name}"


def _refused(query: Query, start: int, at: int, behind: int, sign: str, path: str) -> RuleFault:
    """The error for the operator at that token. start: the first token of what is before it; behind: the one
    behind its keys; sign: how it is written.
    """
    tokens = query.tokens
    json = query.text[tokens[start].start : tokens[at - 1].end]
    return RuleFault(
        f"{sign} is an operator of PostgreSQL and DuckDB, which Spark does not have",
        hint=(own := f"get_json_object({json}, '{path}')"),
        instead=own,
        span=Span(tokens[start].start, tokens[behind - 1].end),
        code="OTHER_CONSOLE",
    )


def check_json_paths(query: Query) -> None:
    """Raise RuleFault for the first `json #>> '{a,b}'`, with get_json_object as the hint."""
    tokens = query.tokens
    for at in range(1, len(tokens) - 2):
        path = next((n for n in range(at + 1, at + 4) if n < len(tokens) and tokens[n].kind == "string"), at)
        signs = query.text[tokens[at].start : tokens[path].start].strip()
        if signs not in _HASHES or (start := operand(tokens, at)) == at:
            continue
        keys = [k.strip() for k in unquote(tokens[path]).strip("{} ").split(",")]
        steps = "".join(f"[{k}]" if k.isdecimal() else f".{k}" for k in keys)
        raise _refused(query, start, at, path + 1, signs, f"${steps}")


def check_time_zones(query: Query) -> None:
    """Raise RuleFault for the first `time AT TIME ZONE 'zone'`, with convert_timezone as the hint."""
    tokens = query.tokens
    for at in range(1, len(tokens) - 3):
        words = [t.upper for t in tokens[at : at + 3]]
        start = operand(tokens, at) if words == ["AT", "TIME", "ZONE"] else at
        if start == at or tokens[at + 3].kind != "string":
            continue
        own = (
            f"convert_timezone({tokens[at + 3].text}, {query.text[tokens[start].start : tokens[at - 1].end]})"
        )
        raise RuleFault(
            "Spark has no AT TIME ZONE",
            hint=own,
            instead=own,
            span=Span(tokens[start].start, tokens[at + 3].end),
            code="OTHER_CONSOLE",
        )


def check_files(query: Query) -> None:
    """Raise RuleFault for the first `FROM 'f.csv'` or `FROM read_csv('f.csv')`, with Spark's form."""
    tokens = query.tokens
    for at in range(1, len(tokens)):
        called = tokens[at].upper.startswith("READ_") and [t.text for t in tokens[at + 1 : at + 2]] == ["("]
        close = min(closing(tokens, at + 1), len(tokens) - 1) if called else at
        name = next((t for t in tokens[at : close + 1] if t.kind == "string"), tokens[at])
        if tokens[at - 1].upper not in ("FROM", "JOIN") or name.kind != "string":
            continue
        kind = extension(unquote(name))
        if not kind or _in_arguments(tokens, at):
            continue
        own, first = f"{read_by(unquote(name))}.`{unquote(name)}`", ""
        if kind in ("csv", "tsv"):  # its header is an option of Spark
            own = quote_name(
                re.sub(r"\W+", "_", PurePath(unquote(name)).name.partition(".")[0]).strip("_") or "files"
            )
            sep = ", sep '\\t'" if kind == "tsv" else ""
            options = f"path {quote(unquote(name))}, header true, inferSchema true{sep}"
            first = f"CREATE OR REPLACE TEMPORARY VIEW {own} USING csv OPTIONS ({options}); "
        raise RuleFault(
            "a file in FROM needs its format here",
            hint=first.strip() or own,
            instead=own,
            first=first,
            span=Span(tokens[at].start, tokens[close].end),
            code="OTHER_CONSOLE",
        )


def _in_arguments(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token stands among the arguments of a call, such as substring(a FROM 'b')."""
    depth = 0
    for n in range(at - 1, -1, -1):
        depth += (tokens[n].text == ")") - (tokens[n].text == "(")
        if depth < 0:
            return tokens[n + 1].upper not in ("SELECT", "FROM", "WITH", "(")
    return False


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
        start = operand(tokens, at - 1)
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
