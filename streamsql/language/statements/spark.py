"""A statement that is passed to Spark unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.language.statements.base import Statement
from streamsql.language.tokens import tokenize


@dataclass(frozen=True, kw_only=True)
class Spark(Statement):
    topic: ClassVar[str] = "spark"
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True
    read_only: ClassVar[bool] = True

    @property
    def declares_variables(self) -> bool:
        """Whether later statements can read variables of the session that this one declares."""
        return any(token.upper == "DECLARE" for token in tokenize(self.text, strict=False))
