"""Nexmark q0 to q22, each as a live table: after each of three micro-batches its rows are those of the same
SELECT over all rows up to then. None has an output mode written; those that Spark refuses run in stages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Console, cases_of
from truth.nexmark import SIDE_INPUT, STEPS, TABLES, columns, expected, feed, live_tables, shown, wanted

ROOMS = ("streamsql/plan/", "streamsql/runtime/", "tests/truth/")


@pytest.mark.parametrize("name", cases_of({name: name for name in live_tables()}, 6))
def test_a_live_table_is_the_batch_result_after_each_micro_batch(
    console: Console, spark: Any, tmp_path: Path, name: str
) -> None:
    query = live_tables()[name]
    for table in TABLES:
        (tmp_path / table).mkdir()
        console.run(
            f"CREATE STREAM {table} ({columns(table)}) USING json OPTIONS (path '{tmp_path}/{table}');"
        )
    console.run(SIDE_INPUT)
    console.run(f"CREATE LIVE TABLE t AS {query};")
    for step in range(STEPS):
        feed(tmp_path, step)
        console.run("AWAIT QUERY t IDLE;")
        found = sorted(map(repr, console.rows(f"{shown(name, 't')};")))
        assert found == expected(spark, tmp_path, wanted(name, query)), f"step {step}"
