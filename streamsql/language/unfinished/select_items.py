"""The items of a select list, from their tokens: the output column of each and its type."""

from __future__ import annotations

from streamsql.language.expression import WINDOW_TYPE
from streamsql.language.tokens import Token, unquote
from streamsql.language.unfinished.blocks import SelectItem

_WINDOWS = ("WINDOW", "SESSION_WINDOW")
_COUNTS = ("COUNT", "COUNT_IF", "APPROX_COUNT_DISTINCT")
# After these words comes an operand, not an alias.
_OPERATORS = frozenset("AND OR NOT IS IN LIKE BETWEEN CASE WHEN THEN ELSE DISTINCT DIV INTERVAL ALL".split())


def read_item(tokens: list[Token]) -> SelectItem | None:
    """The item of these tokens; None if its column's name is not known."""
    item = _without_distinct(tokens)
    if not item:
        return None
    words = [t.upper for t in item]
    if words[0] == "*":
        left_out = frozenset(unquote(t).casefold() for t in item[2:])  # * EXCEPT (a, b)
        return SelectItem(star=True, left_out=left_out)
    if words[-2:] == [".", "*"]:
        return SelectItem(star=True, qualifier=unquote(item[-3])) if len(item) > 2 else None
    expression, name = _name_of(item, words)
    if not name or name.upper() == "END":
        return None
    return SelectItem(name, _path(expression), _type(expression))


def _without_distinct(item: list[Token]) -> list[Token]:
    """A select item without a leading DISTINCT, DISTINCT ON (…) and WITHIN WATERMARK."""
    words = [t.upper for t in item]
    at = 1 if words[:1] in (["DISTINCT"], ["ALL"]) else 0
    if words[1:3] == ["ON", "("]:
        at = words.index(")") + 1 if ")" in words else len(words)
    if words[at : at + 2] == ["WITHIN", "WATERMARK"]:
        at += 2
    return item[at:]


def _name_of(item: list[Token], words: list[str]) -> tuple[list[Token], str]:
    """The expression of an item without its alias, and the name of its column."""
    last, before = item[-1], words[-2] if len(words) > 1 else ""
    is_name = last.kind in ("word", "quoted")
    if is_name and (before == "AS" or _ends_operand(item[:-1])):
        return item[: -2 if before == "AS" else -1], unquote(last)
    if is_name and (len(item) == 1 or before == "."):
        return item, unquote(last)
    return item, words[0].lower() if words[0] in _WINDOWS else ""


def _ends_operand(tokens: list[Token]) -> bool:
    """Whether a name after these tokens is an alias."""
    if not tokens:
        return False
    last = tokens[-1]
    if last.kind == "word":
        return last.upper not in _OPERATORS
    return last.kind in ("string", "number", "quoted") or last.text in (")", "]")


def _path(expression: list[Token]) -> tuple[str, ...]:
    """The names of a plain column: `a` or `t.a`; () for other expressions."""
    if len(expression) == 1 and expression[0].kind in ("word", "quoted"):
        return (unquote(expression[0]),)
    if len(expression) == 3 and expression[1].text == ".":
        return unquote(expression[0]), unquote(expression[2])
    return ()


def _type(expression: list[Token]) -> str:
    """The type of an expression, if its text determines it."""
    words = [t.upper for t in expression]
    if len(words) == 1:
        return WINDOW_TYPE if words[0] in _WINDOWS else ""
    if words[1:2] != ["("] or words[-1] != ")":
        return ""
    if words[0] in _WINDOWS:
        return WINDOW_TYPE
    if words[0] in _COUNTS and words.count("(") == 1:
        return "BIGINT"
    if words[0] in ("CAST", "TRY_CAST") and "AS" in words:
        return "".join(words[len(words) - words[::-1].index("AS") : -1])
    return ""
