"""The cursor inside a query: the items expected there, and the text before it.

Expected items have the form of the grammar: keywords in quotes, and terminals by name. The terminals of a
query are

    Relation           a relation of FROM         QualifiedName     the name after `a.`
    Column             a column of a relation     SelectAlias       an alias of the select list
    JoinKey            `a.id = b.id`              EqualColumn       the column after `a.id =`
    EventTimeColumn    after WATERMARK            SharedColumn      in USING (…)
    Function           in an expression           TableFunction     in FROM
    TypeName           in a cast                  QueryName         of STATE OF QUERY
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from streamsql.language.grammar import load
from streamsql.language.tokens import Token, unquote
from streamsql.language.unfinished.place import Place, places_of
from streamsql.language.unfinished.query_words import (
    AFTER_OPERAND,
    AFTER_WORD,
    IN_EXPRESSION,
    IN_FROM,
    UNITS,
    after_operand,
    ends_operand,
)
from streamsql.language.unfinished.repair import completed, with_calls_closed

_WITH_FROM = frozenset(("DELETE", "SHOW"))
_AFTER_SELECT = ("GROUP", "HAVING", "ORDER", "QUALIFY")


@dataclass(frozen=True)
class QueryCursor:
    """expected: keywords in quotes, terminals by name; qualifiers: the names before a dot at the cursor;
    compared: the column before an `=` at the cursor, "" for none.
    """

    expected: tuple[str, ...]
    qualifiers: tuple[str, ...]
    compared: str
    _places: list[Place]
    _before: list[Token]
    _behind: list[Token]

    @cached_property
    def text(self) -> str:
        """The query with a name at the cursor; see repair.py."""
        return completed(self._before, self._behind, self._places)

    @property
    def place(self) -> Place:
        """The cursor's position."""
        return self._places[-1]

    def has_equality(self, left: str, right: str) -> bool:
        """Whether `left = right` is written before the cursor."""
        return f"{left}={right}".casefold() in "".join(t.text for t in self._before).casefold()


def query_start(tokens: list[Token]) -> int | None:
    """The index of the token that starts the query of a statement before the cursor; None for none."""
    first = tokens[0].upper if tokens else ""
    if [t.upper for t in tokens[:2]] == ["SHOW", "TOPICS"]:
        return None
    for at, token in enumerate(tokens):
        word = token.upper
        if word == "SELECT" or (word == "FROM" and (at == 0 or first in _WITH_FROM)):
            return at
        # WITH WATERMARK is a clause of CREATE STREAM and WITH DRAIN one of STOP QUERY, not a query.
        if word == "WITH" and (first not in ("CREATE", "STOP") or tokens[at - 1].upper == "AS"):
            return at
    return None


def query_cursor(before: list[Token], behind: list[Token], typed: str) -> QueryCursor:
    """The cursor between the tokens of a query; typed: the unfinished word at the cursor."""
    before = with_calls_closed(before)
    places = places_of(before)
    compared = unquote(before[-2]) if before[-1].text == "=" and len(before) > 1 else ""
    return QueryCursor(
        tuple(dict.fromkeys(_expected(before, places[-1], typed))),
        _qualifiers(before),
        compared,
        places,
        before,
        behind,
    )


def _qualifiers(tokens: list[Token]) -> tuple[str, ...]:
    """The names of `a.b.` before the cursor."""
    names: list[str] = []
    at = len(tokens) - 1
    while at > 0 and tokens[at].text == "." and tokens[at - 1].kind in ("word", "quoted"):
        names.insert(0, unquote(tokens[at - 1]))
        at -= 2
    return tuple(names)


def _keywords(words: Iterable[str]) -> Iterator[str]:
    return (f"'{word}'" for word in words)


def _expected(tokens: list[Token], place: Place, typed: str) -> Iterator[str]:
    """The items that can follow the tokens of a query. Where a name is possible as well, keywords are given
    only after a letter is typed.
    """
    last, before = tokens[-1], tokens[-2].upper if len(tokens) > 1 else ""
    word = last.upper if before != "." else ""
    state = _expected_in_state(tokens)
    if state:
        yield from state
        if ";" in state and typed:
            yield from _keywords(AFTER_OPERAND["FROM"])
    elif last.text == ".":
        yield "QualifiedName"
    elif place.expects_relation:
        yield "Relation"
        if typed:
            yield "TableFunction"
            yield from _keywords(IN_FROM)
    elif word == "AS" or last.text == "::":
        if place.call in ("CAST", "TRY_CAST") or last.text == "::":
            yield "TypeName"
    elif word in AFTER_WORD:
        yield from _keywords(AFTER_WORD[word])
    elif place.clause == "WATERMARK" and word == "WATERMARK":
        yield "EventTimeColumn"
    elif place.call == "USING" or (place.clause == "USING" and last.text == "("):
        yield "SharedColumn"
    elif last.kind in ("number", "string") and before == "INTERVAL":
        yield from _keywords(UNITS)
    elif ends_operand(tokens):
        if typed:
            yield from _keywords(after_operand(tokens, place))
    elif word not in ("LIMIT", "OFFSET"):
        yield from _expected_operand(last, place, typed)


def _expected_in_state(tokens: list[Token]) -> list[str]:
    """The items that can follow a STATE OF … or LATE ROWS OF … before the cursor, according to the grammar;
    `;` if it can be complete.
    """
    begins = [
        (at, _OF_QUERY[token.upper])
        for at, token in enumerate(tokens)
        if at and token.upper in _OF_QUERY and tokens[at - 1].upper in ("FROM", "JOIN", ",")
    ]
    return load().expected(begins[-1][1], tokens[begins[-1][0] :]) if begins else []


_OF_QUERY = {"STATE": "StateTable", "LATE": "LateTable"}


def _expected_operand(last: Token, place: Place, typed: str) -> Iterator[str]:
    """The items that can start an expression."""
    word = last.upper
    if place.clause == "ON" and not place.call:
        if word in ("ON", "AND"):
            yield "JoinKey"
        if last.text == "=":
            yield "EqualColumn"
    # GROUP BY uses the columns of relations; later clauses mostly use those of the select list.
    aliases = ("SelectAlias",) if place.clause in _AFTER_SELECT else ()
    if place.clause != "GROUP":
        yield from aliases
    if word != "INTERVAL":
        yield "Column"
        yield from aliases
    if not typed or typed.startswith("`"):
        return
    yield "Function"
    if place.call == "OVER":
        yield from _keywords(("PARTITION BY", "ORDER BY"))
    elif word in ("SELECT", "("):
        yield from _keywords(("DISTINCT", "ALL", "SELECT"))
    yield from _keywords(IN_EXPRESSION)
    if word == "CASE":
        yield from _keywords(("WHEN",))
