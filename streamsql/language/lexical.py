"""Properties of a text for which its tokens are enough."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamsql.errors import Span, StreamsqlError
from streamsql.language.tokens import Token, scan, split, tokenize, unquote


def is_ended(text: str) -> bool:
    """Whether a text ends with the `;` of a statement, outside quotes, comments and BEGIN … END."""
    try:
        tokens = tokenize(text)
    except StreamsqlError:
        return False  # a quote or comment is not closed
    return bool(tokens) and tokens[-1].text == ";" and all(piece.closed for piece in split(tokens))


def opened(text: str) -> str:
    """The sign of the quote or comment that is open at the end of a text; "" for none and for `--`."""
    _, sign, _ = scan(text)
    return "" if sign == "--" else sign


_COMMAND = re.compile(r"\\(?:\?|!|[A-Za-z]+\+?)(?:[ \t][^\n\\]*)?\s*\Z")


def trailing_command(text: str) -> tuple[str, str] | None:
    """(the text before, the command) of a text that ends with a backslash command, as `SELECT 1 \\gx` does.
    None if it ends with none, or has nothing before it.
    """
    found = _COMMAND.search(text)
    if found is None or not text[: found.start()].strip():
        return None
    before = text[: found.start()]
    try:
        tokens = tokenize(f"{before} x")
    except StreamsqlError:
        return None  # it stands inside a quote
    if tokens[-1].end <= len(before):
        return None  # it stands inside a comment
    return before.strip(), found[0].strip()


def cut_at_commands(text: str, signs: tuple[str, ...]) -> list[str]:
    """The parts of a text that are executed one after the other: each line that begins with one of the signs
    where a statement could begin, and what stands between such lines.
    """
    parts: list[str] = []
    before = ""
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith(signs) and (not before.strip() or is_ended(before)):
            parts += [before, line]
            before = ""
        else:
            before += line
    return [part for part in (*parts, before) if part.strip()]


def word_at(text: str, offset: int) -> Span:
    """The word, literal or sign at an offset or the first one after it; the last character if there is
    none.
    """
    token = next((t for t in tokenize(text, strict=False) if t.end > offset), None)
    return token.span if token else Span(max(0, len(text) - 1), len(text))


@dataclass(frozen=True)
class WordsForSpark:
    """Names in a text, case-folded: formats (USING kafka, kafka.`path`), functions, URLs of places."""

    formats: frozenset[str]
    calls: frozenset[str]
    urls: frozenset[str]


def words_for_spark(text: str) -> WordsForSpark:
    """The names in a statement or expression for Spark, according to its tokens."""
    tokens = tokenize(text, strict=False)
    formats, calls, urls = set(), set(), set()
    for at, token in enumerate(tokens):
        name = unquote(token).casefold()
        before = tokens[at - 1].upper if at else ""
        after = tokens[at + 1 : at + 3]
        if token.kind in ("word", "quoted"):
            path = len(after) == 2 and after[0].text == "." and after[1].kind == "quoted"
            if before == "USING" or path:
                formats.add(name)
            if path:
                urls.add(unquote(after[1]).casefold())
            if after and after[0].text == "(":
                calls.add(name)
        elif token.kind == "string" and name.startswith(_URLS) and at and _is_url(tokens[:at]):
            urls.add(name)
    return WordsForSpark(frozenset(formats), frozenset(calls), frozenset(urls))


_URLS = ("jdbc:", "s3a:")


def _is_url(before: list[Token]) -> bool:
    """Whether the tokens end with the key of an option that names a place, or with LOCATION."""
    key = before[-2] if before[-1].text == "=" and len(before) > 1 else before[-1]
    return unquote(key).casefold() in ("url", "path", "location")
