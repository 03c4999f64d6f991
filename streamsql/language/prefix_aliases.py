"""Aliases before what they name, as DuckDB has them: `SELECT n: count(*)`, `FROM c: clicks`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsql.language.operands import operand_behind
from streamsql.language.other_edits import Edit
from streamsql.language.token_groups import items_of, select_lists
from streamsql.language.tokens import Token, quote_name, tokenize, unquote


def prefix_aliases(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """Such aliases behind AS. `v:a` stays: it is a value of a VARIANT in Spark (see `aliased`)."""
    for items in select_lists(tokens):
        for item in items:
            if _begins_with_alias(item) and not _is_path(item[2:]):
                yield item[0].start, item[2].start, ""
                yield item[-1].end, item[-1].end, f" AS {quote_name(unquote(item[0]))}"
    for at in range(1, len(tokens) - 2):
        if tokens[at - 1].upper in ("FROM", "JOIN") and _begins_with_alias(tokens[at : at + 3]):
            last = operand_behind(tokens, at + 1)
            yield tokens[at].start, tokens[at + 2].start, ""
            yield tokens[last].end, tokens[last].end, f" AS {quote_name(unquote(tokens[at]))}"


def aliased(text: str, name: str) -> str:
    """The item `n: a` of a SELECT list with its alias behind it, for the name n; "" where there is none."""
    for items in select_lists(tokenize(text, strict=False)):
        for item in items:
            if _begins_with_alias(item) and unquote(item[0]).casefold() == name.casefold():
                return f"{text[item[2].start : item[-1].end]} AS {quote_name(unquote(item[0]))}"
    return ""


def _begins_with_alias(item: Sequence[Token]) -> bool:
    named = len(item) > 2 and item[1].text == ":" and item[0].kind in ("word", "quoted", "string")
    return named and (item[0].kind != "string" or item[0].text.startswith('"'))


def _is_path(value: Sequence[Token]) -> bool:
    """Whether what stands behind `v:` can be a path into a VARIANT."""
    first, behind = value[0], value[1] if len(value) > 1 else None
    if first.text == "[":
        return len(list(items_of(list(value[1:-1])))) == 1
    if first.kind == "word" and behind is not None:
        return behind.text != "(" and behind.kind not in ("string", "number") and first.upper != "CASE"
    return first.kind in ("word", "quoted")
