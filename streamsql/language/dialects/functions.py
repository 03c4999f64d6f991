"""Functions of other consoles, and what they are in Spark.

The data are rows in the tables of HELP SWITCHING FROM …: `list_sort(list)` | `array_sort(list)`. In the left
cell, a name in small letters is an argument, `'unit'` a text that stands without quotes in the right cell,
`'%format'` one with the date pattern of C, `'number'` a number as it is written, `interval` an interval, `…`
all further arguments; all else stands for itself. A right cell that is no code says why there is no function
for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from streamsql.language.dialects.statements import PREFIX
from streamsql.language.token_groups import closing, items_of
from streamsql.language.tokens import Token, quote, tokenize, unquote
from streamsql.language.topics import topics
from streamsql.language.window_words import interval_text

_ROW = re.compile(
    r"^\| `(?P<name>\w+)\((?P<takes>[^`]*)\)` \| (?:`(?P<form>[^`]+)`|(?P<refusal>[^`|]+)) \|$", re.MULTILINE
)
_MEANING = re.compile(
    r"^\| `(?P<name>\w+)\((?P<takes>[^`]*)\)` \| `(?P<form>[^`]+)` \| (?P<refusal>)[^`|]+ \|$", re.MULTILINE
)
"""A row of what Spark reads otherwise than the other console: only read where that dialect is chosen."""
_ITEM = re.compile(r"'[^']*'|\w+|…|=>|-")
_PAGES = {"postgres": "psql", "duckdb": "duckdb", "flink": "flink", "ksqldb": "ksqldb"}


@dataclass(frozen=True)
class OtherFunction:
    """name: folded; takes: the items of each argument; form: Spark's expression with these arguments, ""
    where there is none; refusal: the reason then.
    """

    name: str
    takes: tuple[tuple[str, ...], ...]
    form: str
    refusal: str = ""

    def matches(self, text: str, arguments: Sequence[Sequence[Token]]) -> dict[str, str] | None:
        """The text of each argument by its name; None if these are other arguments."""
        takes, values = self.takes, {}
        if takes and takes[-1] == ("…",):
            further = arguments[len(takes) - 1 :]
            values["…"] = text[further[0][0].start : further[-1][-1].end] if further else ""
            takes, arguments = takes[:-1], arguments[: len(takes) - 1]
        if len(takes) != len(arguments):
            return None
        for items, tokens in zip(takes, arguments, strict=True):
            found = self._argument(items, text, tokens)
            if found is None:
                return None
            values |= found
        return values

    def _argument(self, items: Sequence[str], text: str, tokens: Sequence[Token]) -> dict[str, str] | None:
        if not items or not tokens:
            return None if items or tokens else {}
        item = items[0]
        name = item.strip("'%")
        if item.startswith("'") and item != "'number'" and name in self.places and tokens[0].kind == "string":
            own = _date_pattern(unquote(tokens[0])) if item.startswith("'%") else unquote(tokens[0])
            rest = self._argument(items[1:], text, tokens[1:])
            return None if rest is None or not own else {name: own, **rest}
        if item == "'number'":
            whole = len(tokens) == 1 and tokens[0].kind == "number"
            return {name: tokens[0].text} if whole else None
        if not item.islower() or item.startswith("'"):
            alike = tokens[0].upper == item.upper()
            return self._argument(items[1:], text, tokens[1:]) if alike else None
        for end in range(1, len(tokens) + 1):
            rest = self._argument(items[1:], text, tokens[end:])
            if rest is not None and _is_one(tokens[:end]):
                return {name: text[tokens[0].start : tokens[end - 1].end], **rest}
        return None

    @property
    def places(self) -> frozenset[str]:
        """The names of arguments in the form."""
        return frozenset(re.findall(r"\w+\b(?!\()", self.form))

    def filled(self, values: dict[str, str], of: Callable[[str, str], str]) -> str:
        """The form with these arguments. of: a function of the name and the text of one."""
        names = "|".join(map(re.escape, sorted(values, key=len, reverse=True))) or "(?!)"
        place = rf"(?<![\w.])({names})(?![\w(])"
        return re.sub(place, lambda match: of(match[1], values[match[1]]), self.form)


@cache
def other_functions() -> dict[str, tuple[OtherFunction, ...]]:
    """The rows by the name of their function, folded."""
    rows: dict[str, tuple[OtherFunction, ...]] = {}
    for name, topic in topics().items():
        if name.startswith(PREFIX):
            for row in _rows(topic.text):
                rows[row.name] = (*rows.get(row.name, ()), row)
    return rows


@cache
def _of_dialect(dialect: str) -> dict[str, tuple[OtherFunction, ...]]:
    """The same with the functions that Spark has, too, with another meaning."""
    rows = dict(other_functions())
    page = topics()[f"{PREFIX}{_PAGES[dialect]}"].text
    for row in _rows(page, _MEANING):
        rows[row.name] = (row, *rows.get(row.name, ()))
    return rows


def _rows(page: str, form: re.Pattern[str] = _ROW) -> Iterator[OtherFunction]:
    for row in form.finditer(page):
        yield OtherFunction(
            row["name"].casefold(), takes_of(row["takes"]), row["form"] or "", row["refusal"] or ""
        )


def takes_of(arguments: str) -> tuple[tuple[str, ...], ...]:
    """The items of each argument of a call in the tables."""
    takes = tuple(tuple(_ITEM.findall(argument)) for argument in arguments.split(","))
    return takes if takes != ((),) else ()


def reason(name: str) -> str:
    """Why there is no function of that name, and what there is; "" if that is not known."""
    rows = other_functions().get(name.casefold(), ())
    return next((row.refusal or row.form for row in rows), "")


_WORDS_OF_OTHERS = frozenset(("ORDER", "RETURNING", "TO", "FROM", "VALUE", "SEPARATOR", "USING"))


def _is_one(tokens: Sequence[Token]) -> bool:
    """Whether tokens are one argument, without a word behind it that only belongs to some functions."""
    depth = 0
    for token in tokens:
        depth += (token.text in "([") - (token.text in ")]")
        if depth == 0 and token.kind == "word" and token.upper in _WORDS_OF_OTHERS:
            return False
    return depth == 0


_OF_C = {
    "%Y": "yyyy", "%y": "yy", "%m": "MM", "%d": "dd", "%-d": "d", "%-m": "M", "%H": "HH", "%I": "hh",
    "%M": "mm", "%S": "ss", "%f": "SSSSSS", "%g": "SSS", "%b": "MMM", "%B": "MMMM", "%a": "E", "%A": "EEEE",
    "%p": "a", "%j": "DDD", "%z": "Z", "%Z": "VV", "%F": "yyyy-MM-dd", "%T": "HH:mm:ss", "%%": "%",
}  # fmt: skip


def _date_pattern(pattern: str) -> str:
    """A date pattern of C (`%Y-%m-%d`) as Spark writes it; "" for one that Spark does not have."""
    own = ""
    for part in re.findall(r"%-?.|[A-Za-z]+|.", pattern):
        if part.startswith("%"):
            if part not in _OF_C:
                return ""
            own += _OF_C[part]
        else:
            own += f"'{part}'" if part.isalpha() else part
    return quote(own)[1:-1]


@dataclass
class Guarded:
    """A statement in which calls of other functions, and of the user's own, have names that no dialect knows.

    calls: the row of each, with its arguments that are no expressions and the names of those that are; own:
    the user's functions.
    """

    text: str = ""
    calls: list[tuple[OtherFunction, dict[str, str], list[str]]] = field(default_factory=list)
    own: list[str] = field(default_factory=list)

    def form(self, node: Any) -> str | None:
        """Spark's expression for a call of one of them; None for any other call."""
        name = node.name if isinstance(node.this, str) else ""
        if not name.startswith(_CALL):
            return None
        row, values, names = self.calls[int(name.removeprefix(_CALL))]
        arguments = [argument.sql("spark", normalize_functions=False) for argument in node.expressions]
        further = len(names) - 1 if names[-1:] == ["…"] else len(names)
        found = dict(zip(names[:further], arguments, strict=False))
        if further < len(names):
            found["…"] = ", ".join(arguments[further:])
        return row.filled({**values, **found}, lambda _, value: value)

    def named(self, text: str) -> str:
        """A text with the names of the user's functions again."""
        return re.sub(rf"{_OWN}(\d+)", lambda match: self.own[int(match[1])], text)


