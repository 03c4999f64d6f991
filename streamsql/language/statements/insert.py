"""INSERT INTO a sink, a stream of values, or a table of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from streamsql.errors import Source, Span, SyntaxFault
from streamsql.language.grammar import Node
from streamsql.language.origin import Origin
from streamsql.language.statements.base import (
    Fragment,
    Name,
    QueryClauses,
    Statement,
    clause,
)
from streamsql.language.statements.binder import bind
from streamsql.language.statements.spark import Spark
from streamsql.language.terminals import QUERY_HEADS, behind_with
from streamsql.language.token_groups import outside
from streamsql.language.tokens import Token, tokenize


@dataclass(frozen=True, kw_only=True)
class Insert(
    QueryClauses, Statement, topic="queries", needs_spark=True, changes_workspace=True, defines="query"
):
    targets: tuple[Name, ...]
    query: Fragment
    columns: tuple[Name, ...] = ()
    staged: bool = False

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any] | Statement:
        if node.has("QueryStart"):
            return _insert_of(node, source)
        return Spark() if node.has("SparkInsert") else {"staged": clause(node, "Staged") is not None}


@dataclass(frozen=True, kw_only=True)
class InsertSet(
    QueryClauses, Statement, topic="queries", needs_spark=True, changes_workspace=True, defines="query"
):
    """Several INSERTs that run as one query; body: their text, each with its whole query. of_spark: whether
    they are written as FROM … INSERT INTO … INSERT INTO …, a statement that Spark has for its tables.
    """

    inserts: tuple[Insert, ...]
    body: str
    of_spark: bool = False

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        parts = node.all("SetInsert")
        end = node.all(";")[-1].span.end
        inserts = tuple(bind(Insert, part, source) for part in parts)
        return {"inserts": inserts, "body": source.text[parts[0].span.start : end]}


def _insert_of(node: Node, source: Source) -> Insert | InsertSet:
    """The statement of WITH … or FROM … before one INSERT or several."""
    start, parts = node.get("QueryStart"), node.all("OneInsert")
    assert start
    inserts = tuple(_behind(start, part, source) for part in parts)
    if len(inserts) == 1:
        return inserts[0]
    for insert, part in zip(inserts, parts, strict=True):
        late = insert is not inserts[0] and part.get("InsertClause")
        wrong = late or part.get("ColumnNames")
        if wrong:
            raise SyntaxFault(
                "one of several INSERTs takes no clause and no column list, except clauses in the first one",
                hint="an INSERT for each sink",
                span=wrong.span,
                code="CLAUSE_NOT_SUPPORTED",
            )
    listed = (
        f"INSERT INTO {_targets(part, source)} {i.query.text.strip()};"
        for i, part in zip(inserts, parts, strict=True)
    )
    clauses = {field.name: getattr(inserts[0], field.name) for field in fields(QueryClauses)}
    return InsertSet(
        inserts=tuple(Insert(targets=i.targets, query=i.query) for i in inserts),
        body="\n".join(listed),
        of_spark=True,
        **clauses,
    )


def _targets(part: Node, source: Source) -> str:
    """The targets of an INSERT, as written."""
    targets = part.all("Target")
    return source.text[targets[0].span.start : targets[-1].span.end]


def _behind(start: Node, part: Node, source: Source) -> Insert:
    """An INSERT whose query begins before it."""
    insert, query = bind(Insert, part, source), part.get("Query")
    assert isinstance(insert, Insert) and query
    text, origin = _whole_query(source.text, start.span, query.span)
    whole = Fragment(text, Span(start.span.start, query.span.end), origin, spliced=True)
    return replace(insert, query=whole)


_AFTER_ITEMS = frozenset("""WHERE HAVING LATERAL WINDOW LIMIT OFFSET UNION EXCEPT MINUS INTERSECT""".split())
_AFTER_ITEMS_WITH_BY = frozenset(("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"))


def _whole_query(text: str, start: Span, query: Span) -> tuple[str, Origin]:
    """The query of an INSERT behind WITH … or FROM …, in the order of a SELECT, and the origin that maps it
    to the text. start: the place of WITH … and FROM … before INSERT INTO; query: that of the SELECT … behind
    it.
    """
    leading = tokenize(text[start.start : start.end])
    begins = behind_with(leading, 0) if leading[0].upper == "WITH" else 0
    from_at = start.start + leading[begins].start if begins < len(leading) else start.end
    items_end = query.start + _end_of_items(tokenize(text[query.start : query.end]))
    pieces = [(start.start, from_at), (query.start, items_end), (from_at, start.end), (items_end, query.end)]
    written, points = "", list[tuple[int, int]]()
    for begin, end in pieces:
        if begin == end:
            continue
        written += " " if written and not written[-1].isspace() else ""
        points += [(len(written), begin)] * (2 if points else 1)
        written += text[begin:end]
    return written.rstrip(), Origin(tuple(points))


def _end_of_items(tokens: Sequence[Token]) -> int:
    """The end of SELECT and its items in the text of these tokens."""
    for at in outside(tokens):
        token = tokens[at]
        if token.kind != "word" or at == 0 or tokens[at - 1].text == ".":
            continue
        after, inside = ([t.upper for t in tokens[at + 1 : at + 3]] + ["", ""])[:2]
        if [tokens[at - 1].text, token.upper, after] == ["*", "EXCEPT", "("] and inside not in QUERY_HEADS:
            continue  # columns that the star leaves out
        if token.upper in _AFTER_ITEMS or (token.upper in _AFTER_ITEMS_WITH_BY and after == "BY"):
            return tokens[at].start
    return tokens[-1].end
