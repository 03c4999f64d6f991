"""The list of all statements. To add a statement, add its class to a file here or of a feature, and its rule
to grammars/, both with the same name.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import cache
from types import ModuleType

from streamsql.feature_registry import folder, omit, own_features, plug_ins
from streamsql.language.grammar import Grammar, load, texts_in
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


def _statements(file: ModuleType) -> Iterator[tuple[str, type[Statement]]]:
    """The statements that a module defines, by their names."""
    for name, kind in vars(file).items():
        if isinstance(kind, type) and issubclass(kind, Statement) and kind.__module__ == file.__name__:
            yield name, kind


def _of_plug_ins(own: Container[str]) -> Iterator[tuple[str, type[Statement]]]:
    """The statements of plug-ins. One with a statement that has no rule, or an own one, is omitted."""
    load()  # omits those whose rules cannot be read
    for plug_in in tuple(plug_ins()):
        rules = Grammar(texts_in(folder(plug_in))).rules
        found = dict(_statements(plug_in.module(plug_in.statements))) if plug_in.statements else {}
        missing = ", ".join(name for name in found if name not in rules or name in own)
        if missing:
            omit(plug_in, LookupError(f"there is no rule of its own for {missing}"))
        else:
            yield from found.items()


_OF_FEATURES = [feature.module(feature.statements) for feature in own_features() if feature.statements]
_OWN = dict(statement for file in (*_FILES, *_OF_FEATURES) for statement in _statements(file))
_OTHERS = dict(statement for file in _LAST for statement in _statements(file))
STATEMENTS: dict[str, type[Statement]] = _OWN | dict(_of_plug_ins(_OWN | _OTHERS)) | _OTHERS
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
