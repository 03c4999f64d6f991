"""Values as other consoles write them, in Spark's words: arrays and texts of PostgreSQL, maps of Flink,
fields and lambdas of ksqlDB, objects of JSON of the SQL standard.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from streamsql.errors import Span, SyntaxFault
from streamsql.language.operands import operand
from streamsql.language.other_edits import Edit
from streamsql.language.reference import functions
from streamsql.language.statements.base import OTHER_TYPES
from streamsql.language.token_groups import closing, items_of, select_lists
from streamsql.language.tokens import Token, quote, unquote


def value_edits(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """All edits of the values of a statement, in any order."""
    for edits in _EDITS:
        yield from edits(text, tokens)


_ELEMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^",{}]*))\s*(?:,|$)')


def array_of(written: str) -> str | None:
    """`{1,2}` of PostgreSQL as array('1', '2'); None for a text that is none, or one of arrays."""
    inside = written.strip()
    if inside[:1] != "{" or inside[-1:] != "}" or "{" in inside[1:]:
        return None
    values, at, inside = [], 0, inside[1:-1]
    while at < len(inside):
        match = _ELEMENT.match(inside, at)
        if match is None or match.end() == at:
            return None
        text = re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2].strip()
        values.append("NULL" if match[1] is None and text.upper() == "NULL" else quote(text))
        at = match.end()
    return f"array({', '.join(values)})"


def _array_casts(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """'{1,2}'::int[], a::text[] and CAST(a AS int[]) of PostgreSQL."""
    for at in range(1, len(tokens) - 2):
        name, before = tokens[at], tokens[at - 1]
        cast = before.text == "::" or (before.upper == "AS" and tokens[at + 3 : at + 4] != [])
        if name.kind != "word" or not cast or [t.text for t in tokens[at + 1 : at + 3]] != ["[", "]"]:
            continue
        if before.upper == "AS" and tokens[at + 3].text != ")":
            continue
        kind = {**OTHER_TYPES, "VARCHAR": "STRING"}.get(name.upper, name.text)
        yield name.start, tokens[at + 2].end, f"ARRAY<{kind}>"
        value = tokens[at - 2]
        own = array_of(unquote(value)) if value.kind == "string" else None
        if own:
            yield value.start, value.end, own


def _dollar_texts(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """$$text$$ and $tag$text$tag$ of PostgreSQL."""
    for token in tokens:
        if token.kind == "string" and token.text.startswith("$"):
            yield token.start, token.end, quote(unquote(token))


def _array_queries(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """ARRAY(SELECT a FROM t) of PostgreSQL and DuckDB."""
    for at in range(len(tokens) - 3):
        called = tokens[at].upper == "ARRAY" and tokens[at + 1].text == "("
        close = closing(tokens, at + 1) if called else len(tokens)
        if close < len(tokens) and tokens[at + 2].upper in ("SELECT", "WITH", "VALUES", "FROM"):
            own = "(SELECT collect_list(value) RESPECT NULLS FROM ("
            yield tokens[at].start, tokens[at + 1].end, own
            yield tokens[close].start, tokens[close].end, ") AS list(value))"


def _maps(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """MAP['a', 1, 'b', 2] of Flink; map['a'] is an element of a column."""
    for at in range(1, len(tokens) - 2):
        before = tokens[at - 1]
        if tokens[at].text != "[" or before.upper != "MAP" or before.end != tokens[at].start:
            continue
        depth, commas = 0, 0
        for last in range(at, len(tokens)):
            depth += (tokens[last].text in "([") - (tokens[last].text in ")]")
            commas += depth == 1 and tokens[last].text == ","
            if depth == 0:
                break
        if depth == 0 and commas:
            yield before.start, tokens[at].end, f"{before.text}("
            yield tokens[last].start, tokens[last].end, ")"


_TAKE_LAMBDAS = frozenset(
    """aggregate array_sort exists filter forall map_filter map_zip_with reduce transform transform_keys
    transform_values zip_with""".split()
)
"""Functions of Spark that take a lambda, folded."""


def _fields(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """address->city of ksqlDB, a field of a struct; x -> x + 1 is a lambda."""
    for at in range(1, len(tokens) - 1):
        if tokens[at].text != "->" or tokens[at + 1].kind not in ("word", "quoted"):
            continue
        start = operand(tokens, at)
        of_lambda = _is_lambda(tokens, at, start)
        if start < at and not of_lambda and tokens[at - 1].kind != "string":
            yield tokens[at - 1].end, tokens[at + 1].start, "."


def _is_lambda(tokens: Sequence[Token], at: int, start: int) -> bool:
    """Whether an arrow is that of a lambda: behind a comma of a call that takes one. start: its operand."""
    if tokens[at - 1].text == ")":
        return tokens[start].text == "("
    if start != at - 1 or start == 0 or tokens[start - 1].text not in (",", ":"):
        return False
    name = _function_around(tokens, start)
    return bool(name) and (name in _TAKE_LAMBDAS or name not in functions())


def _function_around(tokens: Sequence[Token], at: int) -> str:
    """The name, folded, of the call whose argument a token is; "" for none."""
    depth = 0
    for n in range(at - 1, -1, -1):
        depth += (tokens[n].text in ")]") - (tokens[n].text in "([")
        if depth < 0:
            return tokens[n - 1].text.casefold() if n and tokens[n - 1].kind == "word" else ""
    return ""


def _lambdas(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """transform(list, x => x + 1) and reduce(list, 0, (s, x) => s + x) of ksqlDB."""
    for at in range(3, len(tokens) - 1):
        if tokens[at].text == "=>" and (tokens[at - 1].text == ")" or _takes_lambda(tokens, at)):
            yield tokens[at].start, tokens[at].end, "->"


def _takes_lambda(tokens: Sequence[Token], arrow: int) -> bool:
    """Whether `, x =>` stands in a function of Spark that takes a lambda; in others it names an argument."""
    if tokens[arrow - 1].kind != "word" or tokens[arrow - 2].text != ",":
        return False
    return _function_around(tokens, arrow - 1) in _TAKE_LAMBDAS


def _objects(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """JSON_OBJECT('a' VALUE 1, KEY 'b' VALUE 2) of Flink and PostgreSQL."""
    for at in range(len(tokens) - 3):
        if tokens[at].upper != "JSON_OBJECT" or tokens[at + 1].text != "(":
            continue
        close = closing(tokens, at + 1)
        items = [i[i[0].upper == "KEY" :] for i in items_of(list(tokens[at + 2 : close]))]
        if close == len(tokens) or not all(len(i) > 2 and i[1].upper in ("VALUE", ":") for i in items):
            continue
        pairs = ", ".join(f"{i[0].text}, {text[i[2].start : i[-1].end]}" for i in items)
        yield tokens[at].start, tokens[close].end, f"to_json(named_struct({pairs}))"


_SERIES = {"UNNEST": "", "GENERATE_SERIES": "sequence"}
"""A function that makes rows in a SELECT list → Spark's for its array, "" if its argument is one."""


