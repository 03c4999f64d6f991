"""Clauses of Flink that Spark does not have: FOR SYSTEM_TIME AS OF in a join, and MATCH_RECOGNIZE."""

from __future__ import annotations

from streamsql.errors import RuleFault, Span
from streamsql.language.query import Query


def check_flink_words(query: Query) -> None:
    """Raise RuleFault for the first of these clauses. FOR SYSTEM_TIME AS OF a literal is Spark's."""
    tokens = query.tokens
    for at in range(1, len(tokens) - 5):
        words = [t.upper for t in tokens[at : at + 6]]
        if words[0] == "MATCH_RECOGNIZE" and words[1] == "(":
            raise RuleFault(
                "Spark has no MATCH_RECOGNIZE",
                detail="a Python class that keeps state for each key finds patterns of rows",
                hint="HELP stateful;",
                span=tokens[at].span,
                code="OTHER_CONSOLE",
            )
        column = tokens[at + 4].kind in ("word", "quoted") and words[5] == "."
        now = words[4] == "PROCTIME"
        if words[:4] == ["FOR", "SYSTEM_TIME", "AS", "OF"] and (column or now) and at + 6 < len(tokens):
            before, last = tokens[at - 1], tokens[at + 6]
            raise RuleFault(
                "Spark has no FOR SYSTEM_TIME AS OF a column",
                detail="a stream joins a table as it is at each micro-batch",
                hint=f"JOIN {before.text} without it",
                instead=before.text,
                span=Span(before.start, last.end),
                code="OTHER_CONSOLE",
            )
