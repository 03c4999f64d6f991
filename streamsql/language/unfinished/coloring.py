"""Syntax highlighting of a text while it is typed."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from streamsql.language.grammar import load
from streamsql.language.tokens import tokenize
from streamsql.language.unfinished.query_words import SELECT_WORDS


class Piece(NamedTuple):
    """kind: keyword, string, number, comment (with the blanks around it) or "" for other text."""

    kind: str
    text: str


@cache
def _keywords() -> frozenset[str]:
    return frozenset(load().keywords) | {w for words in SELECT_WORDS for w in words.split()}


def pieces_of(text: str) -> tuple[list[Piece], int]:
    """The pieces of a text, and the number of pieces that belong to finished statements."""
    pieces: list[Piece] = []
    at = finished = 0
    for token in tokenize(text, strict=False):
        kind = token.kind if token.kind in ("string", "number") else ""
        if token.kind == "word" and token.upper in _keywords():
            kind = "keyword"
        pieces += [Piece("comment", text[at : token.start]), Piece(kind, token.text)]
        at = token.end
        if token.text == ";":
            finished = len(pieces)
    pieces.append(Piece("comment", text[at:]))
    return pieces, finished
