"""BACKFILL: history before a moment from a static query, the rows from that moment on from the stream."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_reopened import Open, opened  # noqa: F401  the fixture

from streamsql.errors import StreamsqlError

STREAM = "CREATE STREAM s (k STRING, ts TIMESTAMP, n INT) USING values WITH WATERMARK ts DELAY '10 minutes';"
IDLE = "AWAIT QUERY ALL IDLE;"
HISTORY = "SELECT * FROM VALUES {} AS h (k, ts, n)"
ROWS = (
    "('a', TIMESTAMP '2026-01-01 00:10:00', 1), ('b', TIMESTAMP '2026-01-01 01:00:00', 9), "
    "('a', TIMESTAMP '2026-01-01 02:00:00', 100), ('c', CAST(NULL AS TIMESTAMP), 5)"
)
UNTIL = "UNTIL TIMESTAMP '2026-01-01 02:00:00'"
CLAUSE = f"BACKFILL FROM ({HISTORY.format(ROWS)}) {UNTIL}"
BY_KEY = f"CREATE LIVE TABLE t {CLAUSE} AS SELECT k, sum(n) AS total FROM s GROUP BY k;"
FIRST = (
    "INSERT INTO s VALUES ('a', TIMESTAMP '2026-01-01 00:10:00', 1), ('a', TIMESTAMP '2026-01-01 02:00:00', 2),"
    " ('b', TIMESTAMP '2026-01-01 03:10:00', 3), ('z', NULL, 7);"
)
MORE = "INSERT INTO s VALUES ('b', TIMESTAMP '2026-01-01 03:20:00', 4);"


TABLE = pa.table(
    {
        "k": ["a", "b", "c"],
        "ts": pa.array([datetime(2026, 1, 1), datetime(2026, 1, 1, 1), None], pa.timestamp("us", tz="UTC")),
        "n": pa.array([1, 9, 5], pa.int32()),
    }
)


def refusal(console: Any, text: str) -> StreamsqlError:
    with pytest.raises(StreamsqlError) as raised:
        console.run(text)
    return raised.value


def test_each_row_once_through_restarts(opened: Open) -> None:
    console = opened()
    console.run(STREAM + FIRST + BY_KEY + IDLE)
    rows = [("a", 3), ("b", 12), ("c", 5)]
    assert sorted(console.rows("SELECT * FROM t;")) == rows
    console.run("VERIFY LIVE TABLE t;" + MORE + IDLE)
    rows[1] = ("b", 16)
    assert sorted(console.rows("SELECT * FROM t;")) == rows
    console.run("VERIFY LIVE TABLE t; STOP QUERY t; START QUERY t;" + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == rows
    written = console.run("SHOW CREATE LIVE TABLE t;")[-1]
    console = opened()
    assert console.run("SHOW CREATE LIVE TABLE t;")[-1] == written
    assert "BACKFILL s FROM (" in str(written) and "history" not in str(written)
    assert [row[0] for row in console.rows("SHOW STREAMS;")] == ["s"]
    console.run("START QUERY t;" + MORE + IDLE + "VERIFY LIVE TABLE t;")
    rows[1] = ("b", 20)
    assert sorted(console.rows("SELECT * FROM t;")) == rows
    console.run("STOP QUERY t; START QUERY t FROM BEGINNING;" + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == rows


def test_the_table_changes_afterwards(opened: Open, tmp_path: Path) -> None:
    folder = tmp_path / "history"
    console = opened()
    console.run(STREAM)
    folder.mkdir()
    pq.write_table(TABLE, folder / "1.parquet")
    clause = f"BACKFILL s FROM (SELECT * FROM parquet.`{folder}`) {UNTIL}"
    table = f"LIVE TABLE t {clause} AS SELECT k, sum(n) AS total FROM s GROUP BY k;"
    console.run("CREATE " + table + IDLE)
    pq.write_table(TABLE, folder / "2.parquet")
    before = [("a", 1), ("b", 9), ("c", 5)]
    console.run("STOP QUERY t; START QUERY t FROM BEGINNING;" + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == before
    console.run("CREATE OR REPLACE " + table + IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) == before, "the same BACKFILL is not read again"
    console.run("DROP LIVE TABLE t; CREATE " + table + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 2), ("b", 18), ("c", 10)]


def test_windows_of_history_close(opened: Open) -> None:
    console = opened()
    select = "SELECT hour(window.start) AS h, sum(n) AS n FROM s GROUP BY window(ts, '1 hour')"
    console.run(STREAM + FIRST + f"CREATE LIVE TABLE t OUTPUT MODE APPEND AS {select}; DROP LIVE TABLE t;")
    console.run(f"CREATE LIVE TABLE t {CLAUSE} OUTPUT MODE APPEND AS {select};" + IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) == [(0, 1), (1, 9), (2, 2)]


def test_a_query_in_stages(opened: Open) -> None:
    console = opened()
    select = "SELECT max(total) AS m FROM (SELECT k, sum(n) AS total FROM s GROUP BY k)"
    console.run(STREAM + FIRST + f"CREATE LIVE TABLE t {CLAUSE} AS {select};" + IDLE)
    assert console.rows("SELECT * FROM t;") == [(12,)]
    console = opened()
    console.run("START QUERY t;" + MORE + IDLE)
    assert console.rows("SELECT * FROM t;") == [(16,)]


def test_one_of_two_streams(opened: Open) -> None:
    console = opened()
    console.run(STREAM + STREAM.replace("STREAM s", "STREAM u") + FIRST)
    console.run("INSERT INTO u VALUES ('c', TIMESTAMP '2026-01-01 00:00:00', 5);")
    select = "SELECT s.k, s.n FROM s JOIN u ON s.k = u.k"
    fault = refusal(console, f"CREATE LIVE TABLE t {CLAUSE} AS {select};")
    assert fault.hint == "BACKFILL s FROM (…) or BACKFILL u FROM (…)"
    clause = CLAUSE.replace("BACKFILL", "BACKFILL s")
    console.run(f"CREATE LIVE TABLE t {clause} AS {select};" + IDLE + "VERIFY LIVE TABLE t;")
    assert console.rows("SELECT * FROM t;") == [("c", 5)]


@pytest.mark.parametrize(
    ("clause", "code", "word"),
    [
        (f"BACKFILL FROM (SELECT 'a' AS k, 1 AS n) {UNTIL}", "MISSING_COLUMNS", "no column ts"),
        (f"BACKFILL FROM (SELECT 'a' AS k, now() AS ts, '1' AS n) {UNTIL}", "WRONG_TYPE", "string, not int"),
        (
            f"BACKFILL FROM (SELECT 'a' AS k, now() AS ts, 1 AS n, 2 AS x) {UNTIL}",
            "UNKNOWN_COLUMN",
            "has not: x",
        ),
        ("", "BAD_ARGUMENT", "not a timestamp"),
        (f"BACKFILL FROM (SELECT * FROM s) {UNTIL}", "NOT_ON_STREAMS", "reads a stream"),
        (f"BACKFILL u FROM ({HISTORY.format(ROWS)}) {UNTIL}", "UNKNOWN_STREAM", "no stream u"),
        (f"{CLAUSE} FROM NOW", "CLAUSE_CONFLICT", "FROM NOW"),
    ],
)
def test_what_does_not_fit_is_refused(opened: Open, clause: str, code: str, word: str) -> None:
    console = opened()
    console.run(STREAM)
    if code == "BAD_ARGUMENT":
        clause = f"BACKFILL FROM ({HISTORY.format(ROWS)}) UNTIL TIMESTAMP 'noon'"
    fault = refusal(console, f"CREATE LIVE TABLE t {clause} AS SELECT k, n FROM s;")
    assert (fault.code, word in fault.message) == (code, True), fault
    assert fault.span is not None
    assert console.rows("SHOW LIVE TABLES;") == []


def test_a_stream_without_event_time(opened: Open) -> None:
    console = opened()
    console.run("CREATE STREAM s (k STRING, ts TIMESTAMP, n INT) USING values;")
    fault = refusal(console, BY_KEY)
    assert fault.code == "MISSING_WATERMARK" and "WITH WATERMARK" in fault.hint


def test_a_history_that_fails_leaves_nothing(opened: Open) -> None:
    console = opened()
    console.run(STREAM)
    failing = "SELECT k, ts, CAST(raise_error('x') AS INT) AS n FROM VALUES ('a', now()) AS h (k, ts)"
    refusal(console, f"CREATE LIVE TABLE t BACKFILL FROM ({failing}) {UNTIL} AS SELECT k, n FROM s;")
    assert console.rows("SHOW LIVE TABLES;") == []
    console.run(FIRST + BY_KEY + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 3), ("b", 12), ("c", 5)]


def test_it_does_not_start_without_its_history(opened: Open, tmp_path: Path) -> None:
    console = opened()
    console.run(STREAM + FIRST + BY_KEY + IDLE)
    rows = sorted(console.rows("SELECT * FROM t;"))
    console.run("STOP QUERY t;")
    (history,) = tmp_path.rglob("t%24history*")
    shutil.rmtree(history)
    assert refusal(console, "START QUERY t;").code == "ROWS_NOT_READ"
    assert sorted(console.rows("SELECT * FROM t;")) == rows, "they can still be read"
    console.run("DROP LIVE TABLE t;" + BY_KEY + IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) == rows, "as the hint says"


def test_a_generation_keeps_its_history(opened: Open) -> None:
    console = opened()
    console.run(STREAM + FIRST + BY_KEY + IDLE)
    rows = sorted(console.rows("SELECT * FROM t;"))
    console.run(BY_KEY.replace("CREATE", "CREATE OR REPLACE").replace("02:00:00' AS", "00:30:00' AS") + IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) != rows
    console = opened()
    console.run("START QUERY t; ROLLBACK t;" + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == rows
    console.run("STOP QUERY t; START QUERY t FROM BEGINNING;" + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == rows


def test_names_in_its_history_are_kept(opened: Open) -> None:
    console = opened()
    console.run(STREAM + FIRST + BY_KEY + IDLE)
    for statement in ("ALTER STREAM s RENAME TO z;", "ALTER LIVE TABLE t RENAME TO u;"):
        assert refusal(console, statement).code == "RENAME_NOT_SUPPORTED"


def test_a_new_column_is_null_in_the_history(opened: Open) -> None:
    console = opened()
    console.run(STREAM + FIRST + BY_KEY + IDLE + "ALTER STREAM s ADD COLUMN extra STRING;" + IDLE)
    console.run(
        "INSERT INTO s VALUES ('a', TIMESTAMP '2026-01-01 03:00:00', 4, 'x');" + IDLE + "VERIFY LIVE TABLE t;"
    )
    assert ("a", 7) in console.rows("SELECT * FROM t;")


def test_a_staged_change_brings_history_in(opened: Open) -> None:
    """The stream keeps its last hour, say; the live table gets the months before it, without a gap."""
    console = opened()
    console.run(STREAM + FIRST + "CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM s GROUP BY k;" + IDLE)
    of_stream = [("a", 3), ("b", 3), ("z", 7)]
    assert sorted(console.rows("SELECT * FROM t;")) == of_stream
    console.run(BY_KEY.replace("CREATE LIVE TABLE t", "CREATE OR REPLACE LIVE TABLE t STAGED"))
    [compared] = console.run("COMPARE LIVE TABLE t;")
    assert {(row[0], *row[2:]) for row in compared.rows} == {
        ("before", "b", 3),
        ("after", "b", 12),
        ("only after", "c", 5),
        ("only before", "z", 7),
    }
    assert sorted(console.rows("SELECT * FROM t;")) == of_stream
    console = opened()
    console.run("START QUERY t; START QUERY t$staged;" + MORE + "PROMOTE t;" + IDLE + "VERIFY LIVE TABLE t;")
    rows = [("a", 3), ("b", 16), ("c", 5)]
    assert sorted(console.rows("SELECT * FROM t;")) == rows
    console.run("STOP QUERY t; START QUERY t FROM BEGINNING;" + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == rows
    console.run("ROLLBACK t;" + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == rows  # FROM BEGINNING began a generation
    console.run("ROLLBACK t TO GENERATION 1;" + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 3), ("b", 7), ("z", 7)]


def test_a_staged_change_of_the_history(opened: Open) -> None:
    console = opened()
    console.run(STREAM + FIRST + BY_KEY + IDLE)
    other = HISTORY.format("('a', TIMESTAMP '2026-01-01 00:10:00', 50)")
    staged = (
        f"CREATE OR REPLACE LIVE TABLE t STAGED BACKFILL FROM ({other}) {UNTIL} AS SELECT k, sum(n) AS total"
    )
    console.run(
        f"{staged} FROM s GROUP BY k; AWAIT QUERY t$staged IDLE; DROP STAGED t; {staged} FROM s GROUP BY k;"
    )
    console.run("PROMOTE t;" + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 52), ("b", 3)]
    console.run("ROLLBACK t;" + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 3), ("b", 12), ("c", 5)]
