"""Colours while typing, based on the tokens and keywords of the parser."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

# Colours of the terminal's own palette, so that they are readable on light and dark backgrounds.
STYLE = Style.from_dict(
    {"keyword": "ansiblue bold", "string": "ansigreen", "number": "ansimagenta", "comment": "ansibrightblack",
     "bottom-toolbar": "noreverse", "failed": "ansired bold", "footer": "ansicyan"}
)  # fmt: skip
PLAIN = Style.from_dict({"bottom-toolbar": "noreverse"})


# Characters coloured at once; the rest follows at the next key, so that pasting a script is quick.
MOST_AT_ONCE = 20_000


class SqlLexer(Lexer):
    """Colours text by the parser's tokens. There are no colours until `load` has ended, so that no key waits.

    Only the text after the last complete statement is read again, so that a long pasted script does not
    slow down the keys.
    """

    def __init__(self) -> None:
        self._loaded = False
        self._head = ""
        self._head_lines: list[StyleAndTextTuples] = [[]]

    def load(self) -> None:
        """Import the parser, on any thread."""
        from streamsql.language.unfinished.coloring import pieces_of

        pieces_of("SELECT 1")
        self._loaded = True

    def invalidation_hash(self) -> Hashable:
        return id(self), self._loaded

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        if not self._loaded:
            plain = document.lines
            return lambda number: [("", plain[number])] if number < len(plain) else []
        lines = self._colored(document.text)
        return lambda number: lines[number] if number < len(lines) else []

    def _colored(self, text: str) -> list[StyleAndTextTuples]:
        """The lines of a text as pieces with styles."""
        from streamsql.language.unfinished.coloring import pieces_of

        if not text.startswith(self._head):
            self._head, self._head_lines = "", [[]]
        start = len(self._head)
        end = start + MOST_AT_ONCE
        pieces, finished = pieces_of(text[start:end])
        styled: StyleAndTextTuples = [
            (f"class:{piece.kind}" if piece.kind else "", piece.text) for piece in pieces
        ]
        self._head = text[: start + sum(len(piece.text) for piece in pieces[:finished])]
        self._head_lines = _continued(self._head_lines, styled[:finished])
        return _continued(self._head_lines, [*styled[finished:], ("", text[end:])])


def _continued(lines: list[StyleAndTextTuples], pieces: StyleAndTextTuples) -> list[StyleAndTextTuples]:
    """Lines with more pieces behind the last one, which may have several lines."""
    return [*lines[:-1], *split_lines([*lines[-1], *pieces])]
