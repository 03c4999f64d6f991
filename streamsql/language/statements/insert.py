"""INSERT INTO a sink, a stream of values, or a table of Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from streamsql.errors import Source, SyntaxFault
from streamsql.language.grammar import Node
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
        return _insert(node, source)


@dataclass(frozen=True, kw_only=True)
class InsertSet(QueryClauses, Statement):
    """Several INSERTs that run as one query; body: their text as written."""

    topic: ClassVar[str] = "queries"
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True
    defines: ClassVar[str] = "query"

    inserts: tuple[Insert, ...]
    body: str

    @classmethod
    def read(cls, node: Node, source: Source) -> InsertSet:
        return _insert_set(node, source)


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


def _insert(node: Node, source: Source) -> Statement:
    return Spark() if node.has("SparkInsert") else _own_insert(node, source)


def _own_insert(node: Node, source: Source) -> Insert:
    query = node.get("Query")
    assert query
    return Insert(
        targets=names_of(node, "Target"),
        query=fragment_of(source, query),
        columns=names_of(clause(node, "ColumnNames")),
        **_clauses(node),
    )


def _insert_set(node: Node, source: Source) -> InsertSet:
    inserts = node.all("SetInsert")
    end = node.all(";")[-1].span.end
    return InsertSet(
        inserts=tuple(_own_insert(part, source) for part in inserts),
        body=source.text[inserts[0].span.start : end],
        **_clauses(node),
    )
