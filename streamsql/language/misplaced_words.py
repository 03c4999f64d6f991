"""Hints for words that are of the language, or nearly, but not at their place in a statement."""

from __future__ import annotations

from collections.abc import Iterable

from streamsql.errors import nearest
from streamsql.language.tokens import Token

_QUERY_BEGINS = ("SELECT", "WITH", "FROM", "VALUES")
_OF_QUERIES = ("TRIGGER", "OUTPUT", "CHECKPOINT", "RESTART")
_DEFINED = ("SINK", "STREAM", "SOURCE")


def meant_word(token: Token, keywords: Iterable[str], *, query: bool) -> str | None:
    """The keyword that a word is a misspelling of, among those that can stand there; None for none.
    query: whether a query can begin there.
    """
    if token.kind != "word":
        return None
    words = [*keywords, *(_QUERY_BEGINS if query else ())]
    # Half of a short word is in many others: AS in DAYS.
    like = nearest(token.text, words, 0.6 if len(token.text) > 3 else 0.75)
    return like if like and like.casefold() != token.text.casefold() else None


def hint_at(tokens: list[Token], at: int) -> str:
    """A hint for a clause that does not belong there, by its first word; "" if there is none to give."""
    word = tokens[at].upper
    before = tokens[at - 1].upper if at else ""
    if before == "TRIGGER" and word.startswith(("PROCESSING", "INTERVAL")):
        return "TRIGGER EVERY INTERVAL 5 SECONDS"
    if tokens[at - 1].kind == "number" and at > 1 and tokens[at - 2].upper in ("EVERY", "INTERVAL", "OF"):
        return f"INTERVAL {tokens[at - 1].text} SECONDS"
    kind = next((t.upper for t in tokens[1:4] if t.upper in _DEFINED), "")
    if tokens[0].upper != "CREATE" or not kind:
        return ""
    if word == "WATERMARK" and kind == "STREAM":
        return "WITH WATERMARK column DELAY OF INTERVAL 10 MINUTES"
    if word in _OF_QUERIES:
        return f"{word} is a clause of INSERT INTO … SELECT and CREATE LIVE TABLE … AS"
    return ""
