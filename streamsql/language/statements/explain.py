"""EXPLAIN [PYSPARK | LOGICAL | EXTENDED | FORMATTED | COST | CODEGEN] statement | QUERY name."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.language.statements.base import Name, StatementWithBody


@dataclass(frozen=True, kw_only=True)
class Explain(StatementWithBody, topic="queries"):
    """mode: pyspark, logical, extended, formatted, cost, codegen or "". Either body or name is set."""

    mode: str = ""
    name: Name | None = None
