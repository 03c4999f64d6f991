"""Expressions that Spark reads, but that mean something else in other consoles: a note tells both meanings.

The data are rows with three cells in the tables of HELP SWITCHING FROM …: `log(number)` | `log10(number)` |
the natural logarithm: what is typed there, the same in Spark's words, and what Spark means by what is typed.
A call is written as in other_functions.py; any other row is a left operand, a sign and a right one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from streamsql.language.habits import PREFIX
from streamsql.language.operands import operand
from streamsql.language.other_functions import OtherFunction, takes_of
from streamsql.language.query import Query
from streamsql.language.token_groups import closing, items_of
from streamsql.language.tokens import Token, unquote
from streamsql.language.topics import topics

_ROW = re.compile(r"^\| `(?P<typed>[^`]+)` \| `(?P<form>[^`]+)` \| (?P<here>[^`|]+) \|$", re.MULTILINE)
_CALL = re.compile(r"(?P<name>\w+)\((?P<takes>.*)\)")
_BINARY = re.compile(r"(?P<left>\w+)\s*(?P<sign>[^\w\s])\s*(?P<right>\w+)")
_SYSTEMS = {"psql": "PostgreSQL", "duckdb": "DuckDB", "flink": "Flink", "ksqldb": "ksqlDB"}


@dataclass(frozen=True)
class OtherMeaning:
    """typed: the pattern; form: what it means there, in Spark's words; here: what Spark means by it; systems:
    where it means that.
    """

    typed: str
    form: str
    here: str
    systems: tuple[str, ...]

    @property
    def name(self) -> str:
        """The function, folded, or the sign between two operands."""
        match = _CALL.fullmatch(self.typed)
        if match:
            return match["name"].casefold()
        binary = _BINARY.match(self.typed)
        assert binary, self.typed
        return binary["sign"]

    def sentence(self, written: str, values: dict[str, str]) -> str:
        own = OtherFunction("", (), self.form).filled(values, lambda _, value: value)
        return f"{written} is {self.here} in Spark, and {own} in {' and '.join(self.systems)}"


@cache
def _meanings() -> dict[str, tuple[OtherMeaning, ...]]:
    """The rows by their name; one that stands on several pages has all their systems."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for page, topic in topics().items():
        if page.startswith(PREFIX):
            for row in _ROW.finditer(topic.text):
                system = _SYSTEMS[page.removeprefix(PREFIX)]
                found.setdefault((row["typed"], row["form"], row["here"]), []).append(system)
    named: dict[str, tuple[OtherMeaning, ...]] = {}
    for cells, systems in found.items():
        meaning = OtherMeaning(*cells, tuple(systems))
        named[meaning.name] = (*named.get(meaning.name, ()), meaning)
    return named


def other_meanings(query: Query, maps: Collection[str] = ()) -> Iterator[str]:
    """A sentence for each expression of a query that means something else in other consoles. maps: the
    columns, case-folded, that are known to be maps, whose keys are counted nowhere.
    """
    tokens, meanings = query.tokens, _meanings()
    for at in range(1, len(tokens) - 1):
        if tokens[at].text == "[" and unquote(tokens[at - 1]).casefold() in maps:
            continue
        for meaning in meanings.get(tokens[at].text.casefold(), ()):
            found = (_call if tokens[at].kind == "word" else _binary)(query.text, tokens, at, meaning)
            if found:
                yield meaning.sentence(*found)
                break


def _call(
    text: str, tokens: Sequence[Token], at: int, meaning: OtherMeaning
) -> tuple[str, dict[str, str]] | None:
    """The call at that token as it is written, and its arguments; None if it does not match."""
    close = closing(tokens, at + 1) if tokens[at + 1].text == "(" else len(tokens)
    call = _CALL.fullmatch(meaning.typed)
    if close == len(tokens) or tokens[at - 1].text == "." or call is None:
        return None
    function = OtherFunction(meaning.name, takes_of(call["takes"]), meaning.form)
    values = function.matches(text, list(items_of(list(tokens[at + 2 : close]))))
    return None if values is None else (text[tokens[at].start : tokens[close].end], values)


def _binary(
    text: str, tokens: Sequence[Token], at: int, meaning: OtherMeaning
) -> tuple[str, dict[str, str]] | None:
    """The operands of the sign at that token, as `_call`."""
    binary = _BINARY.match(meaning.typed)
    last = _right_operand(tokens, at + 1)
    start = at - 1 if tokens[at - 1].kind == "number" else operand(tokens, at)
    if binary is None or last is None or start == at:
        return None
    end = last
    if meaning.name == "[":
        counted = tokens[at + 1].kind == "number" and tokens[at + 1].text != "0"
        end = last + 1
        if (
            not counted
            or end >= len(tokens)
            or tokens[end].text != "]"
            or tokens[at - 1].end < tokens[at].start
        ):
            return None
    values = {
        binary["left"]: text[tokens[start].start : tokens[at - 1].end],
        binary["right"]: text[tokens[at + 1].start : tokens[last].end],
    }
    return text[tokens[start].start : tokens[end].end], values


def _right_operand(tokens: Sequence[Token], at: int) -> int | None:
    """The last token of the operand that begins at that one: a number, a name, a call or a parenthesis."""
    if tokens[at].text == "-" and at + 1 < len(tokens):
        return _right_operand(tokens, at + 1)
    last = at
    while last + 2 < len(tokens) and tokens[last + 1].text == ".":
        last += 2
    opening = last if tokens[last].text == "(" else last + 1
    if opening < len(tokens) and tokens[opening].text == "(":
        close = closing(tokens, opening)
        return close if close < len(tokens) else None
    return last if tokens[last].kind in ("word", "quoted", "number", "string") else None
