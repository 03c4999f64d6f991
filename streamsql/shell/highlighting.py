"""Colours while typing, by the tokens and keywords that the parser sees."""

from __future__ import annotations

from collections.abc import Callable, Hashable

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


# More is colored at the next key: a script that is pasted must not hold up the prompt.
MOST_AT_ONCE = 20_000


class SqlLexer(Lexer):
    """Colours by what the parser sees. Without colours until `load` is done, so that no key waits for it.

    Reads again only what stands behind the last finished statement, so that a long script that was
    pasted does not slow down the keys.
    """

    def __init__(self) -> None:
        self._loaded = False
        self._head = ""
        self._head_lines: list[StyleAndTextTuples] = [[]]

    def load(self) -> None:
        """Load what reads SQL, on any thread."""
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
        """The lines of a text in pieces with their styles."""
        from streamsql.language.unfinished.coloring import pieces_of

        if not text.startswith(self._head):
            self._head, self._head_lines = "", [[]]
        start = len(self._head)
        lines = [*self._head_lines[:-1], [*self._head_lines[-1]]]
        end = start + MOST_AT_ONCE
        pieces, finished = pieces_of(text[start:end])
        for number, piece in enumerate(pieces):
            if number == finished:
                self._head = text[: start + sum(len(p.text) for p in pieces[:finished])]
                self._head_lines = [*lines[:-1], [*lines[-1]]]
            _append(lines, f"class:{piece.kind}" if piece.kind else "", piece.text)
        _append(lines, "", text[end:])
        return lines


def _append(lines: list[StyleAndTextTuples], style: str, text: str) -> None:
    """Put a text, which may be of several lines, behind the last line."""
    for number, part in enumerate(text.split("\n")):
        if number:
            lines.append([])
        lines[-1].append((style, part))
