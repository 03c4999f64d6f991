"""Refreshes over live tables of 1,000, 100,000 and 1,000,000 rows with a key, of which 100 change in each micro-batch.

Prints medians in milliseconds: the micro-batch of the keyed live table, the refresh of an aggregation over it (the
second stage of avg over counts), and that of an INSERT of all its rows into a sink with the key (the comparison with
what was written before included). `--short`: 1,000 rows and three micro-batches.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from streamsql.config.folders import cache_folder
from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

SETUP = """
SET spark.sql.shuffle.partitions = 4;
CREATE STREAM s (k BIGINT, v BIGINT) USING parquet OPTIONS (path '{folder}/in', maxFilesPerTrigger '1');
CREATE LIVE TABLE counts AS SELECT k, count(*) AS c FROM s GROUP BY k;
CREATE LIVE TABLE average AS SELECT avg(c) AS a FROM counts;
CREATE SINK log USING memory KEY (k);
AWAIT QUERY ALL IDLE;
INSERT INTO log FROM NOW SELECT k, c FROM counts;
"""
ROUNDS = 3 if "--short" in sys.argv else 12


def measured(session: Session, place: Path, rows: int) -> dict[str, float]:
    folder = place / str(rows)
    (folder / "in").mkdir(parents=True)
    write(session, folder, "first", 0, rows)
    run(session, SETUP.format(folder=folder) + "AWAIT QUERY ALL IDLE;")
    queries = session.parts.queries.all
    taken: dict[str, list[float]] = {"micro-batch": [], "refresh": [], "changes": []}
    for number in range(ROUNDS):
        write(session, folder, f"more{number}", number * 100 % rows, 100)
        run(session, "AWAIT QUERY ALL IDLE;")
        batches = [r for r in queries["counts"].progress(5) if r["numInputRows"]]
        taken["micro-batch"].append(batches[-1]["durationMs"]["triggerExecution"])
        taken["refresh"].append(queries["average"].handle.milliseconds)
        taken["changes"].append(queries["log"].handle.milliseconds)
    assert session.parts.live["counts"].table.num_rows == rows
    assert session.parts.live["log"].table.num_rows == 2 * 100 * ROUNDS
    run(
        session,
        "DROP QUERY log; DROP SINK log; DROP LIVE TABLE average; DROP LIVE TABLE counts; DROP STREAM s;",
    )
    return {name: statistics.median(values[2:]) for name, values in taken.items()}


def write(session: Session, folder: Path, name: str, first: int, rows: int) -> None:
    """One file of the stream, whole from the moment that it is there."""
    frame: Any = session.spark.range(first, first + rows).selectExpr("id AS k", "id AS v").coalesce(1)
    frame.write.parquet(str(folder / name))
    next((folder / name).glob("*.parquet")).rename(folder / "in" / f"{name}.parquet")


def run(session: Session, script: str) -> None:
    for written in split_script(Source("benchmark", script)):
        session.execute(parse(written))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        session = Session(Config(Settings.make("local[*]", {}), place / "w", place / "log", cache_folder()))
        for rows in (1_000,) if "--short" in sys.argv else (1_000, 100_000, 1_000_000):
            medians = measured(session, place, rows)
            print(f"{rows:>9,} rows:", ", ".join(f"{n} {v:.0f} ms" for n, v in medians.items()), flush=True)
        session.close()


if __name__ == "__main__":
    main()
