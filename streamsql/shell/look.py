"""Colours while typing, by the tokens and keywords that the parser sees."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

# Colours of the terminal's own palette, so that they can be read on light and on dark.
STYLE = Style.from_dict(
    {"keyword": "ansiblue bold", "string": "ansigreen", "number": "ansimagenta", "comment": "ansibrightblack",
     "bottom-toolbar": "noreverse", "failed": "ansired bold", "footer": "ansicyan"}
)  # fmt: skip
PLAIN = Style.from_dict({"bottom-toolbar": "noreverse"})


class SqlLexer(Lexer):
    """Reads again only what stands behind the last finished statement, so that a long script that was
    pasted does not slow down the keys.
    """

    def __init__(self) -> None:
        self._head = ""
        self._head_lines: list[StyleAndTextTuples] = [[]]

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        text = document.text
        if not text.startswith(self._head):
            self._head, self._head_lines = "", [[]]
        start = len(self._head)
        lines = [*self._head_lines[:-1], [*self._head_lines[-1]]]
        pieces, finished = _colored(text[start:])
        for number, (style, part) in enumerate(pieces):
            if number == finished:
                self._head = text[: start + sum(len(p) for _, p in pieces[:finished])]
                self._head_lines = [*lines[:-1], [*lines[-1]]]
            for line, piece in enumerate(part.split("\n")):
                if line:
                    lines.append([])
                lines[-1].append((style, piece))
        return lambda number: lines[number] if number < len(lines) else []


@cache
def _keywords() -> frozenset[str]:
    from streamsql.language.grammar import load
    from streamsql.shell.completion.clauses import SELECT_WORDS

    return frozenset(load().keywords) | {w for words in SELECT_WORDS for w in words.split()}


def _colored(text: str) -> tuple[list[tuple[str, str]], int]:
    """Pieces of a text with their styles, and how many of them belong to finished statements."""
    from streamsql.language.tokens import tokenize

    pieces: list[tuple[str, str]] = []
    at = finished = 0
    for token in tokenize(text, strict=False):
        style = {"string": "class:string", "number": "class:number"}.get(token.kind, "")
        if token.kind == "word" and token.upper in _keywords():
            style = "class:keyword"
        pieces += [("class:comment", text[at : token.start]), (style, token.text)]
        at = token.end
        if token.text == ";":
            finished = len(pieces)
    pieces.append(("class:comment", text[at:]))
    return pieces, finished
