"""Escapes the characters that would act on a terminal or disguise a text."""

from __future__ import annotations

import re

# Control characters (including ANSI escapes), characters that change the direction of writing (they can
# disguise a text), Unicode line ends, and surrogates, which cannot be written.
ESCAPED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _shown(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def visible(value: str) -> str:
    """A text in one line, with control characters escaped as \\n or \\x1b.

    If there are any, backslashes are doubled, so that the escapes are unambiguous.
    """
    if value.isprintable() or not ESCAPED.search(value):
        return value
    return ESCAPED.sub(_shown, value.replace("\\", "\\\\"))


def harmless(value: str) -> str:
    """A text of several lines for a terminal: line ends and tabs are kept, other control characters are
    escaped as in `visible`.
    """
    return ESCAPED.sub(lambda m: m.group() if m.group() in "\n\t" else _shown(m), value)
