"""A statement that is passed to Spark unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.language.statements.base import Statement


@dataclass(frozen=True, kw_only=True)
class Spark(Statement):
    topic: ClassVar[str] = "spark"
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True
    read_only: ClassVar[bool] = True
