"""The rules on and off, and plain Spark on the checkpoint that they leave: each gives the answer of a batch."""

from __future__ import annotations

import os
from typing import Any

import pytest
from rules_difference import Case, verdicts

from streamsql.errors import StartFault

ROOMS = ("streamsql/runtime/engine/", "tests/rules_difference.py")
SEEDS = range(int(os.environ.get("STREAMSQL_RULES_SEEDS", "10")))


@pytest.fixture(scope="module")
def found(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Case, dict[str, Any]]]:
    """By its seed, each case and what plain Spark finds after it has resumed the checkpoint."""
    place = tmp_path_factory.mktemp("differences")
    try:
        return {case.seed: (case, verdict) for case, verdict in verdicts(spark, SEEDS, place)}
    except StartFault as error:
        pytest.skip(f"plain Spark needs a full Java: {error.message}")


@pytest.mark.parametrize("seed", SEEDS)
def test_rules_and_plain_spark_over_one_checkpoint_give_the_answer_of_a_batch(
    found: dict[int, tuple[Case, dict[str, Any]]], seed: int
) -> None:
    case, verdict = found[seed]
    assert (verdict.get("failed"), verdict.get("missing"), verdict.get("wrong")) == (None, [], []), case
    assert verdict["rows"] > 10
