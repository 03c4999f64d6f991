"""Statements of other consoles, and the console's own statements for them.

The data are the tables of HELP SWITCHING FROM … (grammars/topics/switching_from_*.md), with a row for each
statement: `typed there` | `typed here`. In the left cell, `<name>` is a name and `<text>` a text (each with
or without quotes), `<file>` a text in single quotes, `<number>` a number (each may have a digit behind it:
`<name2>`), `<rest…>` all up to what follows it in the row, `<path…>` the same as a text, `[ ]` encloses what
may be left out, and all else stands for itself; a text that ends with `…` is any text that begins so. The
right cell is run in its place, or is proposed if it contains `…`. A right cell that is no code says why there
is no statement for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeVar

from streamsql.errors import InputFault, Span, SyntaxFault
from streamsql.language.tokens import Token, quote, quote_name, tokenize, unquote
from streamsql.language.topics import topics

PREFIX = "switching from "
_Fault = TypeVar("_Fault", SyntaxFault, InputFault)
_NAMES = {"flink": "Flink", "ksqldb": "ksqlDB", "duckdb": "DuckDB"}
_ROW = re.compile(
    r"^\| `(?P<typed>(?!\w+\()[^'`][^`]*)` \| (?:`(?P<form>[^`]+)`|(?P<refusal>[^`|]+)) \|$", re.MULTILINE
)
OPERATOR = re.compile(
    r"(?:(?P<left>[a-z]+) )?(?P<sign>[^\w\s\\.<[]\S*|<[^\w\s]+|[A-Z]+(?: [A-Z]+)*)(?: (?P<right>[a-z]+))?"
)
"""The left cell of a row that is an operator with its operands."""
_ITEM = re.compile(r"\[|\]|<\w+…?>|'[^']*'|\w+|[^\s\w]")
_PLACES = re.compile(r"<\w+…?>|\[.*?\]")
_PART = re.compile(r"\[(?P<optional>[^\]]*)\]|<(?P<place>\w+)…?>")


@dataclass(frozen=True)
class Habit:
    """console: where it is typed (Flink, psql, …); page: the topic of its row; typed: the pattern of the
    statement; form: the statement here, with the places of the pattern; refusal: why there is none, "" if
    there is one; of_spark: whether Spark's grammar takes it, so that the form is for a statement that failed.
    """

    console: str
    page: str
    typed: str
    form: str
    refusal: str = ""
    of_spark: bool = False

    @property
    def runs(self) -> bool:
        """Whether the form is complete, so that it can be run in place of what was typed."""
        return not self.refusal and "…" not in self.form.replace("…>", ">")

    @property
    def fact(self) -> str:
        """The message of an error for a row that does not run."""
        if self.refusal:
            head = _PLACES.sub("", self.typed.partition(" = ")[0]).replace("()", "")
            return f"there is no {' '.join(head.split()).rstrip(' ,')} here"
        return f"this is a {'command' if self.is_command else 'statement'} of {self.console}"

    @property
    def hint(self) -> str:
        """What to type instead where there is no statement for it."""
        return f"HELP {self.page}; lists what there is" if self.refusal else ""

    def fault(self, kind: type[_Fault], form: str, span: Span) -> _Fault:
        """The error for a row that does not run. form: the statement here as far as it is known, or ""."""
        return kind(
            self.fact,
            detail=self.refusal,
            hint=self.hint,
            proposal=f"{form};" if form else "",
            span=span,
            code="OTHER_CONSOLE",
        )

    @property
    def is_command(self) -> bool:
        """Whether it is a command of a prompt, such as `\\dt` or `.tables`, rather than a statement."""
        return self.typed.startswith(("\\", "."))

    def filled(self, values: dict[str, str]) -> str:
        """The form with these values in its places; an optional part without its value is left out."""

        def part(match: re.Match[str]) -> str:
            if match["optional"] is None:
                return match[0]
            wanted = [m["place"] for m in _PART.finditer(match["optional"])]
            return match["optional"] if all(w in values for w in wanted) else ""

        form = " ".join(_PART.sub(part, self.form).split())
        return _PART.sub(lambda match: values[match["place"]], form)


@cache
def habits() -> tuple[Habit, ...]:
    """All rows of the tables."""
    return tuple(
        Habit(console, name, row["typed"], row["form"] or "", row["refusal"] or "", of_spark)
        for name, topic in topics().items()
        if name.startswith(PREFIX)
        for console, section in _sections(name, topic.text)
        for of_spark, table in _tables(section)
        for row in _ROW.finditer(table)
        if not _is_operator(row["typed"])
    )


_SECTION = re.compile(r"^Statements of (\w+):$", re.MULTILINE)


def _sections(page: str, text: str) -> Iterator[tuple[str, str]]:
    """(console, text) of the parts of a page: each `Statements of …:` begins one."""
    name = page.removeprefix(PREFIX)
    before, *parts = _SECTION.split(text)
    yield _NAMES.get(name, name), before
    yield from zip(parts[::2], parts[1::2], strict=True)


_OF_SPARK = re.compile(r"Spark reads these statements itself\.", re.MULTILINE)
"""The sentence above a table of statements that Spark's grammar takes."""
_END_OF_TABLE = re.compile(r"\n\n(?=[^|\n])")


