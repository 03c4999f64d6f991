"""Where a compound statement (BEGIN … END) ends: by the structure of SQL scripts, not by words alone.

In Spark's grammar a statement inside BEGIN … END ends with `;`, and the END of a block follows the `;` of its
last statement, or its BEGIN. So `end`, `begin` and `case` inside a statement are names, or belong to a CASE
expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamsql.language.tokens import Token

_BLOCKS_WITH_NAMES = frozenset(("IF", "CASE", "WHILE", "FOR", "LOOP", "REPEAT"))
"""END IF and so on close a block that no BEGIN has opened."""
_BEFORE_STATEMENT = frozenset(("THEN", "ELSE", "DO"))
_FIRST_OF_SET = frozenset(("INSERT", "WITH", "FROM", "END"))
"""The words with which the statements of a statement set begin."""
_AFTER_NAME = frozenset("FROM AS IS IN AND OR BETWEEN LIKE ILIKE RLIKE DESC ASC THEN END ELSE".split())
_BEFORE_OPERAND = frozenset("(+-~!{[")


class Blocks:
    """The open blocks of a compound statement, as its tokens are taken one after the other.

    lenient: an END in front of a `;` closes a block, too, where no other one does: the `;` before it is
    missing.
    """

    def __init__(self, tokens: Sequence[Token], *, lenient: bool = False) -> None:
        self.tokens = tokens
        self.lenient = lenient
        self.open = 0
        self._cases = 0
        self._begins = True
        self._labelled = -1
        self._first = ""

    def take(self, at: int) -> None:
        """Take the token at a position."""
        if self.tokens[at].kind != "word" or self._is_name(at):
            self._sign(at)
        elif self._begins:
            self._first_word(at)
        else:
            self._later_word(at)

    def _word(self, at: int) -> str:
        return self.tokens[at].upper if 0 <= at < len(self.tokens) else ""

    def _is_name(self, at: int) -> bool:
        """Whether a word is a name because of the token before it."""
        return self._word(at - 1) in (".", "AS")

    def _sign(self, at: int) -> None:
        text = self.tokens[at].text
        self._begins = text == ";" or (text == ":" and self._labelled == at - 1)
        if text == ";":
            self._cases, self._first = 0, ""

    def _first_word(self, at: int) -> None:
        """A word where a statement begins."""
        word, after = self._word(at), self._word(at + 1)
        self._labelled, self._first = at, word
        if word == "BEGIN":
            self.open += 1
        elif word == "END" and after not in _BLOCKS_WITH_NAMES:
            self.open -= 1
        self._begins = word in ("BEGIN", "NOT", "ATOMIC", "LOOP", "REPEAT", "ELSE")

    def _later_word(self, at: int) -> None:
        """A word inside a statement."""
        word, after = self._word(at), self._word(at + 1)
        if word == "CASE" and after not in _AFTER_NAME and not self._is_sign(at + 1):
            self._cases += 1
        elif word == "END" and self._cases:
            self._cases -= 1
        elif word == "END" and self.lenient and after in (";", ""):
            self.open -= 1
        elif word in _BEFORE_STATEMENT and not self._cases:
            self._begins = True
        elif word == "BEGIN" and self._opens(after):
            self.open += 1
            self._begins = True
        elif word == "HANDLER" and self._first == "DECLARE":
            self._first = word

    def _is_sign(self, at: int) -> bool:
        """Whether a sign is there that no operand begins with."""
        token = self.tokens[at] if at < len(self.tokens) else None
        return token is None or (token.kind == "sign" and token.text not in _BEFORE_OPERAND)

    def _opens(self, after: str) -> bool:
        """Whether a BEGIN inside a statement opens a block: that of a statement set, or of a handler."""
        return (not self.open and after in _FIRST_OF_SET) or self._first == "HANDLER"
