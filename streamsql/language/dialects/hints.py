"""Clauses and operators of other dialects for which Spark has no form, and what there is instead."""

from __future__ import annotations

import re
from functools import cache

from streamsql.language.dialects.statements import operators
from streamsql.language.dialects.translation import makes_rows_side_by_side
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
    for at in range(1, len(tokens)):
        for parts, hint in _forms():
            if _stands(tokens[at : at + len(parts)], parts):
                return hint
    return ""


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
