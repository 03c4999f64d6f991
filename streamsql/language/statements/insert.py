"""INSERT INTO a sink, a stream of values, or a table of Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from streamsql.errors import Source, Span, SyntaxFault
from streamsql.language.grammar import Node
from streamsql.language.leading_from import whole_query
from streamsql.language.statements.base import (
    Fragment,
    Name,
    QueryClauses,
    Statement,
    begins_of,
    clause,
    fragment_of,
    late_of,
    name_of,
    new_name_of,
    output_mode_of,
    restart_of,
    trigger_of,
)
from streamsql.language.statements.sink import names_of, retain_of
from streamsql.language.statements.spark import Spark


@dataclass(frozen=True, kw_only=True)
class Insert(QueryClauses, Statement):
    topic: ClassVar[str] = "queries"
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True
    defines: ClassVar[str] = "query"

    targets: tuple[Name, ...]
    query: Fragment
    columns: tuple[Name, ...] = ()

    @classmethod
    def read(cls, node: Node, source: Source) -> Statement:
        if node.has("QueryStart"):
            return _insert_of(node, source)
        return Spark() if node.has("SparkInsert") else _own_insert(node, source)


@dataclass(frozen=True, kw_only=True)
class InsertSet(QueryClauses, Statement):
    """Several INSERTs that run as one query; body: their text, each with its whole query. of_spark: whether
    they are written as FROM … INSERT INTO … INSERT INTO …, a statement that Spark has for its tables.
    """

    topic: ClassVar[str] = "queries"
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True
    defines: ClassVar[str] = "query"

    inserts: tuple[Insert, ...]
    body: str
    of_spark: bool = False

    @classmethod
    def read(cls, node: Node, source: Source) -> InsertSet:
        inserts = node.all("SetInsert")
        end = node.all(";")[-1].span.end
        return cls(
            inserts=tuple(_own_insert(part, source) for part in inserts),
            body=source.text[inserts[0].span.start : end],
            **_clauses(node),
        )


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
    return InsertSet(
        inserts=tuple(Insert(targets=i.targets, query=i.query) for i in inserts),
        body="\n".join(listed),
        of_spark=True,
        **_clauses(parts[0]),
    )


def _targets(part: Node, source: Source) -> str:
    """The targets of an INSERT, as written."""
    targets = part.all("Target")
    return source.text[targets[0].span.start : targets[-1].span.end]


def _behind(start: Node, part: Node, source: Source) -> Insert:
    """An INSERT whose query begins before it."""
    insert, query = _own_insert(part, source), part.get("Query")
    assert query
    text, origin = whole_query(source.text, start.span, query.span)
    whole = Fragment(text, Span(start.span.start, query.span.end), origin, spliced=True)
    return replace(insert, query=whole)


def _clauses(node: Node) -> dict[str, Any]:
    """The clauses of a query by field. Raises SyntaxFault for a duplicate clause."""
    clauses: dict[str, Node] = {}
    for wrapper in node.all("InsertClause"):
        part = wrapper.parts[0]
        if part.name in clauses:
            raise SyntaxFault("this clause is written twice", span=part.span, code="DUPLICATE_CLAUSE")
        clauses[part.name] = part
    name, checkpoint = clauses.get("AsQuery"), clauses.get("Checkpoint")
    return {
        "query_name": new_name_of(name.get("NewName")) if name else None,
        "output_mode": output_mode_of(clauses.get("OutputMode")),
        "trigger": trigger_of(clauses.get("Trigger")),
        "checkpoint": name_of(checkpoint.get("Path")) if checkpoint else None,
        "restart": restart_of(clauses.get("Restart")),
        "begins": begins_of(clauses.get("Begins")),
        "late": late_of(clauses.get("OnLate")),
        "retain": retain_of(clauses.get("Retain")),
    }


def _own_insert(node: Node, source: Source) -> Insert:
    query = node.get("Query")
    assert query
    return Insert(
        targets=names_of(node, "Target"),
        query=fragment_of(source, query),
        columns=names_of(clause(node, "ColumnNames")),
        **_clauses(node),
    )
