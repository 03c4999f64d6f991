"""The list of all statements. To add a statement, add its class to a file here or of a feature, and its rule
to grammars/, both with the same name.
"""

from __future__ import annotations

from functools import cache

from streamsql.feature_registry import statement_modules
from streamsql.language.grammar import load
from streamsql.language.statements import (
    checkpoint,
    explain,
    function,
    insert,
    live_table,
    query,
    select,
    server,
    session,
    sink,
    spark,
    stream,
    watch,
)
from streamsql.language.statements.base import Statement

_FILES = (
    stream,
    sink,
    live_table,
    function,
    insert,
    query,
    watch,
    checkpoint,
    explain,
    server,
    session,
)
_LAST = (select, spark)
"""What no other file has."""
STATEMENTS: dict[str, type[Statement]] = {
    name: kind
    for file in (*_FILES, *statement_modules(), *_LAST)
    for name, kind in vars(file).items()
    if isinstance(kind, type) and issubclass(kind, Statement) and kind.__module__ == file.__name__
}
"""By grammar rule."""


@cache
def first_words() -> dict[str, list[str]]:
    """First word of a statement → the rules that can start with it, in the order above."""
    grammar = load()
    firsts: dict[str, list[str]] = {}
    for rule in STATEMENTS:
        for word in grammar.expected(rule, []):
            firsts.setdefault(word.strip("'"), []).append(rule)
    return firsts
