"""Words of other SQL dialects, and the Spark SQL that they are read as: functions (other_functions.py has
their table), and windows in GROUP BY, of which GROUP_WINDOWS is the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from streamsql.errors import RuleFault, SyntaxFault
from streamsql.language.other_functions import other_functions
from streamsql.language.query import Query, try_expression
from streamsql.language.tokens import Token, quote_name, tokenize
from streamsql.language.tree_nodes import exp_module

GROUP_WINDOWS = {
    "tumble": ("window", (0,)),
    "hop": ("window", (1, 0)),
    "session": ("session_window", (0,)),
}
"""A function of the event time in GROUP BY, folded → Spark's, and the places of its intervals."""

WINDOW_PARTS = {
    f"{window}_{part}": (window, form)
    for window in GROUP_WINDOWS
    for part, form in (
        ("start", "{0}.start"),
        ("end", "{0}.end"),
        ("rowtime", "({0}.end - INTERVAL 1 MICROSECOND)"),  # window_time() is refused beside its aggregation
    )
}
"""A function beside such a window in GROUP BY, folded → the window, and Spark's form of a part of it."""


@cache
def known_words() -> frozenset[str]:
    """The names of all of these, folded."""
    return frozenset({*other_functions(), *GROUP_WINDOWS, *WINDOW_PARTS})


@dataclass
class Reading:
    """How an expression is read. text: in Spark's words; words: (as written, as read) for each word.

    event_time: the one column that is the event time, "" if that is not known; exact_distinct: whether
    count(DISTINCT x) is read, too; own: functions of these names, folded, are the user's.
    """

    event_time: str = ""
    exact_distinct: bool = False
    own: frozenset[str] = frozenset()
    words: list[tuple[str, str]] = field(default_factory=list)

    def of(self, text: str) -> str:
        """An expression in Spark's words."""
        tokens = tokenize(text, strict=False)
        out, end, at = "", 0, 0
        while at < len(tokens):
            close = _close(tokens, at + 1)
            after_dot = at > 0 and tokens[at - 1].text == "."
            call = tokens[at].kind == "word" and close is not None and not after_dot
            read = self._call(text, tokens, at, close) if call and close is not None else None
            if read is None:
                at += 1
                continue
            form, last = read
            written = text[tokens[at].start : tokens[last].end]
            self.words.append((written, form))
            out += text[end : tokens[at].start] + form
            end, at = tokens[last].end, last + 1
        return out + text[end:]

    def _call(self, text: str, tokens: Sequence[Token], at: int, close: int) -> tuple[str, int] | None:
        """Spark's form of the call at that token, and its last token; None if it stays as it is."""
        name = tokens[at].text.casefold()
        arguments = _arguments(tokens, at + 1, close)
        pieces = [text[a[0].start : a[-1].end] for a in arguments]
        inner = Reading(self.event_time, self.exact_distinct, self.own)
        for row in other_functions().get(name, ()) if name not in self.own else ():
            values = row.matches(text, arguments) if row.form else None
            if values and "interval" in values:
                values["interval"] = _interval(values["interval"])
            if values is not None and all(values.values()):
                return row.filled(values, lambda _, value: inner.of(value)), close
        if name in GROUP_WINDOWS:
            form = self._window(name, pieces)
            return (form, close) if form else None
        if name in WINDOW_PARTS:
            window, part = WINDOW_PARTS[name]
            form = self._window(window, pieces)
            return (part.format(form), close) if form else None
        if name == "count" and self.exact_distinct and tokens[at + 2].upper == "DISTINCT":
            return _distinct_count(text, tokens, at, close)
        return None

    def _window(self, name: str, pieces: list[str]) -> str:
        function, places = GROUP_WINDOWS[name]
        times = [_interval(p) for p in pieces[-len(places) :]]
        moment = pieces[0] if len(pieces) == len(places) + 1 else ""
        if len(pieces) == len(places):
            moment = quote_name(self.event_time) if self.event_time else ""
        if not moment or not all(times):
            return ""
        return f"{function}({', '.join([moment, *(times[p] for p in places)])})"


def _distinct_count(text: str, tokens: Sequence[Token], at: int, close: int) -> tuple[str, int]:
    """count(DISTINCT x), with FILTER behind it, as the size of a set, which is exact."""
    columns = [text[a[0].start : a[-1].end] for a in _arguments(tokens, at + 2, close)]
    value = columns[0]
    if len(columns) > 1:
        there = " AND ".join(f"({c}) IS NOT NULL" for c in columns)
        value = f"CASE WHEN {there} THEN struct({', '.join(columns)}) END"
    filtered, last = "", close
    if close + 2 < len(tokens) and tokens[close + 1].upper == "FILTER":
        end = _close(tokens, close + 2)
        if end is not None:
            filtered, last = " " + text[tokens[close + 1].start : tokens[end].end], end
    return f"CAST(size(collect_set({value}){filtered}) AS BIGINT)", last


