"""Spark's own queries in 17 other forms, of which `--check` refuses none and changes none."""

from __future__ import annotations

import pytest
from checked_forms import queries, what_is_wrong
from golden_files import fetched_files

ROOMS = (
    "streamsql/language/",
    "streamsql/plan/",
    "streamsql/cli/",
    "grammars/",
    "tests/truth/spark_statements/",
)
PARTS = 10
"""The parts that all queries are tried in: each is a test, with a time limit of its own."""


@pytest.mark.slow
def test_some_queries_are_taken_in_all_forms() -> None:
    golden = fetched_files()
    tried = list(queries(golden, some=True))
    wrong = what_is_wrong(golden, tried)
    assert len(tried) > 50
    assert not wrong, f"{len(wrong)} forms:\n" + "\n\n".join(wrong[:20])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_other_queries_are_taken_in_all_forms(part: int) -> None:
    golden = fetched_files()
    tried = [q for q in queries(golden, some=False) if q.checksum // 7 % PARTS == part]
    wrong = what_is_wrong(golden, tried)
    assert tried
    assert not wrong, f"{len(wrong)} forms:\n" + "\n\n".join(wrong[:50])
