"""A SELECT over a large live table hands Spark only the rows and columns that it needs: its result is the same."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Console

from streamsql.errors import StreamsqlError
from streamsql.runtime.live import part_of_rows

ROOMS = ("streamsql/runtime/",)

SETUP = """
CREATE STREAM s (k INT, b BIGINT, d DOUBLE, t STRING, c STRING, x STRUCT<k: INT, y: STRING>, at TIMESTAMP) USING values;
CREATE LIVE TABLE live AS SELECT * FROM s;
INSERT INTO s VALUES
  (1, 10, 0.5, 'a', 'A', named_struct('k', 7, 'y', 'u'), '2024-05-01 12:00:00'),
  (2, 20, double('NaN'), 'b', 'b', NULL, NULL), (NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO s VALUES (3, 3000000000, -0.0, 'A', 'a', named_struct('k', 8, 'y', 'v'), '2024-05-02 12:00:00'),
  (-4, -40, 1.5, '5', '', named_struct('k', 9, 'y', 'w'), '2024-05-03 12:00:00'), (2, 21, 2.5, '', 'B', NULL, NULL);
AWAIT QUERY live IDLE;
"""
SELECTS = [
    "SELECT count(*) FROM live",
    "SELECT 1 AS one FROM live",
    "SELECT count(*) AS n, count(k) AS m FROM live WHERE k = 2",
    "SELECT * FROM live WHERE k = 2 AND b > 20",
    "SELECT t, b FROM live WHERE 2 >= k ORDER BY b",
    "SELECT b FROM live WHERE K BETWEEN -4 AND 1 AND d > 0",
    "SELECT b FROM live WHERE b = 3000000000",
    "SELECT b FROM live WHERE k = 3000000000",
    "SELECT b FROM live WHERE t = 'a'",
    "SELECT b FROM live WHERE t <=> '5' OR k = 1",
    "SELECT b FROM live WHERE t > 'A' AND k < 3",
    "SELECT b FROM live WHERE d >= 1",
    "SELECT b FROM live WHERE d = 0",
    "SELECT b FROM live WHERE NOT k = 2",
    "SELECT b FROM live WHERE (k = 2) AND (t = '')",
    "SELECT b FROM live WHERE x.k = 8",
    "SELECT x.y FROM live WHERE live.k >= 1 AND x.k IS NOT NULL",
    "SELECT k, sum(b) AS k2 FROM live WHERE k > 0 GROUP BY k HAVING sum(b) > 20 ORDER BY k",
    "SELECT DISTINCT t FROM live WHERE k = -4",
    "SELECT count(DISTINCT k) AS c FROM live",
    "SELECT to_json(struct(*)) AS j FROM live WHERE k = 1",
    "SELECT max(at) AS m FROM live WHERE at > '2024-05-01'",
    "SELECT k FROM (SELECT k FROM live WHERE k > 1) AS q WHERE k < 3",
    "SELECT a.k FROM live AS a JOIN live AS z ON a.k = z.k WHERE a.k = 2",
    "SELECT k FROM live WHERE k = 1 AND k IN (SELECT k FROM live)",
    "SELECT k FROM live AS l (k, z, d, t, c, x, at) WHERE z = 21",
    "SELECT k FROM live WHERE k = 2 AND 1 / (b - 10) > 0",
    "SELECT k FROM live WHERE 1 / (b - 10) > 0 AND k = 2",
    "SELECT b FROM live WHERE k = '2'",
    "SELECT k FROM live WHERE t = 5",
    "SELECT bb FROM live WHERE k = 2",
    "SELECT k FROM live WHERE b >= 10 LIMIT 2",
    "SELECT row_number() OVER (ORDER BY k) AS r, k FROM live WHERE k >= 1 ORDER BY r",
]


def outcome(console: Console, select: str) -> object:
    try:
        return sorted(map(repr, console.rows(select)))
    except StreamsqlError as error:
        return error.code, error.message, error.hint


@pytest.mark.slow
def test_a_part_of_the_rows_gives_the_result_of_all(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    console.run(SETUP)
    assert len(console.rows("SELECT * FROM live")) == 6
    handed: list[int] = []
    frame = part_of_rows._frame

    def counted(at: Any, table: Any, *rest: Any) -> Any:
        handed.append(table.num_rows)
        return frame(at, table, *rest)

    monkeypatch.setattr(part_of_rows, "_frame", counted)
    for select in SELECTS:
        monkeypatch.setattr(part_of_rows, "FEW", 1_000)
        whole = outcome(console, select)
        monkeypatch.setattr(part_of_rows, "FEW", 0)
        assert (select, outcome(console, select)) == (select, whole)
    assert handed.count(1) + handed.count(2) > 8
