"""EXPLAIN [PYSPARK | LOGICAL | EXTENDED | FORMATTED] statement | QUERY name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from streamsql.errors import Source, SyntaxFault
from streamsql.language.grammar import Node, text_of
from streamsql.language.statements.base import Fragment, Name, Statement, fragment_of, name_of


@dataclass(frozen=True, kw_only=True)
class Explain(Statement):
    """mode: pyspark, logical, extended, formatted, or empty; either body or query_name is set."""

    topic: ClassVar[str] = "queries"

    mode: str = ""
    body: Fragment | None = None
    query_name: Name | None = None

    @classmethod
    def read(cls, node: Node, source: Source) -> Explain:
        return _explain(node, source)


# Checked here, because planning the body would parse the text again for each nested EXPLAIN.
_EXPLAIN = re.compile(r"EXPLAIN\b", re.IGNORECASE)


def _explain(node: Node, source: Source) -> Explain:
    mode = node.parts[0 if len(node.parts) < 3 else 1].name.lower() if len(node.parts) > 2 else ""
    query, rest = node.get("ExplainQuery"), node.get("Rest")
    if rest and _EXPLAIN.match(text_of(source, rest)):
        raise SyntaxFault("EXPLAIN cannot explain an EXPLAIN", hint="omit one of them", span=rest.span)
    return Explain(
        mode=mode,
        body=fragment_of(source, rest) if rest else None,
        query_name=name_of(query.get("QueryName")) if query else None,
    )
