"""Operators of other consoles, and what they are in Spark.

The data are rows in the tables of HELP SWITCHING FROM …: `a && b` | `arrays_overlap(a, b)`. In the left cell,
words in small letters are operands, and what is between, before or behind them is the operator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from streamsql.errors import Span, SyntaxFault
from streamsql.language.habits import OPERATOR, PREFIX
from streamsql.language.operands import operand, operand_behind
from streamsql.language.other_edits import Edit
from streamsql.language.other_functions import OtherFunction
from streamsql.language.other_values import array_of
from streamsql.language.tokens import Token, quote, tokenize, unquote
from streamsql.language.topics import topics

_ROW = re.compile(r"^\| `(?P<typed>[^`]+)` \| (?:`(?P<form>[^`]+)`|(?P<refusal>[^`|]+)) \|$", re.MULTILINE)


@dataclass(frozen=True)
class OtherOperator:
    """parts: the tokens of the operator; left, right: the names of its operands, "" for none; form: Spark's
    expression with these, "" where there is none; refusal: the reason then.
    """

    parts: tuple[str, ...]
    left: str
    right: str
    form: str
    refusal: str


@cache
def other_operators() -> dict[str, tuple[OtherOperator, ...]]:
    """The rows by the first token of the operator, the longer ones first."""
    rows = {
        row["typed"]: (row["form"] or "", row["refusal"] or "")
        for name, topic in topics().items()
        if name.startswith(PREFIX)
        for row in _ROW.finditer(topic.text)
    }
    found: dict[str, list[OtherOperator]] = {}
    for typed, here in rows.items():
        match = OPERATOR.fullmatch(typed)
        if match and (match["left"] or match["right"]):
            parts = tuple(t.text for t in tokenize(match["sign"]))
            row = OtherOperator(parts, match["left"] or "", match["right"] or "", *here)
            found.setdefault(parts[0], []).append(row)
    return {first: tuple(sorted(rows, key=lambda r: -len(r.parts))) for first, rows in found.items()}


def operator_edits(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """All edits of the operators of a statement, in any order."""
    for at, token in enumerate(tokens):
        for row in other_operators().get(token.upper, ()) if at else ():
            if not _stands(row, tokens, at):
                continue
            last = at + len(row.parts) - 1
            start = operand(tokens, at) if row.left else at
            end = operand_behind(tokens, last) if row.right else last
            if (start < at) != bool(row.left) or (end > last) != bool(row.right):
                continue
            if row.refusal:
                raise SyntaxFault(
                    f"Spark has no operator {text[token.start : tokens[last].end]}",
                    hint=row.refusal,
                    span=Span(token.start, tokens[last].end),
                    code="OTHER_CONSOLE",
                )
            values = {}
            if row.left:
                values[row.left] = text[tokens[start].start : tokens[at - 1].end]
            if row.right:
                values[row.right] = text[tokens[last + 1].start : tokens[end].end]
            if row.parts in _OF_ARRAYS:
                _check_json(row, values, Span(tokens[start].start, tokens[end].end))
                values = {name: _array(value) for name, value in values.items()}
            form = OtherFunction("", (), row.form).filled(values, lambda _, value: value)
            yield tokens[start].start, tokens[end].end, form
            break


def _stands(row: OtherOperator, tokens: Sequence[Token], at: int) -> bool:
    """Whether an operator begins at a token. The parts of a sign stand side by side, and one with nothing
    behind it directly behind its operand: `5!`.
    """
    part = tokens[at : at + len(row.parts)]
    if [t.upper for t in part] != list(row.parts):
        return False
    if not row.right and part[0].kind == "sign" and tokens[at - 1].end != part[0].start:
        return False
    return part[0].kind == "word" or all(a.end == b.start for a, b in zip(part, part[1:], strict=False))


_OF_ARRAYS = frozenset((("@", ">"), ("<", "@"), ("&&",)))
_NUMBER = re.compile(r"'(-?\d+(?:\.\d+)?)'")
_JSON = re.compile(r"(?:::|\bAS\s+)jsonb?\b", re.IGNORECASE)


def _text(value: str) -> str:
    """The value of a text in quotes, "" for any other expression."""
    tokens = tokenize(value, strict=False)
    return unquote(tokens[0]) if len(tokens) == 1 and tokens[0].kind == "string" else ""


def _array(value: str) -> str:
    """'{1,2}' of PostgreSQL as an array, any other expression as it is."""
    own = array_of(_text(value))
    return _NUMBER.sub(r"\1", own) if own else value


def _check_json(row: OtherOperator, values: dict[str, str], span: Span) -> None:
    """Raise SyntaxFault for `json @> '{"a": 1}'` of PostgreSQL, with what compares each key."""
    whole, part = values[row.left], values[row.right]
    if row.parts[0] == "<":
        whole, part = part, whole
    written = _text(part.partition("::")[0])
    try:
        keys = json.loads(written)
    except ValueError:
        keys = None
    if keys is None and not any(_JSON.search(value) for value in (whole, part)):
        return
    flat = isinstance(keys, dict) and keys and not any(isinstance(v, (dict, list)) for v in keys.values())
    own = " AND ".join(
        f"get_json_object({whole}, {quote(f'$.{key}')}) = {quote(v if isinstance(v, str) else json.dumps(v))}"
        for key, v in (keys.items() if flat and isinstance(keys, dict) else ())
    )
    raise SyntaxFault(
        f"Spark has no {''.join(row.parts)} of JSON",
        detail="get_json_object(json, '$.key') reads a value from it",
        hint=own,
        instead=own,
        span=span,
        code="OTHER_CONSOLE",
    )
