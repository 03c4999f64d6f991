"""Time bounds in the condition of a join: until when a row can still match.

They follow Spark's StreamingJoinHelper (Spark guide, "Outer Joins with Watermarking"): an unmatched row is
emitted after the watermark has passed its last possible match. Its event time must therefore be a join key,
or be bounded from below by the event time of the other side. None means that only Spark's own check can
decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from streamsql.language.expression import Expression


@dataclass(frozen=True)
class Side:
    """One input of a join. names: the names of its relations, case-folded; columns: None if not known;
    event_time: the columns with event time of a watermark.
    """

    names: frozenset[str]
    columns: frozenset[str] | None
    event_time: frozenset[str]


@dataclass(frozen=True)
class Condition:
    """equi: it has an equality between both sides; keyed: an equality of event times; left, right: rows of
    that side have a last possible match. None: not known.
    """

    equi: bool | None
    keyed: bool | None
    left: bool | None
    right: bool | None

    def timed(self, how: str) -> bool | None:
        """Whether the time of a row's last match is bounded in a join of that kind."""
        ranges = {"left": (self.left,), "left_semi": (self.left,), "right": (self.right,)}
        return _any((self.keyed, *ranges.get(how.removesuffix("_outer"), (self.left, self.right))))


def of_using(columns: Iterable[str], left: Side, right: Side) -> Condition:
    """The condition of JOIN … USING (columns)."""
    keyed = any(c.casefold() in left.event_time | right.event_time for c in columns)
    return Condition(True, keyed, False, False)


def of_condition(condition: Expression, left: Side, right: Side) -> Condition:
    """The condition of JOIN … ON."""
    pairs = [pair for part in condition.conjuncts() for pair in part.comparisons()]
    equal = [(a, b) for a, sign, b in pairs if sign == "="]
    below = [(a, b) for a, sign, b in pairs if sign == "<"]
    return Condition(
        _any(_across(a, b, left, right) for a, b in equal),
        _any(_event_key(a, b, left, right) for a, b in equal),
        _any(_bounds(a, b, left, right) for a, b in below) if right.event_time else False,
        _any(_bounds(a, b, right, left) for a, b in below) if left.event_time else False,
    )


def _any(answers: Iterable[bool | None]) -> bool | None:
    """True if one is True, else None if one is None, else False."""
    listed = list(answers)
    return True if True in listed else None if None in listed else False


def _belongs(reference: tuple[str, str], side: Side, other: Side) -> bool | None:
    """Whether a column belongs to a side and not to the other."""
    qualifier, name = reference
    if qualifier:
        mine = qualifier in side.names
        return mine if mine != (qualifier in other.names) else None  # else a field of a struct
    if side.columns is None or other.columns is None:
        return None
    return (name in side.columns) if (name in side.columns) != (name in other.columns) else None


def _across(a: Expression, b: Expression, left: Side, right: Side) -> bool | None:
    """Whether the two expressions belong to different sides."""
    first = [_belongs(r, left, right) for r in a.references()]
    second = [_belongs(r, left, right) for r in b.references()]
    if None in first or None in second:
        return None
    return len(set(first)) == 1 and len(set(second)) == 1 and set(first) != set(second)


def _event_key(a: Expression, b: Expression, left: Side, right: Side) -> bool | None:
    across = _across(a, b, left, right)
    if across is False:
        return False
    for column in filter(None, (a.bare_column(), b.bare_column())):
        for side, other in ((left, right), (right, left)):
            mine = _belongs(column, side, other)
            if column[1] in side.event_time and mine is not False:
                return across if mine else None
    return False if across else None


def _bounds(small: Expression, big: Expression, state: Side, other: Side) -> bool | None:
    """Whether `small < big` bounds a row of `state` from below by the event time of the other side."""
    mine: list[int] = []
    others = False
    for sign, term in [*big.terms(1), *small.terms(-1)]:
        references, column = term.references(), term.bare_column()
        if not references:
            if term.is_call:
                return None  # a call with constant arguments
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
