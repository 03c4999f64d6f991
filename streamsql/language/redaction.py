"""Finds the secrets in SQL text, for all output, files and logs.

A secret is the value of a secret key, in any notation: in the options of a statement, in SET, in the
arguments of a function. It is also the rest of an unclosed quote after such a key, and whatever the module
`secrets` recognizes in a string or comment. In a query, `column = 'text'` compares data and is not a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from streamsql.errors import hide_with
from streamsql.language.tokens import Token, scan, unquote
from streamsql.secrets import Range, is_lost, is_secret_key, logins, merged, ranges, redact_text, replaced

_OPTIONS = frozenset(
    """OPTIONS OPTION WITH PROPERTIES TBLPROPERTIES DBPROPERTIES SERDEPROPERTIES
    MAP CONFIG NAMED_STRUCT""".split()
)
"""Words before a parenthesis with keys and values."""
_SETTINGS = frozenset({"SET", "DEFINE", "DECLARE"})
_QUERY = frozenset("SELECT WHERE ON HAVING QUALIFY WHEN THEN ELSE AND OR FILTER".split())
"""Words after which `name = 'text'` is a condition."""
_ASSIGN = frozenset({"=", "==", "=>", ":", ":="})
# If a quote is closed too late, the string contains the key: 'joe, password 'hunter2'.
_ENDS_WITH_KEY = re.compile(r"[,(]\s*[\"'`]?([\w.-]+)[\"'`]?\s*=?\s*\Z")


@dataclass
class _Reader:
    """Reads a text once. depth: of the open option parentheses; query: whether a condition is possible here;
    setting: whether the statement is a SET.
    """

    text: str
    tokens: list[Token]
    end: int
    places: list[Range] = field(default_factory=list)
    lists: list[bool] = field(default_factory=list)
    query: bool = False
    setting: bool = False
    head: bool = True
    pending: bool = False
    """Whether the text ends after a key, before its value."""

    def read(self) -> None:
        at = 0
        while at < len(self.tokens):
            at = self._step(at)

    @property
    def in_list(self) -> bool:
        return bool(self.lists) and self.lists[-1]

    def _step(self, at: int) -> int:
        """Read the item that starts at a token. Returns the index of the next token."""
        token = self.tokens[at]
        if token.text == ";":
            self.lists, self.query, self.setting, self.head = [], False, False, True
            return at + 1
        if self.head:
            self.head, self.setting = False, token.upper in _SETTINGS
        if token.text == "(":
            self.lists.append(self._opens_list(at))
        elif token.text == ")" and self.lists:
            self.lists.pop()
        elif token.kind == "word" and token.upper in _QUERY and not self.in_list:
            self.query = True
        if token.kind in ("string", "hint"):
            start, stop = _inside(token)
            self.places += ((start + a, start + b) for a, b in ranges(self.text[start:stop], prose=False))
        if token.kind in ("word", "quoted", "string"):
            return self._key(at)
        return at + 1

    def _opens_list(self, at: int) -> bool:
        before = [t.upper for t in self.tokens[max(0, at - 4) : at]]
        return bool(before) and (before[-1] in _OPTIONS or "USING" in before[-4::2] or self.in_list)

    def _key(self, at: int) -> int:
        """Read a word, name or string that can be a key; hide its value if the key is secret."""
        key, after = self._whole_key(at)
        if self.tokens[at].kind == "string" and self.in_list:
            swallowed = _ENDS_WITH_KEY.search(key)
            if swallowed and is_secret_key(swallowed[1]):
                return self._hide_rest(after)
        equals = after
        while equals < len(self.tokens) and self.tokens[equals].text in _ASSIGN:
            equals += 1
        assigned = equals > after
        if equals == len(self.tokens):
            if (assigned or not self.query or self.in_list) and is_secret_key(key):
                self.pending = True
            return equals
        value = self.tokens[equals]
        comma = self.in_list and self.tokens[at].kind == "string" and value.text == "," and not assigned
        if comma:  # map('password', 'x')
            equals += 1
            value = self.tokens[min(equals, len(self.tokens) - 1)]
        open_value = (self.in_list and not comma) or self.setting
        if not (value.kind == "string" or open_value) or not is_secret_key(key):
            return after
        named = "=>" in (t.text for t in self.tokens[after:equals])
        if assigned and self.query and not (self.in_list or self.setting or named):
            return after
        if comma and value.kind != "string":
            return after
        return self._hide_rest(equals) if open_value else self._hide_strings(equals)

    def _whole_key(self, at: int) -> tuple[str, int]:
        """The key that starts at a token, such as a.`b`.c-d, and the index of the next token."""
        token = self.tokens[at]
        if token.kind == "string":
            return unquote(token), at + 1
        after = at + 1
        while after < len(self.tokens) and self.tokens[after].start == self.tokens[after - 1].end:
            part = self.tokens[after]
            if part.text not in (".", "-") and part.kind not in ("word", "number", "quoted"):
                break
            after += 1
        return self.text[token.start : self.tokens[after - 1].end].replace("`", ""), after

    def _hide_strings(self, at: int) -> int:
        """Hide adjacent strings, which Spark reads as one."""
        while at < len(self.tokens) and self.tokens[at].kind == "string":
            self.places.append(_inside(self.tokens[at]))
            at += 1
        self.pending = at == len(self.tokens)
        return at

    def _hide_rest(self, at: int) -> int:
        """Hide a value of any form: everything up to the comma, or the end of the list or SET."""
        first, depth = at, 0
        while at < len(self.tokens):
            text = self.tokens[at].text
            if text == ";" or (depth == 0 and not self.setting and text in (",", ")")):
                break
            depth += (text == "(") - (text == ")")
            at += 1
        values = self.tokens[first:at]
        if values and all(t.kind == "string" for t in values):
            self.places += map(_inside, values)
        elif values:
            self.places.append((values[0].start, values[-1].end))
        self.pending = at == len(self.tokens)
        return at


def _inside(token: Token) -> Range:
    """A token without its quotes and their prefix."""
    quote = next((i for i, c in enumerate(token.text) if c in "'\""), 0)
    marked = token.kind == "string"
    return token.start + quote + marked, token.end - marked


def _gaps(text: str, tokens: list[Token], end: int) -> Iterator[Range]:
    """The text between tokens that is not blank: comments."""
    at = 0
    for token in tokens:
        if token.start - at > 2:
            yield at, token.start
        at = token.end
    if end - at > 2:
        yield at, end


@lru_cache(8)
def secret_places(text: str) -> tuple[Range, ...]:
    """The ranges of all secrets in a SQL text, in order. Accepts any text and raises no errors."""
    tokens, opened, end = scan(text)
    reader = _Reader(text, tokens, end)
    reader.read()
    places = [*reader.places, *logins(text)]
    for start, stop in _gaps(text, tokens, end):
        places += ((start + a, start + b) for a, b in ranges(text[start:stop]))
    if opened not in ("", "--"):
        if reader.pending:
            places.append((end + len(opened), len(text)))
        places += ranges(text)  # after a missing quote, strings and the text between them are swapped
    elif opened:
        places += ((end + a, end + b) for a, b in ranges(text[end:]))
    return tuple(merged(text, places))


def redact(text: str) -> str:
    """A SQL text with each secret replaced by the placeholder."""
    return replaced(text, secret_places(text))


hide_with(redact)


def redact_any(text: str) -> str:
    """SQL text or a message, with each secret replaced by the placeholder."""
    return redact_text(redact(text))


def holds_secret(text: str) -> bool:
    """Whether a SQL text contains a secret."""
    return bool(secret_places(text))


def lost_secret(text: str) -> bool:
    """Whether a SQL text contains the placeholder of a secret."""
    return any(is_lost("secret", text[start:end]) for start, end in secret_places(text))


def secret_values(text: str) -> set[str]:
    """The secrets of a SQL text, whole and word by word, as a message could contain them."""
    values: set[str] = set()
    for start, end in secret_places(text):
        value = text[start:end]
        tokens = scan(value)[0]
        # Of `module required username="x" password="y"` the quoted parts are secret, not its words.
        quoted = [t for t in tokens if t.kind == "string"]
        values |= {value, *(t.text.strip("'\"`") for t in quoted or tokens)}
    return {value for value in values if len(value) > 2 and any(map(str.isalnum, value))}


def without_values(message: str, values: set[str]) -> str:
    """A message about a SQL text, with these values replaced wherever they are whole words."""
    for value in sorted(values, key=len, reverse=True):
        if value in message:
            message = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "***", message)
    return message
