"""EXPORT QUERY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.language.statements.base import Name, Statement


@dataclass(frozen=True, kw_only=True)
class ExportQuery(Statement):
    """name None means ALL; path: the folder to write."""

    topic: ClassVar[str] = "export"
    not_on_connect: ClassVar[str] = "export"
    refers: ClassVar[str] = "query"

    name: Name | None
    path: Name
