"""Properties of a query that sqlglot cannot parse, from its tokens. Nothing here raises an error.

Such a query goes to Spark as text; only its relations, its calls and whether it groups are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from streamsql.errors import Span
from streamsql.language.terminals import dotted
from streamsql.language.token_groups import closers, outside
from streamsql.language.tokens import Token, unquote
from streamsql.language.tree_nodes import Call

_BEFORE_RELATION = ("FROM", "JOIN", "STREAM", "TABLE", ",")
_NO_RELATION = ("STREAM", "SELECT", "LATERAL", "TABLE", "WITH", "FROM", "VALUES")


def words_of(tokens: Iterable[Token]) -> frozenset[str]:
    """The names and words of a text, case-folded."""
    return frozenset(unquote(t).casefold() for t in tokens if t.kind in ("word", "quoted"))


def calls_of_tokens(tokens: Sequence[Token]) -> list[Call]:
    """The words before a parenthesis that can be function calls."""
    calls = []
    for at, (token, after) in enumerate(zip(tokens, tokens[1:], strict=False)):
        before = tokens[at - 1].upper if at else ""
        if token.kind in ("word", "quoted") and after.text == "(" and before not in (".", "LIKE", "ILIKE"):
            name = unquote(token).casefold()
            calls.append(Call(name, token.span, _is_parted(tokens, at + 1)))
    return calls


def _is_parted(tokens: Sequence[Token], opening: int) -> bool:
    """Whether the arguments of a call contain PARTITION BY or ORDER BY."""
    return any(tokens[n].upper in ("PARTITION", "ORDER") for n in outside(tokens, opening + 1))


def names_read(tokens: Sequence[Token]) -> list[tuple[str, Span]]:
    """The names in positions of relations, with their spans; not those of WITH queries."""
    names, hidden = [], list(with_queries(tokens))
    defined = {place for _, place, _, _ in hidden}
    for at, token in enumerate(tokens):
        if at in defined or token.kind not in ("word", "quoted") or token.upper in _NO_RELATION:
            continue
        before = tokens[at - 1].upper if at else ""
        outer = tokens[at - 2].upper if at > 1 else ""
        if before in _BEFORE_RELATION or (before == "(" and outer in (*_BEFORE_RELATION, "(")):
            end, name = dotted(tokens, at) or (at + 1, unquote(token))
            seen = any(n == name.casefold() and first <= at < last for n, _, first, last in hidden)
            if not seen and [t.text for t in tokens[end : end + 1]] != ["("]:
                names.append((name, Span(token.start, tokens[end - 1].end)))
    return names


def with_queries(tokens: Sequence[Token]) -> Iterator[tuple[str, int, int, int]]:
    """(folded name, the token that gives it, the tokens from, to) of each WITH query, where its name stands
    for it: behind it, up to the end of the parentheses around it; in WITH RECURSIVE in itself, too.
    """
    closing = closers(tokens)
    for first, token in enumerate(tokens):
        around = first == 0 or first - 1 in closing
        if token.upper != "WITH" or token.kind != "word" or not around:
            continue
        end = closing[first - 1] if first else len(tokens)
        recursive = first + 1 < end and tokens[first + 1].upper == "RECURSIVE"
        at = first + 1 + recursive
        while at < end:
            name = unquote(tokens[at]).casefold()
            body = closing.get(at + 1, at) + 1  # behind a list of columns
            body += body < end and tokens[body].upper == "AS"
            if body not in closing:
                break
            yield name, at, (body if recursive else closing[body]), end
            at = closing[body] + 2
            if at > end or tokens[at - 1].text != ",":
                break