def _several_unnests(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """SELECT unnest(a), unnest(b) of PostgreSQL and DuckDB, side by side: Spark would give all pairs."""
    for items in select_lists(tokens):
        rows = [n for n, item in enumerate(items) if _array_of_rows(text, item)]
        if len(rows) < 2:
            continue
        if rows != list(range(rows[0], rows[-1] + 1)):
            raise SyntaxFault(
                "several calls that make rows stand apart in one SELECT: Spark gives all pairs of their rows",
                hint="write them one behind another: their rows then stand side by side",
                span=Span(items[rows[1]][0].start, items[rows[1]][-1].end),
                code="OTHER_CONSOLE",
            )
        arrays = ", ".join(_array_of_rows(text, items[n]) for n in rows)
        names = ", ".join(_name_of_rows(items[n]) for n in rows)
        start, end = items[rows[0]][0].start, items[rows[-1]][-1].end
        yield start, end, f"inline(arrays_zip({arrays})) AS ({names})"


def _array_of_rows(text: str, item: Sequence[Token]) -> str:
    """The array of an item `unnest(a) AS b` or `generate_series(1, 3)`; "" if it is none."""
    function = _SERIES.get(item[0].upper) if len(item) > 3 and item[1].text == "(" else None
    close = closing(item, 1) if function is not None else len(item)
    if close == len(item) or len(item) - close > 3 or len(item) - close == 3 and item[-2].upper != "AS":
        return ""
    inside = text[item[2].start : item[close - 1].end]
    values = list(_bracketed(item[2:close]))
    if values:  # the edits inside of this one are left out
        inside = f"array({text[item[values[0] + 2].end : item[close - 1].start]})"
    return f"{function}({inside})" if function else inside


def _bracketed(tokens: Sequence[Token]) -> Iterator[int]:
    """The place of the bracket of ARRAY[…] or […], if that is all."""
    first = tokens[0].upper == "ARRAY"
    if tokens[first : first + 1] and tokens[first].text == "[" and tokens[-1].text == "]":
        yield int(first)


def _name_of_rows(item: Sequence[Token]) -> str:
    return item[0].text.casefold() if item[-1].text == ")" else item[-1].text


_EDITS: tuple[Callable[[str, Sequence[Token]], Iterator[Edit]], ...] = (
    _array_casts,
    _dollar_texts,
    _array_queries,
    _maps,
    _fields,
    _lambdas,
    _objects,
    _several_unnests,
)
