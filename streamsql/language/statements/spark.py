"""A statement that is passed to Spark as it was written."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamsql.errors import SyntaxFault
from streamsql.language.statements.base import Statement
from streamsql.language.tokens import tokenize


@dataclass(frozen=True, kw_only=True)
class Spark(Statement, topic="spark", needs_spark=True, changes_workspace=True, read_only=True):
    """doubt: what is wrong with it if Spark's parser does not take it, such as a misspelt word; None where
    the console has nothing to say. is_refused: only the parser of an extension of Spark could take it;
    staged: whether it is a CREATE VIEW in a set of changes.
    """

    doubt: SyntaxFault | None = field(default=None, compare=False)
    is_refused: bool = field(default=False, compare=False)
    staged: bool = False

    @property
    def declares_variables(self) -> bool:
        """Whether later statements can read variables of the session that this one declares."""
        return any(token.upper == "DECLARE" for token in tokenize(self.text, strict=False))
