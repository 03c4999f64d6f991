"""A micro-batch that Spark hands over again: the sink has it, and what the query remembers is kept all the same."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from conftest import Console

LIVE = "CREATE LIVE TABLE q AS SELECT n % 4 AS k, count(*) AS c FROM s GROUP BY k;"
TABLE = (
    "CREATE SINK q USING jdbc KEY (k) OPTIONS (url 'jdbc:sqlite:{folder}/t.db', table 'q');"
    "INSERT INTO q SELECT n % 4 AS k, count(*) AS c FROM s GROUP BY k;"
)


@pytest.mark.parametrize("made", [LIVE, TABLE], ids=["live table", "jdbc"])
def test_a_repeated_micro_batch_changes_nothing_and_the_query_goes_on(
    console: Console, tmp_path: Path, made: str
) -> None:
    console.run(
        "SET spark.sql.shuffle.partitions = 2; CREATE STREAM s (n INT) USING values;"
        + made.format(folder=tmp_path)
    )
    console.run("INSERT INTO s VALUES (1), (2), (3), (4); AWAIT QUERY q IDLE;")
    console.run("INSERT INTO s VALUES (1), (2), (3), (4); AWAIT QUERY q IDLE; STOP QUERY q;")
    # As a crash between the sink and the checkpoint's last word leaves it.
    commits = Path(console.session.parts.places.checkpoint("q")) / "commits"
    last = max(int(f.name) for f in commits.iterdir() if f.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink()
    console.run("START QUERY q; AWAIT QUERY q IDLE; INSERT INTO s VALUES (1); AWAIT QUERY q IDLE;")
    if made is LIVE:
        rows = console.rows("SELECT k, c FROM q;")
    else:
        with sqlite3.connect(tmp_path / "t.db") as connection:
            rows = connection.execute("SELECT k, c FROM q").fetchall()
    assert sorted(rows) == [(0, 2), (1, 3), (2, 2), (3, 2)]


def test_the_console_sink_shows_some_rows_of_many_groups(console: Console) -> None:
    console.run(
        "SET spark.sql.shuffle.partitions = 2; CREATE STREAM s (n INT) USING values; CREATE SINK c USING console;"
        "INSERT INTO c OUTPUT MODE UPDATE SELECT n, count(*) AS k FROM s GROUP BY n;"
    )
    for _ in range(2):
        values = ", ".join(f"({n})" for n in range(100))
        console.run(f"INSERT INTO s VALUES {values}; AWAIT QUERY c IDLE;")
