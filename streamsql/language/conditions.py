"""The conditions that AND puts together, and what each compares, with their exact places in the text.

sqlglot gives places to names and literals only, so that `at + INTERVAL 1 HOUR` would end behind `at`: the
words between them (AND, BETWEEN, the signs of a comparison) say where each part begins and ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.errors import Span
from streamsql.language.expression import Expression
from streamsql.language.tokens import Token, tokenize

_SIGNS = frozenset(("=", "==", "<=>", "<", "<=", ">", ">="))
_OPENING, _CLOSING = frozenset(("(", "[")), frozenset((")", "]"))


@dataclass(frozen=True)
class Comparison:
    """small < big, or (equal) small = big; `<` is also `<=`."""

    small: Expression
    big: Expression
    equal: bool


def conditions_of(expression: Expression) -> list[Expression]:
    """The conditions that AND puts together, each with its whole text."""
    parts = expression.conjuncts()
    tokens = tokenize(expression.text)
    pieces = _split(tokens, _ands(tokens))
    if len(pieces) != len(parts):
        return [expression]
    return [_placed(p, piece, expression) for p, piece in zip(parts, pieces, strict=True)]


def comparisons_of(condition: Expression) -> list[Comparison]:
    """What a condition compares; BETWEEN is two comparisons. [] for a condition of another kind."""
    comparisons = condition.comparisons()
    tokens = tokenize(condition.text)
    words = [n for n in _level(tokens) if tokens[n].upper in ("BETWEEN", "AND") or tokens[n].text in _SIGNS]
    pieces = _split(tokens, words)
    if len(comparisons) == 2 and len(pieces) == 3:
        middle, low, high = pieces
        (a, _, b), (c, _, d) = comparisons
        return [
            Comparison(_placed(a, low, condition), _placed(b, middle, condition), False),
            Comparison(_placed(c, middle, condition), _placed(d, high, condition), False),
        ]
    if len(comparisons) != 1 or len(pieces) != 2:
        return []
    small, sign, big = comparisons[0]
    first, second = pieces
    if tokens[words[0]].text in (">", ">="):
        first, second = second, first
    return [Comparison(_placed(small, first, condition), _placed(big, second, condition), sign == "=")]


def _placed(part: Expression, piece: Span, whole: Expression) -> Expression:
    return replace(part, span=piece.shift(whole.span.start))


def _level(tokens: list[Token]) -> list[int]:
    """The tokens outside of parentheses and CASE."""
    depth, numbers = 0, []
    for number, token in enumerate(tokens):
        if token.text in _CLOSING or token.upper == "END":
            depth -= 1
        if depth == 0:
            numbers.append(number)
        if token.text in _OPENING or token.upper == "CASE":
            depth += 1
    return numbers


def _ands(tokens: list[Token]) -> list[int]:
    """The ANDs between conditions; that of a BETWEEN is none."""
    ands, open_between = [], 0
    for number in _level(tokens):
        if tokens[number].upper == "BETWEEN":
            open_between += 1
        elif tokens[number].upper == "AND":
            if open_between:
                open_between -= 1
            else:
                ands.append(number)
    return ands


def _split(tokens: list[Token], at: list[int]) -> list[Span]:
    """The pieces of a text between some of its tokens."""
    bounds = [-1, *at, len(tokens)]
    pieces = []
    for before, after in zip(bounds, bounds[1:], strict=False):
        if after - before < 2:
            return []
        pieces.append(Span(tokens[before + 1].start, tokens[after - 1].end))
    return pieces
