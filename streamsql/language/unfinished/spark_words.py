"""Completion of the statements that the console passes to Spark.

Terminals, besides keywords: SparkTable (a table or view), AnyRelation (any relation of FROM), SparkFunction.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamsql.language.tokens import Token

SECOND_WORDS = {
    "CREATE": ("TABLE", "VIEW", "TEMPORARY VIEW", "DATABASE", "FUNCTION"),
    "DROP": ("TABLE", "VIEW", "DATABASE", "FUNCTION"),
    "SHOW": ("TABLES", "VIEWS", "COLUMNS", "FUNCTIONS", "DATABASES", "CATALOGS", "CREATE TABLE"),
    "DESCRIBE": ("FUNCTION", "TABLE", "EXTENDED"),
    "DESC": ("FUNCTION", "TABLE", "EXTENDED"),
    "CACHE": ("TABLE",), "UNCACHE": ("TABLE",), "TRUNCATE": ("TABLE",), "REFRESH": ("TABLE",),
    "ALTER": ("TABLE", "VIEW"), "ANALYZE": ("TABLE",), "DELETE": ("FROM",), "MERGE": ("INTO",),
    "EXECUTE": ("IMMEDIATE",),
}  # fmt: skip
_BEFORE_TABLE = frozenset(("TABLE", "VIEW", "DESCRIBE", "DESC", "UPDATE"))
_DESCRIBES = ("DESCRIBE", "DESC")


def expected_by_spark(tokens: list[Token], typed: str) -> Iterator[str]:
    """The keywords (in quotes) and terminals that can follow the first words of Spark's statements."""
    if not tokens:
        return
    first, last = tokens[0].upper, tokens[-1].upper
    # After SHOW and DESCRIBE, only the console's own words are given until a letter is typed.
    if len(tokens) == 1 and (typed or first not in ("SHOW", *_DESCRIBES)):
        yield from (f"'{word}'" for word in SECOND_WORDS.get(first, ()))
    if last in _BEFORE_TABLE and first in (*SECOND_WORDS, "UPDATE") and first != "CREATE":
        yield "AnyRelation" if first in (*_DESCRIBES, "CACHE") else "SparkTable"
    if last == "FUNCTION" and first in _DESCRIBES:
        yield "SparkFunction"
