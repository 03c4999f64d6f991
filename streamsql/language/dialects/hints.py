"""Clauses and operators of other dialects for which Spark has no form, and what there is instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from streamsql.language.dialects.expressions import OF_READERS
from streamsql.language.dialects.statements import operators
from streamsql.language.dialects.translation import makes_rows_side_by_side
from streamsql.language.token_groups import closing
from streamsql.language.tokens import Token, tokenize

_CLAUSES = {
    "EXCLUDE TIES": "a window has all rows of its frame",
    "EXCLUDE GROUP": "a window has all rows of its frame",
    "EXCLUDE CURRENT ROW": "two frames, before and behind the row, leave it out",
    "USING <": "ORDER BY … ASC sorts upwards",
    "USING >": "ORDER BY … DESC sorts downwards",
    "MATCH_RECOGNIZE (": "a processor in Python finds patterns of rows: HELP stateful;",
    "FOR JSON": "to_json(struct(*)) makes a text of a row",
    "PERCENT": "FROM … TABLESAMPLE (50 PERCENT) takes about as many rows of a table",
    "COLUMNS (": "a query names its columns, or takes * EXCEPT (…)",
}
"""The words of a clause, and the hint."""


def hint_of(text: str) -> str:
    """The hint for the first such clause or operator of a statement; "" for none."""
    tokens = tokenize(text, strict=False)
    if re.search(r"\bLIMIT\s+\d+\s*%", text, re.IGNORECASE):
        return _CLAUSES["PERCENT"]
    if makes_rows_side_by_side(tokens):
        return "inline(arrays_zip(a, b)) AS (a, b) makes rows of several lists side by side"
    if any(_is_numbered(tokens, at) for at in range(1, len(tokens) - 1)):
        return "a query names its columns; ORDER BY 2 and GROUP BY 2 take the second item of SELECT"
    if option := next(_reader_options(tokens), ""):
        return f"{option} is an option of DuckDB; csv.`f.csv` WITH (…) takes those of DESCRIBE CONNECTOR csv;"
    for at in range(1, len(tokens)):
        for parts, hint in _forms():
            if _stands(tokens[at : at + len(parts)], parts):
                return hint
    return ""


_BEFORE_NUMBER = frozenset(("SELECT", "DISTINCT", "WHERE", "AND", "OR", "BY", ",", "(", "="))


def _is_numbered(tokens: list[Token], at: int) -> bool:
    """Whether a token is the sign of `#1`, which is the first column in DuckDB."""
    number = tokens[at + 1]
    sign = tokens[at].text == "#" and number.kind == "number" and tokens[at].end == number.start
    return sign and tokens[at - 1].upper in _BEFORE_NUMBER


def _reader_options(tokens: list[Token]) -> Iterator[str]:
    """The options of `read_csv('f.csv', skip = 1)` that Spark does not have under another name."""
    for at, token in enumerate(tokens[:-1]):
        if token.upper in ("READ_CSV", "READ_CSV_AUTO") and tokens[at + 1].text == "(":
            inside = tokens[at + 2 : closing(tokens, at + 1)]
            named = (key for key, sign in zip(inside, inside[1:], strict=False) if sign.text == "=")
            yield from (key.text for key in named if key.text.casefold() not in OF_READERS)


def _stands(tokens: list[Token], parts: tuple[str, ...]) -> bool:
    """Whether these are the tokens of a form; the parts of a sign stand side by side."""
    if tuple(t.upper for t in tokens) != parts:
        return False
    sides = zip(tokens, tokens[1:], strict=False)
    return tokens[0].kind == "word" or all(a.end == b.start for a, b in sides)


@cache
def _forms() -> tuple[tuple[tuple[str, ...], str], ...]:
    """The tokens of each form, with its hint."""
    forms = [*_CLAUSES.items(), *((sign, here) for sign, here in operators())]
    return tuple((tuple(t.upper for t in tokenize(sign)), hint) for sign, hint in forms)
