"""The query of an INSERT behind WITH … or FROM …, in the order of a SELECT: WITH, SELECT, FROM, WHERE …"""

from __future__ import annotations

from collections.abc import Sequence

from streamsql.errors import Span
from streamsql.language.origin import Origin
from streamsql.language.terminals import behind_with
from streamsql.language.token_groups import outside
from streamsql.language.tokens import Token, tokenize

_AFTER_ITEMS = frozenset("""WHERE HAVING LATERAL WINDOW LIMIT OFFSET UNION EXCEPT MINUS INTERSECT""".split())
_AFTER_ITEMS_WITH_BY = frozenset(("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"))


def whole_query(text: str, start: Span, query: Span) -> tuple[str, Origin]:
    """The query, and the origin that maps it to the text. start: the place of WITH … and FROM … before
    INSERT INTO; query: that of the SELECT … behind it.
    """
    leading = tokenize(text[start.start : start.end])
    begins = behind_with(leading, 0) if leading[0].upper == "WITH" else 0
    from_at = start.start + leading[begins].start if begins < len(leading) else start.end
    items_end = query.start + _end_of_items(tokenize(text[query.start : query.end]))
    pieces = [(start.start, from_at), (query.start, items_end), (from_at, start.end), (items_end, query.end)]
    written, points = "", list[tuple[int, int]]()
    for begin, end in pieces:
        if begin == end:
            continue
        written += " " if written and not written[-1].isspace() else ""
        points += [(len(written), begin)] * (2 if points else 1)
        written += text[begin:end]
    return written.rstrip(), Origin(tuple(points))


def _end_of_items(tokens: Sequence[Token]) -> int:
    """The end of SELECT and its items in the text of these tokens."""
    for at in outside(tokens):
        token = tokens[at]
        if token.kind != "word" or at == 0 or tokens[at - 1].text == ".":
            continue
        after = tokens[at + 1].upper if at + 1 < len(tokens) else ""
        if token.upper in _AFTER_ITEMS or (token.upper in _AFTER_ITEMS_WITH_BY and after == "BY"):
            return tokens[at].start
    return tokens[-1].end
