"""Characters that a text has instead of those of SQL, mostly from where it was copied: typographic quotes and
dashes, invisible ones, full-width signs. Strings, quoted names and comments may have any; so may a name have
letters. Spark's parser takes blanks such as U+00A0, and fails at all of these.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

from streamsql.errors import Span, SyntaxFault

if TYPE_CHECKING:
    from streamsql.language.tokens import Token

_TYPE = {
    **dict.fromkeys("‘’‚‛′´｀ʼ", "'"),
    **dict.fromkeys("“”„‟″«»＂", "\" or '"),
    **dict.fromkeys("‐‑‒–—―−﹣", "-"),
    **dict.fromkeys("×∗⁎", "*"),
    **dict.fromkeys("÷∕⁄", "/"),
    **dict.fromkeys("≤⩽", "<="),
    **dict.fromkeys("≥⩾", ">="),
    "≠": "<>",
    "→": "->",
    ";": ";",
    "․": ".",
}
"""A character, and what to type instead."""
_INVISIBLE = frozenset(("Cf", "Cc", "Zl", "Zp", "Zs", "Co", "Cn"))
_OF_NAMES = frozenset("Lu Ll Lt Lm Lo Mn Mc Me Nl No".split())
_NAMES = {"\x85": "NEXT LINE"}
"""Names of control characters, which Unicode does not name."""


def wrong_character(tokens: Iterable[Token]) -> SyntaxFault | None:
    """The error for the first such character in the words, numbers and signs of a text; None for none."""
    for token in tokens:
        if token.kind in ("word", "number", "sign") and not token.text.isascii():
            for at, character in enumerate(token.text, token.start):
                if is_wrong(character):
                    return fault_of(character, at)
    return None


def is_wrong(character: str) -> bool:
    """Whether neither a name nor a sign of SQL can have a character."""
    return not character.isascii() and unicodedata.category(character) not in _OF_NAMES


def fault_of(character: str, at: int) -> SyntaxFault:
    """The error for such a character at an offset."""
    name = _NAMES.get(character) or unicodedata.name(character, "without a name")
    own = _TYPE.get(character, "") or _plain(character)
    if unicodedata.category(character) in _INVISIBLE:
        hint = "delete it: it is invisible"
    elif character == "…":
        hint = "write what is to stand there"
    else:
        hint = f"type {own}" if own else "delete it, or put the name into backticks"
    return SyntaxFault(
        f"the character U+{ord(character):04X} {name} is not one of SQL",
        hint=hint,
        span=Span(at, at + 1),
        code="WRONG_CHARACTER",
    )


def _plain(character: str) -> str:
    """The character of ASCII that a full-width one, or another digit, stands for; "" for none."""
    plain = unicodedata.normalize("NFKC", character)
    if not plain.isascii():
        digit = unicodedata.digit(character, -1)
        return str(digit) if digit >= 0 else ""
    return plain


def closing_quote(text: str, start: int, opened: str) -> SyntaxFault | None:
    """The error for the first typographic quote behind a quote that is not closed; None for none. start: the
    offset of the quote; opened: the quote.
    """
    marks = "‘’‚‛′´" if opened == "'" else "“”„‟″"
    return next((fault_of(text[n], n) for n in range(start, len(text)) if text[n] in marks), None)
