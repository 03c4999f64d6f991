"""`row_number() OVER (PARTITION BY id ORDER BY ts) = 1`: the idiom for keeping the first row of each key.

A stream has no window functions but those of time (Spark guide, "Unsupported Operations"); what this
idiom is written for there is dropDuplicates (Spark guide, "Streaming Deduplication").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamsql.errors import RuleFault, Span
from streamsql.language import functions
from streamsql.language.tokens import Token, tokenize, unquote
from streamsql.plan import ranges
from streamsql.plan.texts import direction


@dataclass(frozen=True)
class RowNumber:
    """A row_number() OVER (…). keys, order: texts of its PARTITION BY and ORDER BY."""

    keys: tuple[str, ...]
    order: tuple[str, ...]


def row_number(text: str) -> RowNumber | None:
    """The row_number() that an expression is; None for every other expression."""
    tokens = tokenize(text)
    head = [t.upper for t in tokens[:5]]
    if head != ["ROW_NUMBER", "(", ")", "OVER", "("] or functions.closing(tokens, 4) != len(tokens) - 1:
        return None
    inside = tokens[5:-1]
    words = [t.upper for t in inside]
    order = next((i for i in range(len(words)) if words[i : i + 2] == ["ORDER", "BY"]), len(words))
    if words[:2] != ["PARTITION", "BY"] or order == len(words) or "ROWS" in words or "RANGE" in words:
        return None
    return RowNumber(_list(text, inside[2:order]), _list(text, inside[order + 2 :]))


def _list(text: str, tokens: list[Token]) -> tuple[str, ...]:
    return tuple(text[p[0].start : p[-1].end] for p in ranges.split(tokens, (",",)) if p)


def wants_first(text: str) -> str:
    """What a condition wants to be 1: `x` for `x = 1`, `1 = x`, `x <= 1` and `x < 2`; else empty."""
    tokens = ranges.bare(tokenize(text))
    texts = [t.text for t in tokens]
    if len(tokens) < 3:
        return ""
    if texts[-2:] in (["=", "1"], ["==", "1"], ["<=", "1"], ["<", "2"]):
        return text[tokens[0].start : tokens[-3].end]
    if texts[:2] in (["1", "="], ["1", "=="], ["1", ">="], ["2", ">"]):
        return text[tokens[2].start : tokens[-1].end]
    return ""


def number_of(condition: str, aliases: dict[str, str]) -> RowNumber | None:
    """The row_number() that a condition wants to be 1, written out or by its alias."""
    wanted = wants_first(condition)
    tokens = tokenize(wanted)
    if len(tokens) in (1, 3):
        wanted = aliases.get(unquote(tokens[-1]).casefold(), wanted)
    return row_number(wanted) if wanted else None


def columns_to_keep(number: RowNumber, is_time: Callable[[str], bool], span: Span) -> list[str]:
    """The columns of which the first row to come is kept. is_time: whether a column, folded, holds time.

    Raises a placed RuleFault when the order is another one than that of time.
    """
    if len(number.order) != 1:
        raise refused("the rows are ordered by more than the time of the event", _BY_VALUE, span)
    text, way = direction(number.order[0])
    names = [_plain(key) for key in number.keys]
    if not all(names):
        raise refused(
            "PARTITION BY holds more than columns",
            "compute them first: … FROM (SELECT *, upper(id) AS key FROM s) QUALIFY row_number() OVER "
            "(PARTITION BY key ORDER BY ts) = 1",
            span,
        )
    if way.startswith("desc"):
        raise refused(
            "the newest row of a key is never known: a newer one can always come",
            f"CREATE LIVE TABLE newest OUTPUT MODE UPDATE KEY ({', '.join(names)}) AS SELECT … "
            "keeps the last to come",
            span,
        )
    if not _plain(text) or not is_time(_plain(text).casefold()):
        raise refused(f"{text} is not known to be the time of the event", _BY_VALUE, span)
    return names


_BY_VALUE = "SELECT id, min_by(x, price) AS x FROM s GROUP BY id keeps the row of the least price"


def refused(detail: str, hint: str, span: Span) -> RuleFault:
    """The error for a numbering of rows that a stream cannot do."""
    return RuleFault(
        "over a stream, row_number() = 1 can keep the first row of each key to come and nothing else",
        detail=detail,
        hint=hint,
        span=span,
        condition="NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING",
    )


def _plain(text: str) -> str:
    tokens = tokenize(text)
    plain = len(tokens) in (1, 3) and all(t.kind in ("word", "quoted") for t in tokens[::2])
    return unquote(tokens[-1]) if plain and (len(tokens) == 1 or tokens[1].text == ".") else ""
