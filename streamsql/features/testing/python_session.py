"""A session for tests that are written in Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamsql.errors import Source, StreamsqlError
from streamsql.features.testing.bench import Bench
from streamsql.features.testing.pipeline import Pipeline
from streamsql.features.testing.statement import Test
from streamsql.features.testing.test_run import explained, run_test
from streamsql.language.parser import parse, split_script
from streamsql.language.statements.base import Name
from streamsql.output.script_files import read_file
from streamsql.results import Rows, RowStream
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.session import Session


class PythonSession:
    """session: of this test alone. Errors are AssertionErrors with the text that a person reads."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._cancel = CancelToken()
        self._bench = Bench(session, self._cancel)

    def load(self, path: str | Path) -> None:
        """Load a script; its streams and sinks are replaced as in a TEST."""
        __tracebackhide__ = True
        try:
            Pipeline(self.session, self._cancel).load(read_file(str(path)))
        except StreamsqlError as error:
            raise AssertionError(explained(error)) from None

    def run(self, statements: str) -> None:
        """Run statements as in a TEST: CREATE …, GIVEN, ADVANCE, EXPECT and others."""
        __tracebackhide__ = True
        source = Source("streamsql.run", statements)
        try:
            written, variables = split_script(source), self.session.variables
            body = tuple(parse(statement, variables, in_test=True) for statement in written)
            assert body, "there is no statement"
            run_test(self._bench, Test(name=Name("run", body[0].span), body=body), source)
        except StreamsqlError as error:
            raise AssertionError(explained(error.at(source))) from None

    def rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        """The rows of a query, as Python values; timestamps are in the session time zone."""
        __tracebackhide__ = True
        source = Source("streamsql.rows", query)
        try:
            result = self.session.execute(
                parse(split_script(source)[0], self.session.variables, translation=self.session.translation)
            )
        except StreamsqlError as error:
            raise AssertionError(explained(error.at(source))) from None
        if isinstance(result, RowStream):
            result = result.whole()
        assert isinstance(result, Rows), "this statement has no rows"
        return [tuple(row) for row in result.rows]