def _tables(section: str) -> Iterator[tuple[bool, str]]:
    """(whether Spark's grammar takes its statements, table) of the parts of a section."""
    of_spark = False
    for part in _END_OF_TABLE.split(section):
        of_spark = bool(_OF_SPARK.match(part))
        yield of_spark, part


def operators() -> Iterator[tuple[str, str]]:
    """(operator, why Spark has none and what there is) of the rows without a form."""
    for name, topic in topics().items():
        for row in _ROW.finditer(topic.text) if name.startswith(PREFIX) else ():
            match = OPERATOR.fullmatch(row["typed"])
            if match and row["refusal"] and (match["left"] or match["right"]):
                yield match["sign"], row["refusal"]


def _is_operator(typed: str) -> bool:
    match = OPERATOR.fullmatch(typed)
    return bool(match and (match["left"] or match["right"]))


def own_form(text: str, tokens: Sequence[Token], *, of_spark: bool = False) -> tuple[Habit, str] | None:
    """The row that a statement matches, and the console's own statement for it; None if it matches none.
    of_spark: also one that Spark's grammar takes.
    """
    tokens = _setting(text, tokens)
    second = tokens[1].upper if len(tokens) > 1 else ""
    candidates = [row for row in _by_first_word().get(tokens[0].upper, ()) if row.second in ("", second)]
    written = {t.upper for t in tokens} if candidates else set()
    for row in candidates:
        skipped = row.words - written or (row.habit.of_spark and not of_spark)
        for values in () if skipped else _matches(row.items, tokens, text):
            return row.habit, row.habit.filled(values)
    return None


