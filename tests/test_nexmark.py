"""Nexmark q0 to q22, each as a live table: after each of three micro-batches its rows are those of the same
SELECT over all rows up to then. None has an output mode written; those that Spark refuses run in stages.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import SHARED_CASES, Console

from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.row_values import collect

NEXMARK = SHARED_CASES / "nexmark"
TABLES = ("person", "auction", "bid")
STEPS = 3
BY_THE_CLOCK = "q12"
"""Its windows are of the time at which rows are read: only its counts of each bidder can be compared."""
pytestmark = pytest.mark.skipif(not NEXMARK.is_dir(), reason="the shared cases are not there")


def queries() -> list[Any]:
    if not NEXMARK.is_dir():
        return []
    known = json.loads((NEXMARK / "queries.json").read_text("utf-8"))
    return [pytest.param(q["id"], q["spark_sql"], id=q["id"]) for q in known if "_" not in q["id"]]


def columns(table: str) -> str:
    schema = json.loads((NEXMARK / "schema.json").read_text("utf-8"))
    return ", ".join(f"{name} {kind}" for name, kind in schema[table])


def lines_of(table: str, step: int) -> str:
    """The rows of a table that come in a step, in the order of their time."""
    lines = (NEXMARK / "data" / f"{table}.jsonl").read_text("utf-8").splitlines(keepends=True)
    return "".join(lines[len(lines) * step // STEPS : len(lines) * (step + 1) // STEPS])


def expected(spark: Any, folder: Path, query: str) -> list[str]:
    """The rows of a query over all files."""
    session = own_session(spark)
    for table in TABLES:
        session.read.schema(columns(table)).json(str(folder / table)).createOrReplaceTempView(table)
    return sorted(map(repr, map(tuple, collect(session.sql(query)).rows)))


@pytest.mark.parametrize(("name", "query"), queries())
def test_a_live_table_is_the_batch_result_after_each_micro_batch(
    console: Console, spark: Any, tmp_path: Path, name: str, query: str
) -> None:
    for table in TABLES:
        (tmp_path / table).mkdir()
        console.run(
            f"CREATE STREAM {table} ({columns(table)}) USING json OPTIONS (path '{tmp_path}/{table}');"
        )
    console.run(
        "CREATE TEMPORARY VIEW side_input AS SELECT id AS key, string(id) AS value FROM range(2000) AS t(id);"
    )
    console.run(f"CREATE LIVE TABLE t AS {query};")
    shown, wanted = "SELECT * FROM t;", query
    if name == BY_THE_CLOCK:
        shown = "SELECT bidder, sum(bid_count) AS n FROM t GROUP BY bidder;"
        wanted = "SELECT bidder, count(*) AS n FROM bid GROUP BY bidder"
    for step in range(STEPS):
        for table in TABLES:
            part = tmp_path / f"{table}.part"
            part.write_text(lines_of(table, step), "utf-8")
            part.rename(tmp_path / table / f"{step}.json")
        console.run("AWAIT QUERY t IDLE;")
        assert sorted(map(repr, console.rows(shown))) == expected(spark, tmp_path, wanted), f"step {step}"
