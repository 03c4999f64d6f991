"""The document of a query: its clauses on lines."""

from __future__ import annotations

from collections.abc import Sequence

from streamsql.features.fmt.documents import SPACE, Doc, Indent, Line, group
from streamsql.features.fmt.trees import (
    Item,
    Layout,
    Paren,
    before,
    on_new_line,
    sign_of,
    split_at,
    word_of,
)

_BY = ("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE")
_CLAUSES = ("SELECT", "FROM", "WHERE", "HAVING", "QUALIFY", "WINDOW", "LIMIT", "OFFSET", "PIVOT", "UNPIVOT")
_SET_OPERATIONS = ("UNION", "INTERSECT", "MINUS", "EXCEPT")
_JOIN_WORDS = ("NATURAL", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "OUTER")
_QUANTIFIERS = ("DISTINCT", "ALL")


def query_doc(items: Sequence[Item]) -> Doc:
    """The document of the items of a query: on one line if it is written so and fits."""
    parts = [items[a:b] for a, b in _parts(items)]
    docs: list[Doc] = [_part_doc(parts[0])]
    for last, part in zip(parts, parts[1:], strict=False):
        apart = word_of(last[0]) in ("WITH", *_SET_OPERATIONS) or word_of(part[0]) in _SET_OPERATIONS
        docs += [before(part[0]) if apart else Line(), _part_doc(part)]
    return group(docs, broken=any(on_new_line(p[0]) for p in parts[1:]))


_layout = Layout(query_doc)


def _parts(items: Sequence[Item]) -> list[tuple[int, int]]:
    """The ranges of the clauses."""
    starts = [0]
    for at in range(1, len(items)):
        if _begins(items, at, starts[-1]):
            starts.append(at)
    return list(zip(starts, [*starts[1:], len(items)], strict=True))


def _begins(items: Sequence[Item], at: int, start: int) -> bool:
    """Whether a clause begins at that item. start: the one before it."""
    word, previous = word_of(items[at]), word_of(items[at - 1])
    following = word_of(items[at + 1]) if at + 1 < len(items) else ""
    head = word_of(items[start])
    if sign_of(items[at]) == "|>":
        return True
    if sign_of(items[at - 1]) == "|>":
        return False
    if head in _SET_OPERATIONS and all(word_of(i) for i in items[start:at]):
        return isinstance(items[at], Paren) or word in ("SELECT", "FROM", "VALUES", "WITH", "TABLE")
    if word in _BY:
        return following == "BY" and previous != "WITHIN"
    if word in _SET_OPERATIONS:
        return not (word == "EXCEPT" and (sign_of(items[at - 1]) == "*" or sign_of(items[start]) == "|>"))
    if word == "JOIN" or word in _JOIN_WORDS:
        return previous not in _JOIN_WORDS and _leads_to_join(items, at)
    if word == "LATERAL":
        return following == "VIEW"
    if word == "FROM":
        return previous != "DISTINCT"
    return word in _CLAUSES and not (word == "OFFSET" and head == "LIMIT")


def _leads_to_join(items: Sequence[Item], at: int) -> bool:
    while at < len(items) and word_of(items[at]) in _JOIN_WORDS:
        at += 1
    return at < len(items) and word_of(items[at]) == "JOIN"


def _part_doc(items: Sequence[Item]) -> Doc:
    word = word_of(items[0])
    if sign_of(items[0]) == "|>" and len(items) > 1:
        return [_layout.plain(items[:1]), SPACE, _part_doc(items[1:])]
    if word == "SELECT":
        count = _select_head(items)
        return _layout.listed(items[:count], items[count:])
    if word in _BY and len(items) > 2:
        return _layout.listed(items[:2], items[2:])
    if word == "VALUES":
        return _layout.listed(items[:1], items[1:])
    if word in ("WHERE", "HAVING", "QUALIFY", "ON") and len(items) > 1:
        content, broken = _layout.condition(items[1:])
        return group([_layout.plain(items[:1]), SPACE, Indent(content)], broken=broken)
    if word == "FROM" and len(items) > 1:
        return _relations(items)
    if word == "WITH":
        return _ctes(items)
    if word == "JOIN" or word in _JOIN_WORDS:
        return _join(items)
    return _layout.plain(items)


def _select_head(items: Sequence[Item]) -> int:
    """How many items precede the list of a SELECT."""
    at = 1
    while at < len(items):
        item, word = items[at], word_of(items[at])
        hint = not isinstance(item, Paren) and item.kind == "hint"
        on = (word == "ON" or isinstance(item, Paren)) and word_of(items[at - 1]) in ("DISTINCT", "ON")
        within = word in ("WITHIN", "WATERMARK")
        if not (hint or word in _QUANTIFIERS or within or (on and at > 1 and _is_distinct_on(items, at))):
            break
        at += 1
    return at


def _is_distinct_on(items: Sequence[Item], at: int) -> bool:
    on = at if word_of(items[at]) == "ON" else at - 1
    return word_of(items[on]) == "ON" and word_of(items[on - 1]) == "DISTINCT"


def _relations(items: Sequence[Item]) -> Doc:
    first, *rest = split_at(items[1:], ",")
    lines = [[before(p[0]), _layout.plain(p)] for p in rest]
    broken = any(on_new_line(p[0]) for p in rest)
    return group([_layout.plain(items[:1]), SPACE, _layout.plain(first), Indent(lines)], broken=broken)


def _ctes(items: Sequence[Item]) -> Doc:
    """WITH and its queries, each on lines of its own."""
    count = 2 if len(items) > 1 and word_of(items[1]) == "RECURSIVE" else 1
    pieces = split_at(items[count:], ",")
    docs: list[Doc] = [_layout.plain(items[:count]), SPACE]
    for number, piece in enumerate(pieces):
        docs += [before(piece[0])] if number else []
        docs.append(_layout.plain(piece))
    return group(docs, broken=any(on_new_line(p[0]) for p in pieces[1:]))


def _join(items: Sequence[Item]) -> Doc:
    on = next((n for n, i in enumerate(items) if word_of(i) in ("ON", "USING")), None)
    if on is None:
        return _layout.plain(items)
    condition = [Line(), _part_doc(items[on:])]
    return group([_layout.plain(items[:on]), Indent(condition)], broken=on_new_line(items[on]))
