"""EXPLAIN [PYSPARK | LOGICAL | EXTENDED | FORMATTED] statement | QUERY name."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Fragment, Name, Statement, fragment_of, name_of


@dataclass(frozen=True, kw_only=True)
class Explain(Statement):
    """mode: pyspark, logical, extended, formatted, or empty; either body or query_name is set."""

    mode: str = ""
    body: Fragment | None = None
    query_name: Name | None = None


def _explain(node: Node, source: Source) -> Explain:
    mode = node.parts[0 if len(node.parts) < 3 else 1].name.lower() if len(node.parts) > 2 else ""
    query, rest = node.get("ExplainQuery"), node.get("Rest")
    return Explain(
        mode=mode,
        body=fragment_of(source, rest) if rest else None,
        query_name=name_of(query.get("QueryName")) if query else None,
    )


BUILDERS = {"Explain": _explain}
