"""A query by itself: SELECT, WITH, FROM, VALUES, TABLE."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.language.statements.base import Fragment, Statement


@dataclass(frozen=True, kw_only=True)
class Select(Statement, topic="queries", needs_spark=True):
    query: Fragment
