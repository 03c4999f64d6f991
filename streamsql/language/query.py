"""Parses a query to a tree. No other module reads the text of a query.

`read_query` reads a text once: the grammar cuts out the console's own clauses (console_clauses.py), sqlglot
parses the rest, and block_reader.py converts sqlglot's tree to the parts in query_tree.py. A query that
sqlglot cannot parse, or that has an unsupported part, is left to Spark: it has no `body` but a `reason`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from streamsql.errors import Source, Span, SyntaxFault
from streamsql.language import sqlglot_nodes as exp
from streamsql.language.block_reader import BlockReader
from streamsql.language.console_clauses import PLACEHOLDER, Cut, cut
from streamsql.language.dialect import parse_tokens, parse_unfinished
from streamsql.language.expression import Expression
from streamsql.language.grammar import Node
from streamsql.language.query_tree import (
    Block,
    Body,
    Clause,
    ConsoleRelation,
    Cte,
    Distinct,
    GroupBy,
    Item,
    Join,
    LateralView,
    Named,
    OrderBy,
    Query,
    Relation,
    SetTail,
)
from streamsql.language.statements.base import watermark_of
from streamsql.language.token_ranges import LEFT, Unread
from streamsql.language.tokens import Token, tokenize
from streamsql.language.tree_nodes import names_word, tables_read
from streamsql.language.unread_query import names_read

__all__ = [
    "Block",
    "Body",
    "Clause",
    "ConsoleRelation",
    "Cte",
    "Distinct",
    "GroupBy",
    "Item",
    "Join",
    "LateralView",
    "Named",
    "OrderBy",
    "Query",
    "Relation",
    "SetTail",
    "read_expression",
    "read_part",
    "read_query",
    "try_expression",
]


TOO_DEEP = "the query is nested too deeply"
"""The reason of a query whose tree would be deeper than Python's stack."""

_MOST_CHARACTERS = 200_000
"""The characters of the texts whose trees are kept: a tree takes some 270 bytes a character."""
_trees: OrderedDict[str, Query] = OrderedDict()
_characters = 0
"""The characters of the texts in _trees."""
_lock = threading.Lock()


def read_query(text: str) -> Query:
    """Parse the text of a query. Raises SyntaxFault or RuleFault, with its span, for an error in the
    console's own clauses, an unclosed quote or an unbalanced parenthesis; nothing else is an error here.

    The trees of the last texts are kept.
    """
    if query := _trees.get(text):
        with suppress(KeyError):  # another thread has just removed it
            _trees.move_to_end(text)
        return query
    query = _read(text)
    global _characters
    with _lock:
        if text not in _trees:
            _characters += len(text)
        _trees[text] = query
        while _characters > _MOST_CHARACTERS and len(_trees) > 1:
            _characters -= len(_trees.popitem(last=False)[0])
    return query


@lru_cache(maxsize=4096)
def read_expression(text: str) -> Expression:
    """Parse a scalar expression that the console generates, such as the window of a window table."""
    expression = try_expression(text)
    assert expression is not None, text
    return expression


def try_expression(text: str) -> Expression | None:
    """Parse what a user wrote as a scalar expression; None if it is none that sqlglot can read."""
    body = read_query(f"SELECT {text}").body
    return body.block.items[0].expression if body and body.block and body.block.items else None


def _read(text: str) -> Query:
    tokens = tokenize(text)
    _check_parentheses(tokens)
    out = cut(tokens)
    if any(t.text == "|>" for t in tokens):
        return _query(text, tokens, out, reason=LEFT)
    raw = [part for token in out.remaining for part in token.parts]
    try:
        tree, stopped = parse_tokens(raw, text)
    except RecursionError:
        return _query(text, tokens, out, reason=TOO_DEEP)
    if tree is None:
        return _query(text, tokens, out, reason=LEFT, stopped=stopped)
    if any(t.upper == "TABLE" for t in out.remaining) and names_word(tree, "TABLE"):
        return _query(text, tokens, out, reason=LEFT)  # sqlglot reads TABLE t as the column TABLE
    body, reason = None, ""
    try:
        body = BlockReader(text, out).body(tree, 0, len(out.remaining))
    except Unread as problem:
        reason = str(problem)
    except RecursionError:
        return _query(text, tokens, out, reason=TOO_DEEP)
    return _query(text, tokens, out, tree=tree, body=body, reason=reason)


