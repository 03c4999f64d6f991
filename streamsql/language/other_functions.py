"""Functions of other consoles, and what they are in Spark.

The data are rows in the tables of HELP SWITCHING FROM …: `list_sort(list)` | `array_sort(list)`. In the left
cell, a name in small letters is an argument, `'unit'` a text that stands without quotes in the right cell,
`'%format'` one with the date pattern of C, `'number'` a number as it is written, `interval` an interval, `…`
all further arguments; all else stands for itself. A right cell that is no code says why there is no function
for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from streamsql.language.habits import PREFIX
from streamsql.language.tokens import Token, quote, unquote
from streamsql.language.topics import topics

_ROW = re.compile(
    r"^\| `(?P<name>\w+)\((?P<takes>[^`]*)\)` \| (?:`(?P<form>[^`]+)`|(?P<refusal>[^`|]+)) \|$", re.MULTILINE
)
_ITEM = re.compile(r"'[^']*'|\w+|…|=>|-")


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


def _rows(page: str) -> Iterator[OtherFunction]:
    for row in _ROW.finditer(page):
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
