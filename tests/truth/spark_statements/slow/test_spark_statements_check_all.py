"""`--check` and Spark's own statements: the files that ../test_spark_statements_check.py leaves out."""

from __future__ import annotations

import pytest
from checked_session import PARTS, SOME, some_files, what_is_wrong
from golden_files import GoldenFiles, fetched_files

ROOMS = (
    "streamsql/language/",
    "streamsql/plan/",
    "streamsql/cli/",
    "grammars/",
    "tests/truth/spark_statements/",
)


@pytest.fixture(scope="module")
def golden() -> GoldenFiles:
    return fetched_files()


@pytest.mark.parametrize("part", [part for part in range(PARTS) if part != SOME])
def test_statements_are_taken_as_they_are(golden: GoldenFiles, part: int) -> None:
    wrong = what_is_wrong(golden, some_files(golden, part))
    assert not wrong, wrong
