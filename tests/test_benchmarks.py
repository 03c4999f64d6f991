"""Short forms of the benchmarks: that they run, and that engines have the same rows. Never for time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SHARED_CASES

BENCHMARKS = Path(__file__).with_name("benchmarks")


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(BENCHMARKS / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_cost_of_each_part_is_measured_as_it_grows() -> None:
    lines = run("scaling.py", "--short").splitlines()
    assert len(lines) == 11 and all("growth" in line for line in lines), lines


@pytest.mark.skipif(not (SHARED_CASES / "nexmark").is_dir(), reason="the shared cases are not there")
def test_a_stream_that_is_read_once_for_two_aggregations_has_the_rows_of_spark_by_hand(
    tmp_path: Path,
) -> None:
    printed = run(
        "nexmark.py", "--events", "150000", "--queries", "q5", "--engines", "console,hand", "--same",
        "--folder", str(tmp_path),
    )  # fmt: skip
    assert "console 5 rows, hand 5: equal" in printed, printed
