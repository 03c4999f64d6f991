"""Whether Spark's parser can take a text, without Spark: its own grammar, run over the console's tokens.

spark_grammar.json is Spark's grammar as tests/make_spark_grammar.py takes it from a running Spark: for each
rule an automaton over classes of tokens and other rules. A text is followed through all rules at once, token
by token; where no rule can go on, Spark's parser stops, too. Conditions of the grammar that depend on
settings hold as they can hold, so what is refused here is a syntax error under all settings. What Spark
checks after its grammar (the value of a literal, a unit, a duplicate clause) is not checked here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from streamsql.language.tokens import Token


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


def first_wrong(tokens: Sequence[Token], *, query: bool = False, quoted_names: bool = False) -> int | None:
    """The index of the first token with which Spark's parser cannot go on; the number of tokens where the
    text ends too early; None for a text that the grammar takes, or that is not read as Spark reads it.

    query: the text is a query, else a statement. quoted_names: "x" is a name, as under
    spark.sql.ansi.doubleQuotedIdentifiers.
    """
    read = _classes(tokens, quoted_names)
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


def _classes(tokens: Sequence[Token], quoted_names: bool) -> tuple[tuple[int, ...], list[int]] | None:
    """The class of each token as Spark reads it, and the index of the token that it belongs to, with the
    number of tokens for the end; None if there is a token that Spark may read otherwise.
    """
    grammar = _grammar()
    words, kinds = grammar.words, grammar.kinds
    name = kinds["IDENTIFIER"]
    string = {'"': kinds["BACKQUOTED_IDENTIFIER" if quoted_names else "DOUBLEQUOTED_STRING"]}
    classes, places = list[int](), list[int]()
    before: Token | None = None
    for place, token in enumerate(tokens):
        kind, text = token.kind, token.text
        read: Iterable[int | None]
        if kind == "word":
            if not text.isascii() and not all(c.isalnum() or c == "_" for c in text):
                return None
            read = (words.get(text.upper(), name),)
        elif kind == "sign":
            if text == "/" and before and before.text == "*" and before.end == token.start:
                return None  # the end of a comment in a comment
            read = (words[text],) if text in words else map(words.get, text)
        elif kind == "number":
            if before and before.text == "." and before.end == token.start:
                classes.pop()
                places.pop()
                text = f".{text}"  # Spark reads `.5` as a number wherever it stands
            read = (_class_of_number(text, kinds),)
        elif kind == "string":
            read = _of_string(text, kinds, name, string)
        elif kind == "quoted":
            read = (kinds["BACKQUOTED_IDENTIFIER"],)
        else:
            continue  # a hint
        before = token
        for each in read:
            if each is None:
                return None
            classes.append(each)
            places.append(place)
    return tuple(classes), [*places, len(tokens)]


def _class_of_number(text: str, kinds: dict[str, int]) -> int | None:
    return next((kinds[kind] for form, kind in _NUMBERS if form.match(text.upper())), None)


def _of_string(text: str, kinds: dict[str, int], name: int, quotes: dict[str, int]) -> Iterable[int | None]:
    """`x'1F'` is a name and a string to Spark's grammar, `r'…'` one string, `$$…$$` three tokens."""
    first = text[0]
    if first == "$":
        parts = ("BEGIN_DOLLAR_QUOTED_STRING", "DOLLAR_QUOTED_STRING_BODY", "END_DOLLAR_QUOTED_STRING")
        return map(kinds.get, parts)
    literal = kinds["STRING_LITERAL"]
    if first in "'\"" or first in "rR":
        return (quotes.get(first, literal),)
    return (name, quotes.get(text[1:2], literal))
