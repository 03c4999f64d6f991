"""Places in the text of a statement that Spark refuses, according to its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from streamsql.errors import Span
from streamsql.language.expression import TIME_WINDOWS
from streamsql.language.file_formats import extension
from streamsql.language.token_groups import CLOSING, OPENING, closing
from streamsql.language.tokens import Token, tokenize, unquote
from streamsql.language.unread_query import names_read


def place_of_relation(text: str, name: str) -> Span | None:
    """The first place where a text reads a relation of that name; None if there is none."""
    tokens = tokenize(text, strict=False)
    for relation, span in names_read(tokens):
        clauses = [t.upper for t in tokens if t.end <= span.start and t.upper in _CLAUSES]
        if relation.casefold() == name.casefold() and clauses[-1:] not in _OF_VALUES:
            return span
    return None


_OF_VALUES = (["SELECT"], ["WHERE"], ["GROUP"], ["HAVING"], ["ORDER"])
"""Clauses behind which a comma is not followed by a relation."""
_CLAUSES = frozenset(("FROM", "JOIN", "INTO", "TABLE", *(word for (word,) in _OF_VALUES)))


def text_as_relation(text: str, offset: int) -> Token | None:
    """The text in quotes at the offset, where it stands behind FROM or JOIN, without an extension that tells
    the format of a file; None for anything else.
    """
    tokens = tokenize(text, strict=False)
    for before, token in pairwise(tokens):
        if token.start <= offset < token.end:
            relation = token.kind == "string" and before.upper in ("FROM", "JOIN")
            return token if relation and not extension(unquote(token)) else None
    return None


def unlike_windows(text: str) -> tuple[Span, str, str] | None:
    """(its place, it, the window of GROUP BY) of a window in SELECT that is not that of its GROUP BY; None if
    there is none.
    """
    tokens = tokenize(text, strict=False)
    selected: list[tuple[Span, str]] = []
    for at, token in enumerate(tokens[:-1]):
        if token.text.casefold() not in TIME_WINDOWS or tokens[at + 1].text != "(":
            continue
        span = Span(token.start, tokens[min(closing(tokens, at + 1), len(tokens) - 1)].end)
        written = text[span.start : span.end]
        clauses = [t.upper for t in tokens[:at] if t.upper in ("SELECT", "FROM", "GROUP")]
        if clauses[-1:] == ["SELECT"]:
            selected.append((span, written))
        elif clauses[-1:] == ["GROUP"]:
            other = next((pair for pair in selected if _plain(pair[1]) != _plain(written)), None)
            if other:
                return *other, written
    return None


def any_of_array(text: str) -> tuple[Span, str]:
    """The first `a = ANY (list)` of PostgreSQL, and array_contains(list, a); "" for none."""
    tokens = tokenize(text, strict=False)
    for at in range(2, len(tokens) - 2):
        called = tokens[at].upper in ("ANY", "SOME") and tokens[at + 1].text == "("
        close = closing(tokens, at + 1) if called and tokens[at - 1].text == "=" else len(tokens)
        start = operand(tokens, at - 1)
        if close < len(tokens) and start < at - 1:
            value = text[tokens[start].start : tokens[at - 2].end]
            inside = text[tokens[at + 2].start : tokens[close - 1].end]
            return Span(tokens[start].start, tokens[close].end), f"array_contains({inside}, {value})"
    return Span(0, 0), ""


def _plain(call: str) -> str:
    return "".join(call.split()).casefold()


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
