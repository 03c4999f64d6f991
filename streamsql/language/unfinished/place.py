"""The position of the cursor in a query, from the tokens before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamsql.language.console_clauses import WINDOW_TABLES
from streamsql.language.token_groups import begins_clause
from streamsql.language.tokens import Token

_QUERY_HEADS = frozenset(("SELECT", "WITH", "FROM"))
_BEFORE_NAME = frozenset(("STREAM", "TABLE"))


@dataclass(frozen=True)
class Place:
    """The position of the cursor in a query, or of any other token.

    clause: the first word of the clause, "" before the first; expects_relation: whether a relation is
    expected; call: the word before the innermost open parenthesis, upper case; in_call: whether that
    parenthesis encloses a part of a clause, and neither a query nor relations; has_list: whether a comma
    continues a list of rows or of columns, as in VALUES and LATERAL VIEW.
    """

    clause: str = ""
    expects_relation: bool = False
    call: str = ""
    in_call: bool = False
    has_list: bool = False


def places_of(tokens: Sequence[Token]) -> list[Place]:
    """The places of the open parentheses after the tokens of a query, from the outside in; the last one is
    that of the cursor.
    """
    places = [Place()]
    for at, token in enumerate(tokens):
        place, word = places[-1], token.upper
        if token.text == "(":
            places.append(_in_parenthesis(place, tokens, at))
        elif token.text == ")":
            if len(places) > 1:
                places.pop()
            places[-1] = replace(places[-1], expects_relation=False)
        elif place.in_call:
            relation = place.clause == "FROM" and word == "TABLE"
            places[-1] = replace(place, expects_relation=relation)
        else:
            places[-1] = _after_token(place, tokens, at, word)
    return places


def _in_parenthesis(place: Place, tokens: Sequence[Token], at: int) -> Place:
    if [t.upper for t in tokens[at + 1 : at + 2] if t.upper in _QUERY_HEADS]:
        return Place()
    if place.expects_relation:
        return Place(place.clause, True)
    call = tokens[at - 1].upper if at else ""
    return Place(place.clause, place.clause == "FROM" and call in WINDOW_TABLES, call, in_call=True)


def _after_token(place: Place, tokens: Sequence[Token], at: int, word: str) -> Place:
    if begins_clause(tokens, at):
        return Place("FROM" if word == "JOIN" else word, word in ("FROM", "JOIN"), place.call)
    before = tokens[at - 1].upper if at else ""
    if place.clause == "WATERMARK" and before == "INTERVAL":
        return replace(place, clause="FROM")
    if place.clause != "FROM" or before == ".":
        return place
    if word == "," and not place.has_list:
        return replace(place, expects_relation=True)
    if word == "WATERMARK" and not place.expects_relation:
        return replace(place, clause="WATERMARK")
    if word in ("VIEW", "VALUES"):
        return replace(place, expects_relation=False, has_list=True)
    return place if word in _BEFORE_NAME else replace(place, expects_relation=False)
