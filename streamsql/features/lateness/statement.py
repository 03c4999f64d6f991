"""SHOW LATENESS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.language.statements.base import Name, Statement


@dataclass(frozen=True, kw_only=True)
class ShowLateness(Statement):
    topic: ClassVar[str] = "watermarks"
    not_on_connect: ClassVar[str] = "event time"
    needs_spark: ClassVar[bool] = True
    refers: ClassVar[str] = "stream"

    name: Name
    chart: bool = False
