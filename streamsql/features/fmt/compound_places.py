"""The lines of a compound statement of Spark (SQL scripting, BEGIN … END), and its keywords."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from streamsql.features.fmt.keyword_places import PlaceReader
from streamsql.language.grammar import Grammar, Node, texts_in
from streamsql.language.statements.base import SIMPLE_TYPES
from streamsql.language.tokens import Token

_LINES = frozenset("Statement ElseIf Else When Until".split())
"""The parts that begin a line, beside the END of a structure."""
_DEEPER = frozenset(("Body", "Cases", "HandledBy"))
"""The parts whose lines are further to the right."""
_OF_DECLARE = frozenset(["DEFAULT", "CONDITION", "FOR", "SQLSTATE", "VALUE"])


@cache
def _grammar() -> Grammar:
    return Grammar(texts_in(Path(__file__).parent))


def begins_compound(tokens: Sequence[Token]) -> bool:
    """Whether a statement is a compound one."""
    return bool(tokens) and tokens[0].upper == "BEGIN" and tokens[-1].text != "BEGIN"


def read_compound(reader: PlaceReader) -> bool:
    """Take over the places and lines of a compound statement; False for one that cannot be read."""
    tokens, places = list(reader.tokens), reader.places
    node, _ = _grammar().match("Compound", tokens)
    if node is None:
        return False
    start = node.span.start
    places.compounds.add(start)
    places.lines[start] = 0
    reader.read(node)
    _read_lines(node, 0, reader)
    return True


def _read_lines(node: Node, depth: int, reader: PlaceReader) -> None:
    for part in node.parts:
        start = part.span.start
        if part.name in _LINES or (part.name.startswith("End") and part.parts):
            reader.places.lines[start] = depth
        if part.name == "Declared":
            _declared([t for t in reader.tokens if start <= t.start < part.span.end], reader)
        _read_lines(part, depth + (part.name in _DEEPER), reader)


def _declared(tokens: Sequence[Token], reader: PlaceReader) -> None:
    """What follows DECLARE of a variable or a condition."""
    for at, token in enumerate(tokens):
        known = token.upper in _OF_DECLARE or token.upper in SIMPLE_TYPES
        if at and known and token.kind == "word" and tokens[at - 1].text != ",":
            reader.places.keywords.add(token.start)
        if at and token.upper == "DEFAULT" and at + 1 < len(tokens):
            reader.expression(tokens[at + 1].start, tokens[-1].end)
            break
