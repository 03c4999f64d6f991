"""Whether Spark's parser can take a text, without Spark: its own grammar, run over the console's tokens.

spark_grammar.json is Spark's grammar as tests/make_spark_grammar.py takes it from a running Spark: for each
rule an automaton over classes of tokens and other rules. A text is followed through all rules at once, token
by token; where no rule can go on, Spark's parser stops, too. Conditions of the grammar that depend on
settings hold as they can hold, except those of Switches, so what is refused here is a syntax error under all
other settings. What Spark checks after its grammar (the value of a literal, a unit, a duplicate clause) is
not checked here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from streamsql.language.tokens import Token, tokenize


class _Call(NamedTuple):
    """A call of a rule in a state. first: the classes with which the rule can begin, as bits."""

    first: int
    start: int
    can_be_empty: bool
    next: int


class _State(NamedTuple):
    """first: the classes with which a text can go on here, as bits (all, where the rule can end); steps: the
    state after a token of some classes; ends: whether the rule can end here.
    """

    first: int
    steps: tuple[tuple[int, int], ...]
    calls: tuple[_Call, ...]
    ends: bool


class _Grammar(NamedTuple):
    states: tuple[_State, ...]
    words: dict[str, int]
    kinds: dict[str, int]
    end: int
    statement: int
    query: int


_ANY = -1
"""All bits."""


@cache
def _grammar() -> _Grammar:
    content = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    sets = [int(bits, 16) for bits in content["sets"]]
    empty = frozenset(content["empty"])
    rows = content["states"]

    def first(state: int) -> int:
        number: int = rows[state][0]
        return _ANY if number < 0 else sets[number]

    states = [
        _State(
            first(number),
            tuple((sets[classes], target) for classes, target in steps),
            tuple(_Call(first(start), start, start in empty, target) for start, target in calls),
            bool(ends),
        )
        for number, (_, steps, calls, ends) in enumerate(rows)
    ]
    # A query alone has no rule that includes the end of the text.
    root, ended = len(states), len(states) + 1
    start, end = content["starts"]["query"], content["end"]
    states += [
        _State(_ANY, (), (_Call(first(start), start, False, ended),), False),
        _State(1 << end, ((1 << end, root),), (), False),
    ]
    starts = content["starts"]
    return _Grammar(tuple(states), content["words"], content["kinds"], end, starts["statement"], root)


class Switches(NamedTuple):
    """Settings of Spark on which its grammar depends.

    quoted_names: "x" is a name; clause_only: IDENTIFIER('x') is an expression or a whole name, and no
    alias, no new column and no part of a name.
    """

    quoted_names: bool = False
    clause_only: bool = False

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Switches:
        """The switches among all settings, by their names."""
        return cls(*(settings.get(name, "").strip().casefold() == "true" for name in SWITCHES))


SWITCHES = ("spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.legacy.identifierClause")
"""The settings, in the order of the fields of Switches; false by default."""


DEFAULTS = Switches()


def first_wrong(tokens: Sequence[Token], *, query: bool = False, switches: Switches = DEFAULTS) -> int | None:
    """The index of the first token with which Spark's parser cannot go on; the number of tokens where the
    text ends too early; None for a text that the grammar takes, or that is not read as Spark reads it.

    query: the text is a query, else a statement.
    """
    read = _classes(tokens, switches)
    if read is None:
        return None
    classes, places = read
    wrong = _refused(classes, query)
    return None if wrong is None else places[wrong]


@lru_cache(maxsize=4096)
def _refused(classes: tuple[int, ...], query: bool) -> int | None:
    """The place of the first class with which no rule can go on; None if there is none.

    A state of a rule that is open stands with its caller: a number in `callers`, where the states are to
    which the rule returns. All rules that begin at one token share one caller for each rule.
    """
    grammar = _grammar()
    states = grammar.states
    callers: list[list[tuple[int, int]]] = [[]]
    current = [(grammar.query if query else grammar.statement, 0)]
    for place, token in enumerate((*classes, grammar.end)):
        bit = 1 << token
        todo = [here for here in current if states[here[0]].first & bit]
        seen, opened, following = set(todo), dict[int, int](), set[tuple[int, int]]()
        while todo:
            number, caller = todo.pop()
            _, steps, calls, ends = states[number]
            for accepted, target in steps:
                if accepted & bit:
                    following.add((target, caller))
            returns = callers[caller] if ends else []
            for first, start, can_be_empty, target in calls:
                here = (target, caller)
                if first & bit:
                    inner = opened.get(start)
                    if inner is None:
                        inner = opened[start] = len(callers)
                        callers.append([here])
                        todo.append((start, inner))
                    elif here not in callers[inner]:
                        callers[inner].append(here)
                if can_be_empty:
                    returns = [*returns, here]
            for here in returns:
                if here not in seen and states[here[0]].first & bit:
                    seen.add(here)
                    todo.append(here)
        if not following:
            return place
        current = list(following)
    return None


_NUMBERS = (
    (re.compile(r"\d+\Z"), "INTEGER_VALUE"),
    (re.compile(r"\d+L\Z"), "BIGINT_LITERAL"),
    (re.compile(r"\d+S\Z"), "SMALLINT_LITERAL"),
    (re.compile(r"\d+Y\Z"), "TINYINT_LITERAL"),
    (re.compile(r"(\d+\.\d*|\.\d+)\Z"), "DECIMAL_VALUE"),
    (re.compile(r"(\d+\.?\d*|\.\d+)E[+-]?\d+\Z"), "EXPONENT_VALUE"),
    (re.compile(r"(\d+\.?\d*|\.\d+)(E[+-]?\d+)?BD\Z"), "BIGDECIMAL_LITERAL"),
    (re.compile(r"(\d+\.?\d*|\.\d+)(E[+-]?\d+)?D\Z"), "DOUBLE_LITERAL"),
    (re.compile(r"(\d+\.?\d*|\.\d+)(E[+-]?\d+)?F\Z"), "FLOAT_LITERAL"),
)


def _classes(tokens: Sequence[Token], switches: Switches) -> tuple[tuple[int, ...], list[int]] | None:
    """The class of each token as Spark reads it, and the index of the token that it belongs to, with the
    number of tokens for the end; None if there is a token that Spark may read otherwise.
    """
    classes, places = list[int](), list[int]()
    before: Token | None = None
    for place, token in enumerate(tokens):
        touches = before is not None and before.end == token.start
        if touches and before and before.text == "." and token.kind == "number":
            classes.pop()  # Spark reads `.5` as a number wherever it stands
            places.pop()
            token = token.saying(f".{token.text}")
        for number in _of_token(token, before.text if before and touches else "", switches):
            if number is None:
                return None
            classes.append(number)
            places.append(place)
        before = token
    return tuple(classes), [*places, len(tokens)]


def _of_token(token: Token, before: str, switches: Switches) -> Iterable[int | None]:
    """The classes of a token; None for one that Spark may read otherwise. before: the text of the token that
    ends where it begins, "" for none.
    """
    words, kinds = _grammar().words, _grammar().kinds
    kind, text = token.kind, token.text
    if kind == "word":
        if not text.isascii() and not all(c.isalnum() or c == "_" for c in text):
            return (None,)
        if switches.clause_only and text.upper() == "IDENTIFIER":
            return (kinds["IDENTIFIER_OF_A_CLAUSE"],)
        return (words.get(text.upper(), kinds["IDENTIFIER"]),)
    if kind == "sign":
        return (words[text],) if text in words and text not in _ADJACENT else _of_signs(text, before)
    if kind == "number":
        return (next((kinds[name] for form, name in _NUMBERS if form.match(text.upper())), None),)
    if kind == "string":
        return _of_string(text, kinds, switches)
    if kind == "hint":
        return _of_hint(text, switches)
    return (kinds["BACKQUOTED_IDENTIFIER"],)


_ADJACENT = {"<": "ADJACENT_LT", ">": "ADJACENT_GT"}


def _of_signs(text: str, before: str) -> Iterator[int | None]:
    """The classes of the characters of a sign: `>>` is one to Spark in `a >> b`, two in ARRAY<ARRAY<a>>."""
    words, kinds = _grammar().words, _grammar().kinds
    if (text == "/" and before == "*") or "//" in before + text:
        yield None  # the end of a comment in a comment; the address of a file as a name
    for character in text:
        adjacent = character in _ADJACENT and before[-1:] == character
        yield (kinds[_ADJACENT[character]] if adjacent else words.get(character, kinds["UNRECOGNIZED"]))
        before = character


def _of_hint(text: str, switches: Switches) -> Iterator[int | None]:
    """The classes of `/*+ … */`."""
    words = _grammar().words
    inside = _classes(tokenize(text[3:-2], strict=False), switches)
    yield words["/*+"]
    yield from inside[0] if inside else (None,)
    yield words["*/"]


def _of_string(text: str, kinds: dict[str, int], switches: Switches) -> Iterable[int | None]:
    """`x'1F'` is a name and a string to Spark's grammar, `r'…'` one string, `$$…$$` three tokens."""
    first = text[0]
    if first == "$":
        parts = ("BEGIN_DOLLAR_QUOTED_STRING", "DOLLAR_QUOTED_STRING_BODY", "END_DOLLAR_QUOTED_STRING")
        return map(kinds.get, parts)
    quoted = kinds["BACKQUOTED_IDENTIFIER" if switches.quoted_names else "DOUBLEQUOTED_STRING"]
    if first == "'" or first in "rR":
        return (kinds["STRING_LITERAL"],)
    if first == '"':
        return (quoted,)
    return (kinds["IDENTIFIER"], quoted if text[1:2] == '"' else kinds["STRING_LITERAL"])
