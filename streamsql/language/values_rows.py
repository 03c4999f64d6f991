"""The rows of VALUES, counted before Spark reads them."""

from __future__ import annotations

from streamsql.errors import Span
from streamsql.language.tokens import tokenize

_OPENERS, _CLOSERS = "([{", ")]}"


def rows_of_values(text: str) -> list[tuple[int, Span]]:
    """(number of values, position) of each row of a query that is VALUES alone; empty for another one."""
    tokens = tokenize(text)
    if not tokens or tokens[0].upper != "VALUES":
        return []
    rows: list[tuple[int, Span]] = []
    depth, width, start, filled = 0, 0, tokens[0].end, False
    for token in tokens[1:]:
        if depth == 0 and token.text not in ("(", ","):
            return []  # VALUES 1, 2 or VALUES (1, 2) UNION …: for Spark to read
        if token.kind == "sign" and token.text in _OPENERS:
            if depth == 0:
                start, width, filled = token.start, 1, False
            depth += 1
        elif token.kind == "sign" and token.text in _CLOSERS:
            depth -= 1
            if depth == 0:
                rows.append((width if filled else 0, Span(start, token.end)))
        elif depth == 1 and token.text == ",":
            width += 1
        filled = filled or (depth > 0 and token.start > start)
    return rows
