"""Reads an unfinished query: its text is completed for the reader of finished queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from streamsql.errors import StreamsqlError
from streamsql.language.query import Query, read_part
from streamsql.language.reference import functions
from streamsql.language.token_groups import begins_clause, closing
from streamsql.language.tokens import Token, tokenize
from streamsql.language.unfinished.place import Place, places_of
from streamsql.language.unfinished.query_words import ends_operand

CURSOR = "at_the_cursor__"
"""The name at the cursor, in place of the unfinished word."""
_SELECTS = frozenset(("SELECT", "FROM", "INSERT"))
_OF_CONDITIONS = frozenset(("WHERE", "ON", "HAVING", "QUALIFY"))
_MOST_UNREAD = 4
"""How often a part that cannot be read is left out."""


def completed(before: Sequence[Token], behind: Sequence[Token], places: Sequence[Place]) -> str:
    """The text of a query with a name at the cursor and with all parentheses closed. places: see places_of;
    those of the tokens before the cursor.
    """
    words = [token.text for token in before]
    if places[-1].clause == "WATERMARK":  # its clause is not complete: the name is an alias of the relation
        last = max(at for at, token in enumerate(before) if token.upper == "WATERMARK")
        words[last:] = ["AS"]
    arguments = closing(behind, 0) + 1 if behind and behind[0].text == "(" else 0
    words += [CURSOR, *_closed(behind[arguments:], [place.in_call for place in places[1:]])]
    if before[0].upper == "WITH" and _SELECTS.isdisjoint(_outside_parentheses(words)):
        words += ["SELECT", "*"]  # it is the last query of the WITH that is not written yet
    return " ".join(_filled(words))


def _filled(words: Sequence[str]) -> Iterator[str]:
    """The words with NULL for each argument that is not written."""
    for before, word in zip(["", *words], words, strict=False):
        if (before in ("(", ",") and word == ",") or (before == "," and word == ")"):
            yield "NULL"
        yield word


def _outside_parentheses(words: Sequence[str]) -> Iterator[str]:
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if depth == 0:
            yield word.upper()


def read_unfinished(text: str) -> Query:
    """The query of a text that may be unfinished; see read_completed."""
    return read_completed(" ".join(_filled(_closed(tokenize(text, strict=False), []))))


@lru_cache(maxsize=4)
def read_completed(text: str) -> Query:
    """The query with a tree of what can be read of it; without one if nothing can. The last ones are kept:
    the text is the same for each letter of a name.
    """
    read = Query(text, ())
    for _ in range(_MOST_UNREAD):
        try:
            read, stopped = read_part(text)
        except StreamsqlError:
            return read
        if stopped is None:
            return read
        text = _without_rest(read, stopped.start)
    return read


def _closed(tokens: Sequence[Token], opened: list[bool]) -> list[str]:
    """The words of tokens with the closing parentheses that are missing: those of calls before the next
    clause, the others at the end. opened: for each parenthesis that is open before, whether it is of a call.
    """
    words = []
    missing = len(opened) + sum((token.text == "(") - (token.text == ")") for token in tokens)
    for at, token in enumerate(tokens):
        while missing > 0 and opened and opened[-1] and begins_clause(tokens, at):
            words.append(")")
            opened.pop()
            missing -= 1
        if token.text == "(":
            opened.append(False)
        elif token.text == ")" and opened:
            opened.pop()
        words.append(token.text)
    return words + [")"] * max(missing, 0)


_CALLS_WITH_FROM = frozenset(("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY"))
_NOT_IN_CALLS = frozenset(("WHERE", "GROUP", "HAVING", "QUALIFY", "LIMIT", "UNION"))


@dataclass
class _Open:
    """An open parenthesis. call: the word before it, upper case; None for that of a query. from_at: where a
    FROM stands in it, which may be that of the query around it.
    """

    call: str | None
    from_at: int | None = None


def with_calls_closed(tokens: Sequence[Token]) -> list[Token]:
    """The tokens before the cursor with a `)` for each call that a clause behind it shows not to be closed,
    as in `SELECT upper(trim( FROM clicks WHERE`.
    """
    out, opened = list[Token](), list[_Open]()
    for at, token in enumerate(tokens):
        if token.text == "(":
            opened.append(_Open(_call_before(tokens, at)))
        elif token.text == ")" and opened:
            opened.pop()
        elif opened and opened[-1].call is not None and begins_clause(tokens, at):
            call, word = opened[-1].call, token.upper
            if word == "FROM" and call in _CALLS_WITH_FROM and opened[-1].from_at is None:
                opened[-1].from_at = len(out)
            elif word == "FROM" or (word in _NOT_IN_CALLS and call != "FILTER"):
                _close_calls(out, opened)
        out.append(token)
    return out


def _call_before(tokens: Sequence[Token], at: int) -> str | None:
    """The word before a parenthesis that encloses no query, else None."""
    call, head = tokens[at - 1].upper if at else "", tokens[at + 1].upper if at + 1 < len(tokens) else ""
    is_query = head in ("SELECT", "WITH") or (head == "FROM" and call.casefold() not in functions())
    return None if is_query else call


def _close_calls(out: list[Token], opened: list[_Open]) -> None:
    """Close the open calls of a query before the FROM in them, or at the end."""
    place = len(out)
    while opened and opened[-1].call is not None:
        from_at = opened.pop().from_at
        place = place if from_at is None else from_at
        out.insert(place, Token("sign", ")", out[place - 1].end, out[place - 1].end, ")"))


def _without_rest(read: Query, start: int) -> str:
    """The text of a query without the part from an offset to the next clause, which cannot be read; the name
    at the cursor is kept.
    """
    text, tokens = read.text, read.spark_tokens
    first = after = next(at for at, token in enumerate(tokens) if token.end > start)
    while after < len(tokens) and (after == first or not _ends_part(tokens, after)):
        after = closing(tokens, after) + 1 if tokens[after].text == "(" else after + 1
    end = tokens[after].start if after < len(tokens) else len(text)
    name = ""
    if CURSOR in text[start:end]:
        clause = places_of(tokens[:first])[-1].clause
        sign = "AND" if clause in _OF_CONDITIONS else ","
        name = f"{sign} {CURSOR}" if first and ends_operand(list(tokens[:first])) else CURSOR
    return f"{text[:start]}{name} {text[end:]}"


def _ends_part(tokens: Sequence[Token], at: int) -> bool:
    return tokens[at].text == ")" or begins_clause(tokens, at)
