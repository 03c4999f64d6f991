"""Types and keys of other systems among the columns that a statement declares, in Spark's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsql.language.edits import Edit
from streamsql.language.statements.base import OTHER_TYPES
from streamsql.language.token_groups import closing
from streamsql.language.tokens import Token

_UNSIGNED = {
    "TINYINT": "SMALLINT",
    "SMALLINT": "INT",
    "INT": "BIGINT",
    "INTEGER": "BIGINT",
    "BIGINT": "DECIMAL(20)",
}
"""A whole number → the type here that has the values of it UNSIGNED."""
_COLUMNS = frozenset(("STREAM", "TABLE", "SINK"))
_NO_COLUMNS = frozenset(("AS", "USING", "OPTIONS", "KEY"))


def type_edits(tokens: Sequence[Token]) -> Iterator[Edit]:
    """The edits of UNSIGNED, PRIMARY KEY and the types of other systems among the columns that a statement
    declares.
    """
    words = [t.upper for t in tokens[:5]]
    if words[:2] == ["ALTER", "TABLE"] and "ADD" in words:
        yield from _column_edits(tokens, [t.upper for t in tokens].index("ADD"), len(tokens))
    if words[:1] != ["CREATE"] or _COLUMNS.isdisjoint(words):
        return
    opening = next((n for n, t in enumerate(tokens[:9]) if t.text == "("), len(tokens))
    close = closing(tokens, opening)
    if close < len(tokens) and _NO_COLUMNS.isdisjoint(t.upper for t in tokens[:opening]):
        yield from _column_edits(tokens, opening + 1, close)


def _column_edits(tokens: Sequence[Token], start: int, close: int) -> Iterator[Edit]:
    unsized = "VARCHAR" if tokens[1].upper == "TABLE" else ""
    depth = 0
    for at in range(start, close):
        token, before = tokens[at], tokens[at - 1]
        depth += token.text.count("(") - token.text.count(")")
        behind = tokens[at + 1] if at + 1 < close else token
        if depth == 0 and token.upper == "PRIMARY" and behind.upper == "KEY":
            yield _key(tokens, at)
        elif before.kind in ("word", "quoted") and before.upper != "AS":
            if behind.upper == "UNSIGNED" and token.upper in _UNSIGNED:
                own = _UNSIGNED[token.upper]
                yield token.start, behind.end, own
            elif token.upper == "DOUBLE" and behind.upper == "PRECISION":
                yield token.start, behind.end, "DOUBLE"
            elif behind.text == "[" and tokens[at + 2].text == "]" and depth == 0:
                own = f"ARRAY<{OTHER_TYPES.get(token.upper, token.text)}>"
                yield token.start, tokens[at + 2].end, own
            elif token.upper in OTHER_TYPES and token.upper != "ROW" and depth == 0:
                own = OTHER_TYPES[token.upper]
                yield token.start, token.end, own
            elif token.upper == unsized and behind.text != "(" and depth == 0:
                yield token.start, token.end, "STRING"


def _key(tokens: Sequence[Token], at: int) -> Edit:
    """The edit that leaves out PRIMARY KEY behind a column, or `, PRIMARY KEY (a, b) NOT ENFORCED`."""
    last = at + 1
    if tokens[last + 1].text == "(":
        last = closing(tokens, last + 1)
    if [t.upper for t in tokens[last + 1 : last + 3]] == ["NOT", "ENFORCED"]:
        last += 2
    start = at - 1 if tokens[at - 1].text == "," else at
    return (tokens[start].start if start < at else tokens[at - 1].end, tokens[last].end, "")
