"""What the condition of a join says about event time: until when a row can still find a match.

A text-level reading of Spark's StreamingJoinHelper (Spark guide, "Outer Joins with Watermarking"):
an unmatched row is given out once the watermark has passed its last possible match, so its event
time must be a join key, or be bounded from below by the event time of the other side.
Whatever is not surely read here is None: Spark's own checker decides it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from streamsql.language import functions
from streamsql.language.tokens import Token, tokenize, unquote


@dataclass(frozen=True)
class Side:
    """One input of a join. names: what its relations are called, folded; columns: None when not
    known; event_time: the columns that hold event time of a watermark.
    """

    names: frozenset[str]
    columns: frozenset[str] | None
    event_time: frozenset[str]


@dataclass(frozen=True)
class Condition:
    """equi: an equality of one side with the other; keyed: one over event time; left, right: rows of
    that side have a last possible match. None: not known.
    """

    equi: bool | None
    keyed: bool | None
    left: bool | None
    right: bool | None

    def timed(self, how: str) -> bool | None:
        """Whether a join of that kind knows when a row's last match has come."""
        ranges = {"left": (self.left,), "left_semi": (self.left,), "right": (self.right,)}
        return _any((self.keyed, *ranges.get(how.removesuffix("_outer"), (self.left, self.right))))


def of_using(columns: Iterable[str], left: Side, right: Side) -> Condition:
    """The condition of JOIN … USING (columns)."""
    keyed = any(c.casefold() in left.event_time | right.event_time for c in columns)
    return Condition(True, keyed, False, False)


def of_condition(text: str, left: Side, right: Side) -> Condition:
    """The condition of JOIN … ON text."""
    parts = [_comparison(c) for c in _conjuncts(tokenize(text))]
    pairs = [pair for part in parts for pair in part]
    equal = [(a, b) for a, sign, b in pairs if sign == "="]
    below = [(a, b) for a, sign, b in pairs if sign == "<"]
    return Condition(
        _any(_across(a, b, left, right) for a, b in equal),
        _any(_event_key(a, b, left, right) for a, b in equal),
        _any(_bounds(a, b, left, right) for a, b in below) if right.event_time else False,
        _any(_bounds(a, b, right, left) for a, b in below) if left.event_time else False,
    )


def _any(found: Iterable[bool | None]) -> bool | None:
    """True if one is, else None if one may be, else False."""
    listed = list(found)
    return True if True in listed else None if None in listed else False


Tokens = list[Token]


def split(tokens: Tokens, words: tuple[str, ...]) -> list[Tokens]:
    """Tokens cut at each of these words or signs outside parentheses; the AND of a BETWEEN is none."""
    parts: list[Tokens] = [[]]
    depth = between = 0
    for token in tokens:
        depth += (token.text in "([") - (token.text in ")]")
        if depth == 0 and token.upper == "BETWEEN":
            between += 1
        if depth == 0 and token.upper in words and not (token.upper == "AND" and between):
            parts.append([])
            continue
        if depth == 0 and token.upper == "AND" and between:
            between -= 1
        parts[-1].append(token)
    return parts


def bare(tokens: Tokens) -> Tokens:
    """Tokens without the parentheses around all of them."""
    while len(tokens) > 1 and tokens[0].text == "(" and functions.closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tokens


def _conjuncts(tokens: Tokens) -> list[Tokens]:
    tokens = bare(tokens)
    if len(split(tokens, ("OR",))) > 1 or any(t.upper == "CASE" for t in tokens):
        return [tokens]
    parts = split(tokens, ("AND",))
    return [tokens] if len(parts) == 1 else [c for part in parts for c in _conjuncts(part)]


def conjuncts(text: str) -> list[str]:
    """The conditions that AND puts together, as texts."""
    return [text[part[0].start : part[-1].end] for part in _conjuncts(tokenize(text)) if part]


_SIGNS = ("<", "<=", ">", ">=", "=", "==", "<=>")


def _comparison(tokens: Tokens) -> list[tuple[Tokens, str, Tokens]]:
    """(a, "=" or "<", b): what a condition compares; nothing for other conditions. BETWEEN is two."""
    if any(t.upper in ("OR", "NOT", "CASE") for t in tokens):
        return []
    between = split(tokens, ("BETWEEN",))
    if len(between) == 2:
        bounds = split(between[1], ("AND",))
        if len(bounds) != 2:
            return []
        return [(bounds[0], "<", between[0]), (between[0], "<", bounds[1])]
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.text in "([") - (token.text in ")]")
        if depth == 0 and token.text in _SIGNS:
            before, after = tokens[:at], tokens[at + 1 :]
            if "=" in token.text and token.text not in ("<=", ">="):
                return [(before, "=", after)]
            return [(before, "<", after) if token.text.startswith("<") else (after, "<", before)]
    return []