_CALL, _OWN = "other_function_", "own_function_"
_LITERAL = frozenset(("interval", "length", "type", "row", "…type"))
"""Arguments that are no expressions."""


_RELATIONS = frozenset(("unnest", "generate_series"))
"""Functions that make rows, which sqlglot reads where they stand in FROM."""


def guarded(text: str, dialect: str, own: Collection[str]) -> Guarded:
    """A statement with such names. own: the user's functions, folded."""
    guard = Guarded()
    guard.text = _guard(guard, text, dialect, own)
    return guard


def _guard(guard: Guarded, text: str, dialect: str, own: Collection[str]) -> str:
    tokens, rows = tokenize(text, strict=False), _of_dialect(dialect)
    out, end, at = "", 0, 0
    while at + 1 < len(tokens):
        token = tokens[at]
        called = (
            token.kind == "word" and tokens[at + 1].text == "(" and (not at or tokens[at - 1].text != ".")
        )
        name = token.text.casefold() if called else ""
        if name in _RELATIONS and text.startswith("SELECT * FROM "):
            name = ""
        close = closing(tokens, at + 1) if name in rows or name in own else len(tokens)
        if name in own:
            out += f"{text[end : token.start]}{_OWN}{len(guard.own)}"
            guard.own.append(token.text)
            end = token.end
        elif close < len(tokens):
            arguments = list(items_of(tokens[at + 2 : close]))
            found = next((f for row in rows[name] if (f := _matched(row, text, arguments))), None)
            if found:
                number = len(guard.calls)
                row, literals, expressions = found
                guard.calls.append((row, literals, list(expressions)))
                inner = ", ".join(_guard(guard, value, dialect, own) for value in expressions.values())
                out += f"{text[end : token.start]}{_CALL}{number}({inner})"
                end, at = tokens[close].end, close
        at += 1
    return out + text[end:]


def _matched(
    row: OtherFunction, text: str, arguments: Sequence[Sequence[Token]]
) -> tuple[OtherFunction, dict[str, str], dict[str, str]] | None:
    """The row, its arguments that are no expressions, and those that are; None if it does not match."""
    values = row.matches(text, arguments) if row.form else None
    if values is None:
        return None
    if "interval" in values:
        values["interval"] = interval_text(values["interval"])
    if not all(values.values()):
        return None
    quoted = {item.strip("'%") for items in row.takes for item in items if item.startswith("'")}
    literals = {name: value for name, value in values.items() if name in quoted | _LITERAL}
    expressions = {name: value for name, value in values.items() if name not in literals}
    if "…" in expressions:
        expressions["…"] = expressions.pop("…")
    return row, literals, expressions