def _query(
    text: str, tokens: Sequence[Token], out: Cut, *, tree: Any = None, finished: bool = True, **fields: Any
) -> Query:
    marks = [watermark_of(Source("", text), node) for node in out.watermarks.values()]
    nodes = tuple(tree.walk()) if tree is not None else ()
    own = tuple(out.own.values())
    return Query(
        text,
        tuple(tokens),
        own,
        tuple(out.clauses),
        tree=tree,
        nodes=nodes,
        has_stream=bool(out.streams),
        has_watermark=bool(out.watermarks),
        relations=_relations_of(text, tokens, own, nodes) if finished else (),
        computed=frozenset(w.column.value.casefold() for w in marks if w and w.computed),
        spark_tokens=tuple(out.remaining),
        **fields,
    )


def read_part(text: str) -> tuple[Query, Span | None]:
    """What can be read of an unfinished query, without its body; and the first token after that, None if all
    is read. Raises SyntaxFault or RuleFault for an error in the console's own clauses.
    """
    tokens = tokenize(text, strict=False)
    out = cut(tokens)
    try:
        tree, stopped = parse_unfinished([part for token in out.remaining for part in token.parts], text)
    except RecursionError:
        tree, stopped = None, None
    return _query(text, tokens, out, tree=tree, finished=False), stopped


def check_balanced(text: str) -> None:
    """Raise SyntaxFault, with its span, for a parenthesis that is not closed or not opened."""
    if text.count("(") != text.count(")"):  # else it need not be tokenized
        _check_parentheses(tokenize(text))


def _check_parentheses(tokens: Sequence[Token]) -> None:
    """Raise SyntaxFault, with its span, for a parenthesis that is not closed or not opened."""
    open_ones: list[Token] = []
    for token in tokens:
        if token.text == "(" and token.kind == "sign":
            open_ones.append(token)
        elif token.text == ")" and token.kind == "sign":
            if not open_ones:
                raise SyntaxFault("there is no ( for this )", span=token.span)
            open_ones.pop()
    if open_ones:
        raise SyntaxFault("this parenthesis is not closed", hint="add )", span=open_ones[-1].span)


def _relations_of(
    text: str, tokens: Sequence[Token], own: Sequence[ConsoleRelation], nodes: Sequence[Any]
) -> tuple[Named, ...]:
    """See Query.relations."""
    relations: list[Named] = []
    if not nodes:
        inside = [part.span for part in own if part.kind != "StatefulCall"]
        relations = [
            Named(name, span)
            for name, span in names_read(tokens)
            if not any(i.start <= span.start < i.end for i in inside)
        ]
    else:
        for table in tables_read(nodes):
            names = [p for p in table.parts if isinstance(p, exp.Identifier)]
            if len(names) != len(table.parts) or not all(n._meta for n in names):
                continue
            name = ".".join(n.name for n in names)
            if not name.startswith(PLACEHOLDER):
                relations.append(Named(name, Span(names[0].meta["start"], names[-1].meta["end"] + 1)))
    for part in own:
        if nodes or part.kind != "StatefulCall":
            relations += _relations_of_own(text, part.node)
    return tuple(sorted(set(relations), key=lambda n: n.span.start))


def _relations_of_own(text: str, node: Node) -> Iterator[Named]:
    for part in node.walk():
        if part.name == "RelationName":
            yield Named(part.value, part.span)
        elif part.name == "Query":
            start = part.span.start
            for named in read_query(text[start : part.span.end]).relations:
                yield Named(named.name, named.span.shift(start))
