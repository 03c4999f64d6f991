"""Spark's own queries in 17 other forms, of which `--check` refuses none and changes none."""

from __future__ import annotations

from checked_forms import queries, what_is_wrong
from golden_files import fetched_files


def test_some_queries_are_taken_in_all_forms() -> None:
    """slow/test_spark_statements_all_forms.py has the others."""
    golden = fetched_files()
    tried = list(queries(golden, some=True))
    wrong = what_is_wrong(golden, tried)
    assert len(tried) > 50
    assert not wrong, f"{len(wrong)} forms:\n" + "\n\n".join(wrong[:20])
