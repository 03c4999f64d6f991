"""EXPORT QUERY."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.language.statements.base import Name, Statement


@dataclass(frozen=True, kw_only=True)
class ExportQuery(Statement, topic="export", not_on_connect="export", refers="query"):
    """name None means ALL; path: the folder to write."""

    name: Name | None
    path: Name
