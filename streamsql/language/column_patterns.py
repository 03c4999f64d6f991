"""Columns that DuckDB names by a pattern or by their place: COLUMNS('c.*'), `* LIKE 'c%'`, #1. Errors say the
columns, where they are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from streamsql.errors import RuleFault, Span
from streamsql.language.query import Named, Query
from streamsql.language.token_groups import closing, items_of, select_lists
from streamsql.language.tokens import Token, quote_name, unquote

_SETTING = "SET spark.sql.parser.quotedRegexColumnNames = true;"


def check_column_patterns(query: Query, columns_of: Callable[[str], Sequence[str]]) -> None:
    """Raise RuleFault for the first of these. columns_of: the columns of a relation, none where they are not
    known before Spark reads it.
    """
    tokens = query.tokens
    if not any(t.text == "#" or t.upper in ("COLUMNS", "LIKE", "ILIKE") for t in tokens):
        return
    read = _relations(query)
    names = tuple(columns_of(read[0].name)) if len(read) == 1 else ()
    for items in select_lists(tokens):
        for item in items:
            _check_item(query, item, names)
    for before, sign, number in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (
            sign.text == "#"
            and sign.end == number.start
            and number.text.isdigit()
            and before.kind != "quoted"
        ):
            _refuse_place(query, Span(sign.start, number.end), number.text, names)


def _refuse_place(query: Query, place: Span, number: str, names: Sequence[str]) -> None:
    """Raise RuleFault for #1, the first column of the relation in FROM."""
    own = next((quote_name(name) for n, name in enumerate(names, 1) if str(n) == number), "")
    raise RuleFault(
        "Spark has no columns by their place",
        detail="a number alone is a place of the SELECT list, in GROUP BY and ORDER BY",
        hint=own or _where_listed(query),
        instead=own,
        span=place,
        code="OTHER_CONSOLE",
    )


def _check_item(query: Query, item: Sequence[Token], names: Sequence[str]) -> None:
    """Raise RuleFault for an item of a SELECT list with a pattern of columns."""
    for at in range(len(item) - 2):
        called = (
            item[at].upper == "COLUMNS" and item[at + 1].text == "(" and (not at or item[at - 1].text != ".")
        )
        matched = item[at].text == "*" and item[at + 1].upper in ("LIKE", "ILIKE") and at == 0
        last = closing(item, at + 1) if called else at + 2
        if not (called or matched) or last >= len(item):
            continue
        wanted = _wanted(item[at + 2 : last] if called else item[at : last + 1])
        own = _for_each(query, item, item[at : last + 1], [n for n in names if wanted and wanted(n)])
        whole = called and len(item) == last + 1 == 4 and item[2].kind == "string" and not own
        pattern = f"`{unquote(item[2]).replace('`', '``')}`" if whole else ""
        raise RuleFault(
            "COLUMNS is a function of DuckDB" if called else f"Spark has no * {item[at + 1].upper}",
            detail="Spark takes a pattern of columns in backticks, if a setting allows it" if whole else "",
            hint=own or (f"{pattern} behind {_SETTING}" if whole else _where_listed(query)),
            instead=own or pattern,
            first=f"{_SETTING} " if whole else "",
            span=Span(item[0].start, item[-1].end) if own else Span(item[at].start, item[last].end),
            code="OTHER_CONSOLE",
        )


def _for_each(query: Query, item: Sequence[Token], call: Sequence[Token], names: Sequence[str]) -> str:
    """The item once for each column, with its name in the place of the call."""
    before = query.text[item[0].start : call[0].start]
    behind = query.text[call[-1].end : item[-1].end]
    return ", ".join(f"{before}{quote_name(name)}{behind}" for name in names)


def _wanted(tokens: Sequence[Token]) -> Callable[[str], bool] | None:
    """Which columns COLUMNS(…) or `* LIKE 'c%'` means; None for what only DuckDB can tell."""
    words = [t.upper for t in tokens]
    if len(tokens) == 1 and tokens[0].kind == "string":
        return _matching(unquote(tokens[0]), re.NOFLAG)
    if words[-2:-1] in (["LIKE"], ["ILIKE"]) and tokens[-1].kind == "string" and words[:1] != ["NOT"]:
        pattern = re.escape(unquote(tokens[-1])).replace("%", ".*").replace("_", ".")
        return _matching(f"^{pattern}$", re.IGNORECASE if words[-2] == "ILIKE" else re.NOFLAG)
    if words[:1] == ["*"]:
        left_out = {unquote(t).casefold() for t in tokens[2:] if t.kind in ("word", "quoted")}
        return lambda name: name.casefold() not in left_out
    if words[:2] == ["ARRAY", "("]:  # which ['a', 'b'] has been read as
        listed = {unquote(item[0]).casefold() for item in items_of(list(tokens[2:-1]))}
        return lambda name: name.casefold() in listed
    return None


def _matching(pattern: str, flags: re.RegexFlag) -> Callable[[str], bool] | None:
    try:
        compiled = re.compile(pattern, flags)
    except re.error:
        return None
    return lambda name: compiled.search(name) is not None


def _where_listed(query: Query) -> str:
    """What shows the columns that are to be written."""
    read = [query.text[relation.span.start : relation.span.end] for relation in _relations(query)]
    return f"DESCRIBE {read[0]}; lists the columns" if read else "name the columns"


def _relations(query: Query) -> list[Named]:
    """The relations directly behind FROM and JOIN: `#` cannot be parsed, and then a column behind a comma
    counts as one, too.
    """
    places = {b.start for a, b in pairwise(query.tokens) if a.upper in ("FROM", "JOIN")}
    return [relation for relation in query.relations if relation.span.start in places]
