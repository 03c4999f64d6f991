"""The rows of VALUES, counted before Spark reads them."""

from __future__ import annotations

from streamsql.errors import Span
from streamsql.language.token_groups import closing, outside
from streamsql.language.tokens import tokenize


def rows_of_values(text: str) -> list[tuple[int, Span]]:
    """(number of values, position) of each row of a query that is VALUES alone; empty for another one."""
    tokens = tokenize(text)
    if not tokens or tokens[0].upper != "VALUES":
        return []
    rows: list[tuple[int, Span]] = []
    for at in outside(tokens, 1):
        if tokens[at].text not in ("(", ","):
            return []  # VALUES 1, 2 or VALUES (1, 2) UNION …: for Spark to read
        close = closing(tokens, at) if tokens[at].text == "(" else len(tokens)
        if close < len(tokens):
            commas = sum(tokens[inside].text == "," for inside in outside(tokens, at + 1))
            width = 0 if close == at + 1 else commas + 1
            rows.append((width, Span(tokens[at].start, tokens[close].end)))
    return rows