def _references(tokens: Tokens) -> list[tuple[str, str]]:
    """(qualifier, column) of the columns in an expression, folded; calls, words of intervals and
    literals left out.
    """
    found = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.upper == "INTERVAL":
            at += 1
            while at < len(tokens) and (tokens[at].kind in ("number", "string", "word")):
                at += 1
            continue
        if token.kind in ("word", "quoted") and token.upper not in _WORDS:
            names = [unquote(token).casefold()]
            while at + 2 < len(tokens) and tokens[at + 1].text == ".":
                names.append(unquote(tokens[at + 2]).casefold())
                at += 2
            if tokens[at + 1 : at + 2] and tokens[at + 1].text == "(":
                at += 1
                continue
            found.append((names[-2] if len(names) > 1 else "", names[-1]))
        at += 1
    return found


_WORDS = frozenset("NULL TRUE FALSE AS DIV TIMESTAMP DATE IS IN LIKE".split())


def _belongs(reference: tuple[str, str], side: Side, other: Side) -> bool | None:
    """Whether a column is of a side and not of the other."""
    qualifier, name = reference
    if qualifier:
        if qualifier in side.names or qualifier in other.names:
            return (
                (qualifier in side.names) if (qualifier in side.names) != (qualifier in other.names) else None
            )
        return None  # a field of a struct, or a longer name
    if side.columns is None or other.columns is None:
        return None
    return (name in side.columns) if (name in side.columns) != (name in other.columns) else None


def _across(a: Tokens, b: Tokens, left: Side, right: Side) -> bool | None:
    """Whether one expression is of one side and the other of the other."""
    first = [_belongs(r, left, right) for r in _references(a)]
    second = [_belongs(r, left, right) for r in _references(b)]
    if None in first or None in second:
        return None
    return len(set(first)) == 1 and len(set(second)) == 1 and set(first) != set(second)


def _column_of(tokens: Tokens) -> tuple[str, str] | None:
    """The column that an expression is; None when it is more than that."""
    tokens = bare(tokens)
    names, dots = tokens[::2], tokens[1::2]
    plain = all(t.kind in ("word", "quoted") for t in names) and all(t.text == "." for t in dots)
    found = _references(tokens)
    return found[0] if plain and len(found) == 1 else None


def _event_key(a: Tokens, b: Tokens, left: Side, right: Side) -> bool | None:
    across = _across(a, b, left, right)
    if across is False:
        return False
    for column in filter(None, (_column_of(a), _column_of(b))):
        for side, other in ((left, right), (right, left)):
            mine = _belongs(column, side, other)
            if column[1] in side.event_time and mine is not False:
                return across if mine else None
    return False if across else None


def _terms(tokens: Tokens, sign: int) -> list[tuple[int, Tokens]]:
    """The terms of a sum, each with its sign."""
    tokens = bare(tokens)
    terms: list[tuple[int, Tokens]] = []
    depth, now = 0, sign
    current: Tokens = []
    for token in tokens:
        depth += (token.text in "([") - (token.text in ")]")
        if depth == 0 and token.text in ("+", "-") and current:
            terms.append((now, current))
            now, current = sign if token.text == "+" else -sign, []
        else:
            current.append(token)
    return [*terms, (now, current)]


def _bounds(small: Tokens, big: Tokens, state: Side, other: Side) -> bool | None:
    """Whether `small < big` bounds a row of `state` from below by the event time of the other side."""
    terms = [*_terms(big, 1), *_terms(small, -1)]
    mine: list[int] = []
    others = False
    for sign, term in terms:
        references = _references(term)
        column = _column_of(term)
        if not references:
            if any(t.text == "(" for t in term):
                return None  # a call of constants
            continue
        sides = [_belongs(r, state, other) for r in references]
        if None in sides or column is None:
            return None
        if sides[0]:
            mine.append(sign)
        elif column[1] not in other.event_time:
            return False
        else:
            others = True
    if not mine:
        return False
    if len(mine) > 1 or not others:
        return None
    return mine[0] > 0
