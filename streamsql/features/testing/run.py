"""TEST and the statements inside it, where no test runs: they are refused."""

from __future__ import annotations

from streamsql.errors import RuleFault
from streamsql.features.testing import statement as statements
from streamsql.language.statements.base import Statement
from streamsql.results import Result
from streamsql.runtime.handlers import Answers
from streamsql.runtime.parts import SessionParts


def _refuse(parts: SessionParts, statement: Statement) -> Result:
    """Raise RuleFault."""
    alone = isinstance(statement, statements.Test)
    raise RuleFault(
        "a TEST runs in a session of its own" if alone else "this statement belongs into a TEST",
        detail="" if alone else "TEST 'name' BEGIN GIVEN …; EXPECT …; END TEST;",
        hint="streamsql test FILE",
        span=statement.span,
        code="NOT_IN_A_TEST",
    )


DIRECT: Answers = {
    kind: _refuse
    for kind in vars(statements).values()
    if isinstance(kind, type) and kind.__module__ == statements.__name__ and issubclass(kind, Statement)
    if kind not in (statements.Given, statements.Advance)  # they run in the session of a test
}
