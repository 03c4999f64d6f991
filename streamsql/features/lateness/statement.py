"""SHOW LATENESS."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.language.statements.base import Name, Statement


@dataclass(frozen=True, kw_only=True)
class ShowLateness(
    Statement, topic="watermarks", not_on_connect="event time", needs_spark=True, refers="stream"
):
    name: Name
    chart: bool = False