def _interval(text: str) -> str:
    """An interval as the text that window() takes, in quotes; "" for everything else."""
    expression = try_expression(text)
    tree = expression.tree if expression else None
    if isinstance(tree, exp_module().Interval) and tree.this is not None and tree.this.is_string:
        return f"'{tree.this.name} {tree.unit.name.lower()}'" if tree.unit else f"'{tree.this.name}'"
    if isinstance(tree, exp_module().Interval) and tree.this is not None and tree.unit:
        return f"'{tree.this.name} {tree.unit.name.lower()}'"
    return text if isinstance(tree, exp_module().Literal) and tree.is_string else ""


def _close(tokens: Sequence[Token], at: int) -> int | None:
    """The parenthesis that closes the one at that token; None if there is none."""
    if at >= len(tokens) or tokens[at].text != "(":
        return None
    depth = 0
    for n in range(at, len(tokens)):
        depth += (tokens[n].text == "(") - (tokens[n].text == ")")
        if depth == 0:
            return n
    return None


def _arguments(tokens: Sequence[Token], start: int, close: int) -> list[list[Token]]:
    """The tokens between these two, at their commas."""
    pieces, depth, first = [], 0, start + 1
    for n in range(start + 1, close + 1):
        depth += (tokens[n].text in "([") - (tokens[n].text in ")]" and n < close)
        if n == close or (tokens[n].text == "," and depth == 0):
            if n > first:
                pieces.append(list(tokens[first:n]))
            first = n + 1
    return pieces


def check_quoted_names(query: Query) -> None:
    """Raise SyntaxFault for a name in double quotes beside a dot, after AS, or of a table: to Spark it is a
    string.
    """
    tokens = query.tokens
    tables = {relation.span.start for relation in query.relations}
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        named = before is not None and (before.text == "." or before.upper == "AS")
        if named or token.span.start in tables or (after is not None and after.text == "."):
            _check_quoted(token)


def check_quoted_keys(query: Query) -> None:
    """Raise SyntaxFault for a name in double quotes that is first of GROUP BY, ORDER BY or PARTITION BY:
    Spark groups and sorts by the string, which nobody means over a stream.
    """
    tokens = query.tokens
    for before, token, after in zip(tokens, tokens[1:], (*tokens[2:], None), strict=False):
        if before.upper == "BY" and (after is None or after.text in (",", ")")):
            _check_quoted(token)


_BEFORE_COMPARED = frozenset(("WHERE", "AND", "OR", "NOT", "ON", "HAVING", "WHEN", "("))
_COMPARES = frozenset(
    ("=", "==", "<>", "!=", "<", ">", "<=", ">=", "LIKE", "ILIKE", "IN", "IS", "BETWEEN", ")")
)


def quoted_operands(query: Query) -> Iterator[str]:
    """A sentence for each name in double quotes that is compared, or that is all that a function gets: to
    Spark it is a string.
    """
    tokens = query.tokens
    for at in range(1, len(tokens) - 1):
        name, before = tokens[at].text[1:-1], tokens[at - 1].upper
        quoted = tokens[at].kind == "string" and tokens[at].text[0] == '"' and name.isidentifier()
        listed = before == "(" and tokens[at - 2].upper in ("IN", "VALUES", "ARRAY")
        if quoted and before in _BEFORE_COMPARED and tokens[at + 1].upper in _COMPARES and not listed:
            yield f"{tokens[at].text} is a string; the column is `{name}`"


def _check_quoted(token: Token) -> None:
    if token.kind == "string" and token.text.startswith('"'):
        raise SyntaxFault(
            f"{token.text} is a string, and a name is expected here",
            hint=f"Spark writes names in backticks: `{token.text.strip(chr(34))}`",
            span=token.span,
            code="DOUBLE_QUOTED_NAME",
        )


