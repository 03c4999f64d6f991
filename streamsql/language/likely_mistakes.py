"""What Spark reads otherwise than most who write it mean: names in double quotes, which are strings, and
letters of date patterns. Notes tell it; nothing is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamsql.language.query import Query
from streamsql.language.token_groups import closing
from streamsql.language.tokens import Token


def likely_mistakes(query: Query) -> Iterator[str]:
    """A sentence for each of these in a query."""
    yield from _quoted_operands(query)
    refused = list(_refused_patterns(query))
    yield from refused or _unlikely_patterns(query)


_BEFORE_COMPARED = frozenset(("WHERE", "AND", "OR", "NOT", "ON", "HAVING", "WHEN", "("))
_COMPARES = frozenset(
    ("=", "==", "<>", "!=", "<", ">", "<=", ">=", "LIKE", "ILIKE", "IN", "IS", "BETWEEN", ")")
)


def _quoted_operands(query: Query) -> Iterator[str]:
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
        called = token.text.casefold() in names and tokens[at + 1 : at + 2] and tokens[at + 1].text == "("
        close = closing(tokens, at + 1) if called else len(tokens)
        if close == len(tokens) or tokens[close - 1].kind != "string" or tokens[close - 2].text != ",":
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


def _unlikely_patterns(query: Query) -> Iterator[str]:
    """A sentence for each part of a date pattern that means something else in PostgreSQL."""
    for pattern in _date_patterns(query):
        for part, meant, meanings in _UNLIKELY:
            if part.search(pattern.text):
                yield f"{meanings}: {part.sub(meant, pattern.text)}"


def _refused_patterns(query: Query) -> Iterator[str]:
    """A sentence for each date pattern that Spark refuses when it computes the first row, or whose name of
    the day it reads letter by letter.
    """
    for pattern in _date_patterns(query):
        named = _NAME_OF_DAY.search("".join(pattern.text[1:-1].split("'")[::2]))
        if named:
            better = _as_spark(pattern.text)
            yield f"Spark reads {named[1]} letter by letter, and EEEE as the name of the day: {better}"
            continue
        letters = "".join(pattern.text[1:-1].split("'")[::2])
        refused = next((c for c in letters if c in _REFUSED_LETTERS), "")
        if refused:
            better = _as_spark(pattern.text) if refused in "YIn" else pattern.text
            own = better if better != pattern.text else "yyyy MM dd HH mm ss are its letters"
            yield f"Spark refuses the letter {refused} in the date pattern {pattern.text}: {own}"


def _as_spark(pattern: str) -> str:
    """A date pattern of PostgreSQL as Spark writes it: `YYYY-MM-DD HH24:MI` is `yyyy-MM-dd HH:mm`."""
    parts = re.split(rf"({'|'.join(own for own, _ in _POSTGRES)})", pattern)
    return "".join(dict(_POSTGRES).get(part, part) for part in parts)
