"""The short form of a benchmark: that it runs. Never for time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from broker import Broker

ROOMS = ("tests/benchmarks/", "tests/truth/")

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(BENCHMARKS / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_cost_of_each_part_is_measured_as_it_grows() -> None:
    lines = run("scaling.py", "--short").splitlines()
    assert len(lines) == 13 and all("growth" in line for line in lines), lines


def test_a_resume_of_many_micro_batches_is_measured() -> None:
    assert run("resume.py", "20").startswith("      20 micro-batches: resume ")


def test_the_first_prompt_is_measured() -> None:
    assert re.search(r"^streamsql +prompt +median \d+ ms", run("first_paint.py", "0"))


def test_the_first_row_is_measured() -> None:
    assert re.fullmatch(r"no cache +[\d.]+ s\n", run("first_row.py", "--short"))


def test_the_queries_of_nexmark_are_measured(tmp_path: Path) -> None:
    given = "--events 1000 --queries q5 --engines console --folder"
    lines = run("nexmark.py", *given.split(), str(tmp_path)).splitlines()
    assert len(lines) == 2 and re.match(r"q5 +console +[\d.]+ s ", lines[1]), lines


def test_the_latency_from_topic_to_topic_is_measured(kafka: Broker) -> None:
    lines = run("kafka_latency.py", "1", "20").splitlines()
    assert [line.partition(" p50 ")[0].rstrip() for line in lines if " p50 " in line] == [
        "default trigger", "asynchronous progress", "real time",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "figures"),
    [
        ("file_latency.py console --short", ["p50 ms", "p99 ms"]),
        ("large_table.py --short", ["count(*)", "one key", "LIMIT 20", "a frame"]),
        ("million_rows.py --short", ["first screen:"]),
        ("refreshes.py --short", ["1,000 rows: micro-batch"]),
        ("many_queries.py console --short", ["start s", "micro-batch p50 ms", "stop s"]),
    ],
)
def test_queries_and_live_tables_are_measured(script: str, figures: list[str]) -> None:
    printed = run(*script.split())
    missing = [figure for figure in figures if not re.search(rf"^ *{re.escape(figure)}.* \d", printed, re.M)]
    assert not missing, printed
