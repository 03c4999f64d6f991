"""Nexmark q0 to q22, each as a live table: while a micro-batch runs, the console and its JVM are killed (SIGKILL), and
the next console resumes. Afterwards the rows are those of the same SELECT over all rows.

Two queries and one kill are a part of the suite; all of them, with a kill in each of the micro-batches after the
first, with `STREAMSQL_NEXMARK_KILLS=all python -m pytest tests/truth/slow/test_kills_of_nexmark.py`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from faults.pipeline import Console, wait_for_end
from truth.nexmark import SIDE_INPUT, STEPS, TABLES, columns, expected, feed, live_tables, shown, wanted

ROOMS = ("streamsql/runtime/", "streamsql/plan/streaming/", "tests/truth/")

ALL = os.environ.get("STREAMSQL_NEXMARK_KILLS") == "all"
SHORT = ("q4", "q18")
TOGETHER = 4
"""The number of queries that run in one console."""


def groups() -> list[dict[str, str]]:
    """The queries of each test: name → SELECT."""
    chosen = [(name, sql) for name, sql in live_tables().items() if ALL or name in SHORT]
    return [dict(chosen[n : n + TOGETHER]) for n in range(0, len(chosen), TOGETHER)]


def definitions(queries: dict[str, str]) -> str:
    streams = (f"CREATE STREAM {t} ({columns(t)}) USING json OPTIONS (path '{t}');" for t in TABLES)
    tables = (f"CREATE LIVE TABLE {name} AS {sql};" for name, sql in queries.items())
    return "\n".join((*streams, SIDE_INPUT, *tables, "SELECT 1 AS defined;"))


def begun(folder: Path) -> set[Path]:
    """The micro-batches that have begun: their offsets are written. They stay, so that none is missed while
    the processors are busy with others; that one is under way can be over before it is seen.
    """
    return set((folder / "w" / "run" / "queries").glob("*/current/checkpoint/offsets/[0-9]*"))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("names", groups(), ids=lambda names: "_".join(names))
def test_nexmark_goes_on_after_kills(spark: Any, tmp_path: Path, names: dict[str, str]) -> None:
    for table in TABLES:
        (tmp_path / table).mkdir()
    feed(tmp_path, 0)
    script, kills = definitions(names), STEPS - 1 if ALL else 1
    for step in range(1, 1 + kills):
        console = Console(tmp_path, script + "AWAIT QUERY ALL;")
        console.until(lambda console=console: console.rows("defined"))
        before = begun(tmp_path)
        feed(tmp_path, step)
        console.until(lambda before=before: begun(tmp_path) - before, 0.002)
        jvm = console.jvm()
        console.kill("both", jvm)
        wait_for_end(jvm)
        script = "START QUERY ALL; SELECT 1 AS defined;"
    for step in range(1 + kills, STEPS):
        feed(tmp_path, step)
    rows = "".join(f"SELECT '{n}' AS query, to_json(struct(*)) AS row FROM ({shown(n, n)});" for n in names)
    console = Console(
        tmp_path, f"START QUERY ALL; AWAIT QUERY ALL IDLE; {rows} SELECT 1 AS done; AWAIT QUERY ALL;"
    )
    console.until(lambda: console.rows("done"), 0.1, 600)
    found = console.rows("query")
    console.kill("both", console.jvm())
    spark.sql(SIDE_INPUT.replace("CREATE", "CREATE OR REPLACE").rstrip(";"))
    for name, sql in names.items():
        batch = expected(spark, tmp_path, f"SELECT to_json(struct(*)) AS row FROM ({wanted(name, sql)})")
        assert sorted(repr((r["row"],)) for r in found if r["query"] == name) == batch, name
    spark.catalog.dropTempView("side_input")