def _setting(text: str, tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens of SET key = value, with key and value as texts; any other tokens as they are."""
    sign = next((n for n, t in enumerate(tokens) if t.text == "="), 0)
    if tokens[0].upper != "SET" or sign < 2 or sign + 1 == len(tokens):
        return tokens
    key, value = tokens[1:sign], tokens[sign + 1 :]
    return [tokens[0], _as_text(text, key), tokens[sign], _as_text(text, value)]


def _as_text(text: str, tokens: Sequence[Token]) -> Token:
    first, start, end = tokens[0], tokens[0].start, tokens[-1].end
    if len(tokens) == 1 and first.kind in ("word", "quoted", "string"):
        return first
    return first.saying(quote(text[start:end]), "string")._replace(end=end)


class _Row(NamedTuple):
    """A row with its items, its second word ("": a place), and the words without which nothing matches it."""

    habit: Habit
    items: tuple[str, ...]
    second: str
    words: frozenset[str]


@cache
def _by_first_word() -> dict[str, list[_Row]]:
    """The rows by their first words."""
    rows: dict[str, list[_Row]] = {}
    for habit in habits():
        if not habit.is_command:
            items = tuple(_ITEM.findall(habit.typed))
            second = items[1].upper() if len(items) > 1 and items[1][0] not in "<'[" else ""
            row = _Row(habit, items, second, frozenset(_needed(items)))
            rows.setdefault(items[0].upper(), []).append(row)
    return rows


def _needed(items: Sequence[str]) -> Iterator[str]:
    optional = False
    for item in items:
        optional = item == "[" or (optional and item != "]")
        if not optional and item != "]" and item[0] not in "<'":
            yield item.upper()


def _matches(items: Sequence[str], tokens: Sequence[Token], text: str) -> Iterator[dict[str, str]]:
    """The values of the places, for each way in which the tokens match the items."""
    if not items:
        if not tokens:
            yield {}
        return
    item = items[0]
    if item == "[":
        close = items.index("]")
        yield from _matches([*items[1:close], *items[close + 1 :]], tokens, text)
        yield from _matches(items[close + 1 :], tokens, text)
    elif item.endswith("…>"):
        for last in _ends(items, tokens):
            # All that follows, also behind a quote that is not closed.
            end = tokens[last].end if len(items) > 1 else len(text)
            rest = text[tokens[0].start : end].rstrip()
            written = {item[1:-2]: quote(rest.strip("'\"")) if item == "<path…>" else rest}
            for values in _matches(items[1:], tokens[last + 1 :], text):
                yield written | values
    elif tokens:
        value = _value(item, tokens[0])
        if value is not None:
            for values in _matches(items[1:], tokens[1:], text):
                yield {item[1:-1]: value, **values} if item.startswith("<") else values


def _ends(items: Sequence[str], tokens: Sequence[Token]) -> Iterator[int]:
    """The tokens at which `<rest…>`, the first item, can end: the last one, or those before the next item."""
    if len(items) == 1:
        if tokens:
            yield len(tokens) - 1
        return
    depth = 0
    for at in range(len(tokens) - 1):
        depth += (tokens[at].text == "(") - (tokens[at].text == ")")
        if depth == 0 and (items[1].startswith(("<", "[")) or _value(items[1], tokens[at + 1]) is not None):
            yield at


def _value(item: str, token: Token) -> str | None:
    """The text that a token has in the form; None if it does not match the item."""
    item = re.sub(r"\d>$", ">", item)
    if item == "<name>":
        return quote_name(unquote(token)) if token.kind in ("word", "quoted", "string") else None
    if item == "<text>":
        if token.kind == "string":
            return token.text
        return quote(unquote(token)) if token.kind in ("word", "quoted") else None
    if item == "<file>":
        return token.text if token.kind == "string" and token.text.startswith("'") else None
    if item == "<number>":
        return token.text if token.kind == "number" else None
    if item.startswith("'"):
        word, expected = unquote(token).casefold(), item[1:-1].casefold()
        like = word.startswith(expected[:-1]) if expected.endswith("…") else word == expected
        return "" if like and token.kind in ("string", "word") else None
    return "" if token.upper == item.upper() else None


def command_form(line: str) -> tuple[Habit, str] | None:
    """The row of a command of another prompt, such as `\\dt` or `.tables`, and the statement for it. Capital
    letters are others, as in psql: \\dT is not \\dt.
    """
    text = line.lstrip("\\.")
    tokens = tokenize(text, strict=False)
    if not tokens:
        return None
    for habit in habits():
        items = _ITEM.findall(habit.typed[1:])
        if habit.is_command and habit.typed[0] == line[:1] and items[0] == tokens[0].text:
            for values in _matches(items, tokens, text):
                return habit, habit.filled(values)
    return None


_COPIED = re.compile(r"(\(.*\)|\S+)\s+(to|from)\s+([^\s'\"(]+)(\s.*)?", re.IGNORECASE | re.DOTALL)


def quoted_path(copied: str) -> str:
    """What follows psql's \\copy, with quotes around the name of the file: psql needs none."""
    parts = _COPIED.fullmatch(copied.strip())
    if parts is None or parts[3].lower() in ("stdout", "stdin", "pstdout", "pstdin"):
        return copied
    what, word, path, options = parts.groups(default="")
    return f"{what} {word} {quote(path)}{options}"
