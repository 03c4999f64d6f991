"""Nexmark: the queries q0 to q22, the columns of its tables, and 110 rows of them, from tests/truth/data."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from truth.packed import unpacked

from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.row_values import collect

TABLES = ("person", "auction", "bid")
STEPS = 3
"""The number of parts in which the rows of a table come."""
BY_THE_CLOCK = "q12"
"""Its windows are of the time at which rows are read: only its counts of each bidder can be compared."""
SIDE_INPUT = (
    "CREATE TEMPORARY VIEW side_input AS SELECT id AS key, string(id) AS value FROM range(2000) AS t(id);"
)


@cache
def queries() -> dict[str, str]:
    """The SELECT of each query by its name, those that stand for one that Spark refuses (q15_alt) among them."""
    known = json.loads((unpacked("nexmark") / "queries.json").read_text("utf-8"))
    return {query["id"]: query["spark_sql"] for query in known}


def live_tables() -> dict[str, str]:
    """The queries as Nexmark has them: each can be a live table."""
    return {name: sql for name, sql in queries().items() if "_" not in name}


def columns(table: str) -> str:
    """The columns of a table with their types."""
    schema = json.loads((unpacked("nexmark") / "schema.json").read_text("utf-8"))
    return ", ".join(f"{name} {kind}" for name, kind in schema[table])


def feed(folder: Path, step: int) -> None:
    """Write the rows of a step, in the order of their time: a file for each table, whole from the moment that it is
    there.
    """
    for table in TABLES:
        lines = (unpacked("nexmark") / "data" / f"{table}.jsonl").read_text("utf-8").splitlines(keepends=True)
        part = folder / f"{table}.part"
        part.write_text(
            "".join(lines[len(lines) * step // STEPS : len(lines) * (step + 1) // STEPS]), "utf-8"
        )
        part.rename(folder / table / f"{step}.json")


def shown(name: str, table: str) -> str:
    """The SELECT of what is compared of a live table that holds a query's rows."""
    if name == BY_THE_CLOCK:
        return f"SELECT bidder, sum(bid_count) AS n FROM {table} GROUP BY bidder"
    return f"SELECT * FROM {table}"


def wanted(name: str, sql: str) -> str:
    """The SELECT of what it has to be."""
    return "SELECT bidder, count(*) AS n FROM bid GROUP BY bidder" if name == BY_THE_CLOCK else sql


def expected(spark: Any, folder: Path, query: str) -> list[str]:
    """The rows of a query over all files."""
    session = own_session(spark)
    for table in TABLES:
        session.read.schema(columns(table)).json(str(folder / table)).createOrReplaceTempView(table)
    return sorted(map(repr, map(tuple, collect(session.sql(query)).rows)))
