"""`--check` and Spark's own statements: none that Spark runs is refused, none is changed, none raises."""

from __future__ import annotations

import pytest
from checked_session import PARTS, SOME, CheckedSession, some_files, what_is_wrong
from golden_files import GoldenFiles, fetched_files

ROOMS = (
    "streamsql/language/",
    "streamsql/plan/",
    "streamsql/cli/",
    "grammars/",
    "tests/truth/spark_statements/",
)
REPORTED = 142
"""Of the 457 texts that Spark's parser does not take, those that `--check` reports without Spark: 138 of the 151
with a syntax error, and 4 of those that are wrong in another way.
"""


@pytest.fixture(scope="module")
def golden() -> GoldenFiles:
    return fetched_files()


@pytest.mark.parametrize(
    "part",
    [SOME, *(pytest.param(part, marks=pytest.mark.slow) for part in range(PARTS) if part != SOME)],
)
def test_statements_are_taken_as_they_are(golden: GoldenFiles, part: int) -> None:
    wrong = what_is_wrong(golden, some_files(golden, part))
    assert not wrong, "\n\n".join(wrong)


def test_texts_that_do_not_parse_are_reported(golden: GoldenFiles) -> None:
    """Each by itself, with its place, by Spark's grammar. The others are left to Spark's parser."""
    statements = [s for file in golden.names for s in golden.statements(file) if not s.parses]
    reported = []
    for statement in statements:
        session = CheckedSession(statement.file, golden.settings(statement.file))
        assert not list(session.failures(statement))
        if session.fault is not None:
            assert session.fault.span
            reported.append(statement)
    assert len(reported) >= REPORTED
