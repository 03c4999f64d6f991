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


DIRECT: Answers = dict.fromkeys(
    (
        statements.Test,
        statements.ExpectNoChanges,
        statements.ExpectChanges,
        statements.ExpectLateRows,
        statements.ExpectWatermark,
        statements.ExpectError,
        statements.ExpectFailure,
        statements.ExpectRows,
        statements.RestartQuery,
        statements.KillQuery,
    ),
    _refuse,
)