_FORMATS = frozenset(
    """date_format to_timestamp to_date to_char unix_timestamp from_unixtime to_unix_timestamp
    try_to_timestamp try_to_date to_timestamp_ntz to_timestamp_ltz""".split()
)
_REFUSED_LETTERS = "YWwuecABnNpI"
"""Letters that Spark refuses in a date pattern (those of weeks, those that only Java has, and that of MI)."""
_POSTGRES = (
    ("FM", ""), ("Day", "EEEE"), ("DAY", "EEEE"), ("day", "EEEE"), ("Dy", "E"), ("DY", "E"),
    ("YYYY", "yyyy"), ("YY", "yy"), ("DD", "dd"), ("HH24", "HH"), ("HH12", "hh"), ("MI", "mm"), ("SS", "ss"),
    ("MS", "SSS"), ("US", "SSSSSS"), ("Month", "MMMM"), ("Mon", "MMM"), ("AM", "a"), ("PM", "a"),
)  # fmt: skip
"""The parts of a date pattern of PostgreSQL and Oracle, and those of Spark."""
_NAME_OF_DAY = re.compile(r"(?<![A-Za-z])(?:FM)?(Day|DAY|day|Dy|DY)(?![A-Za-z])")


_OF_NUMBERS_OR_BINARY = re.compile(r"[09]|^'(hex|base64|utf-8)'$", re.IGNORECASE)
"""What to_char takes for numbers and for BINARY, where it takes no date pattern."""


def _date_patterns(query: Query) -> Iterator[Token]:
    """The texts that are date patterns: the last arguments of calls. One of numbers or of BINARY is none."""
    names = {c.name for c in query.calls} & _FORMATS
    tokens = query.tokens
    for at, token in enumerate(tokens if names else ()):
        close = _close(tokens, at + 1) if token.text.casefold() in names else None
        if close is None or tokens[close - 1].kind != "string" or tokens[close - 2].text != ",":
            continue
        if token.upper != "TO_CHAR" or not _OF_NUMBERS_OR_BINARY.search(tokens[close - 1].text):
            yield tokens[close - 1]


_UNLIKELY = (
    (re.compile("(?<!D)DD(?!D)"), "dd", "DD is the day of the year in Spark, and dd that of the month"),
    (re.compile("(?<=[Hhk]:)MM(?!M)"), "mm", "MM is the month in Spark, and mm are minutes"),
    (re.compile("(?<=[yY][-/.])mm(?=[-/.])"), "MM", "mm are minutes in Spark, and MM is the month"),
    (re.compile("(?<=:)SS(?!S)"), "ss", "SS is a part of a second in Spark, and ss are seconds"),
)
"""A part of a date pattern that hardly means what Spark reads, what is meant, and both meanings."""


def unlikely_patterns(query: Query) -> Iterator[str]:
    """A sentence for each part of a date pattern that means something else in PostgreSQL."""
    for pattern in _date_patterns(query):
        for part, meant, meanings in _UNLIKELY:
            if part.search(pattern.text):
                yield f"{meanings}: {part.sub(meant, pattern.text)}"


def check_date_patterns(query: Query) -> None:
    """Raise RuleFault for a date pattern that Spark would refuse in the first micro-batch, or whose name of
    the day it would read letter by letter.
    """
    for pattern in _date_patterns(query):
        named = _NAME_OF_DAY.search("".join(pattern.text[1:-1].split("'")[::2]))
        if named:
            better = _as_spark(pattern.text)
            raise RuleFault(
                f"Spark has no {named[1]} in the date pattern {pattern.text}",
                detail="it would read letter by letter; EEEE is the name of the day, E its first letters",
                hint=better,
                instead=better,
                span=pattern.span,
                code="BAD_DATE_PATTERN",
            )
        letters = "".join(pattern.text[1:-1].split("'")[::2])
        refused = next((c for c in letters if c in _REFUSED_LETTERS), "")
        if refused:
            better = _as_spark(pattern.text) if refused in "YIn" else pattern.text
            raise RuleFault(
                f"Spark refuses the letter {refused} in the date pattern {pattern.text}",
                detail={"Y": "Y is the year of a week", "I": "minutes are mm"}.get(refused, ""),
                hint=better if better != pattern.text else "yyyy MM dd HH mm ss, and text in single quotes",
                instead=better if better != pattern.text else "",
                span=pattern.span,
                code="BAD_DATE_PATTERN",
            )


def _as_spark(pattern: str) -> str:
    """A date pattern of PostgreSQL as Spark writes it: `YYYY-MM-DD HH24:MI` is `yyyy-MM-dd HH:mm`."""
    parts = re.split(rf"({'|'.join(own for own, _ in _POSTGRES)})", pattern)
    return "".join(dict(_POSTGRES).get(part, part) for part in parts)
