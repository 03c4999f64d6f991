"""Loads the scripts under test into the session of a test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from streamsql.definitions import Stream
from streamsql.errors import Source, StreamsqlError
from streamsql.features.testing.further_rows import prepared
from streamsql.language.parser import Written, parse, split_script
from streamsql.language.statements.base import Statement
from streamsql.language.statements.insert import Insert
from streamsql.language.statements.session import Exit, SourceFile
from streamsql.output.script_runner import included
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.session import Session


class Pipeline:
    """The scripts under test. Statements that only show, wait, or give rows are skipped."""

    def __init__(self, session: Session, cancel: CancelToken) -> None:
        self.session = session
        self.cancel = cancel
        self._open: list[str] = []

    def load(self, source: Source) -> bool:
        """Load a script. Returns False if it ends with EXIT. Raises the first error, in its source."""
        return self.run(split_script(source))

    def run(self, statements: Iterable[Written]) -> bool:
        """Execute statements as `load` does."""
        return all(self._statement(written) for written in statements)

    def _statement(self, written: Written) -> bool:
        self.session.variables["here"] = str(Path(written.source.name).parent)
        try:
            statement = parse(written, self.session.variables, translation=self.session.translation)
            if isinstance(statement, Exit):
                return False
            if isinstance(statement, SourceFile):
                source = included(statement, written, self._open)
                self._open.append(written.source.name)
                try:
                    return self.load(source)
                finally:
                    self._open.pop()
            if statement.of_pipeline and not self._gives_rows(statement):
                self.session.execute(prepared(self.session, statement), self.cancel)
        except StreamsqlError as error:
            raise error.at(written.source, written.span) from error.__cause__
        return True

    def _gives_rows(self, statement: Statement) -> bool:
        """Whether a statement inserts rows into a stream of values, which is for GIVEN in a test."""
        return isinstance(statement, Insert) and any(
            isinstance(self.session.catalog.target(name.value), Stream) for name in statement.targets
        )
