"""`--check` and Spark's own statements: none that Spark runs is refused, none is changed, none raises."""

from __future__ import annotations

import pytest
from checked_session import PARTS, SOME, CheckedSession, some_files, what_is_wrong
from golden_files import GoldenFiles, fetched_files
from shrinking_list import FAILS_TODAY

ROOMS = (
    "streamsql/language/",
    "streamsql/plan/",
    "streamsql/cli/",
    "grammars/",
    "tests/truth/spark_statements/",
)
REPORTED = 85
"""The texts that Spark's parser does not take and that `--check` reports: no fewer from now on."""


@pytest.fixture(scope="module")
def golden() -> GoldenFiles:
    return fetched_files()


@pytest.mark.parametrize(
    "part",
    [SOME, *(pytest.param(part, marks=pytest.mark.slow) for part in range(PARTS) if part != SOME)],
)
def test_statements_are_taken_as_they_are(golden: GoldenFiles, part: int) -> None:
    wrong = what_is_wrong(golden, some_files(golden, part))
    assert not wrong, wrong


def test_the_list_names_files_that_exist(golden: GoldenFiles) -> None:
    assert {line.split()[0] for line in FAILS_TODAY.lines()} <= set(golden.names)


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
