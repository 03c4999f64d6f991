"""A statement that goes to Spark as it is."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.language.statements.base import Statement


@dataclass(frozen=True, kw_only=True)
class Spark(Statement):
    pass


BUILDERS = {"Spark": lambda node, source: Spark()}
