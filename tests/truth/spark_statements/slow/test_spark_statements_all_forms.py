"""Spark's own queries in 17 other forms: those that ../test_spark_statements_forms.py leaves out."""

from __future__ import annotations

import pytest
from checked_forms import queries, what_is_wrong
from golden_files import GoldenFiles, fetched_files

ROOMS = (
    "streamsql/language/",
    "streamsql/plan/",
    "streamsql/cli/",
    "grammars/",
    "tests/truth/spark_statements/",
)
PARTS = 10
"""The parts that the queries are tried in: each is a test, with a time limit of its own."""


@pytest.fixture(scope="module")
def golden() -> GoldenFiles:
    return fetched_files()


@pytest.mark.parametrize("part", range(PARTS))
def test_queries_are_taken_in_all_forms(golden: GoldenFiles, part: int) -> None:
    tried = [q for q in queries(golden, some=False) if q.checksum // 7 % PARTS == part]
    wrong = what_is_wrong(golden, tried)
    assert tried
    assert not wrong, f"{len(wrong)} forms:\n" + "\n\n".join(wrong[:50])
