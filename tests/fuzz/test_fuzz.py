"""The short form of run.py: five hundred texts, the same in every run. No Spark."""

from __future__ import annotations

import pytest
from properties import Console
from run import failures

ROOMS = ("streamsql/language/", "streamsql/plan/")


@pytest.mark.parametrize("seed", range(2))
def test_nothing_breaks_the_check(seed: int) -> None:
    found = [f"{problem}\n{ascii(text[:600])}" for problem, text in failures(250, seed)]
    assert not found, f"{len(found)} failures:\n" + "\n".join(found[:10])


def test_sqlglot_writes_nothing_of_its_own(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    Console().problems(
        "CREATE LIVE; DROP LIVETABLE x; CREATE OR; SHOW TABLES; CACHE TABLE x; TRUNCATE TABLE x"
    )
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT date_trunc(",
        "SELECT map( , 1) +'a'1",
        "SELECT 1 AS x FROM a UNION SELECT 2 FROM b|>INTERSECT SELECT 2 FROM c",
        "SELECT " + "(" * 50 + "1" + ")" * 50,
        pytest.param("SELECT " + "NOT " * 3000 + "TRUE", marks=pytest.mark.slow),
        "SELECT x FROM db.events |> LIMIT 3 OFFSET 1 |> ORDER BY  DESC",
        "SELECT " + "-" + " -" * 3000 + "1",
        "SHOW PROGRESS q LAST " + "9" * 5000,
        "CREATE SINK s USING memory RETAIN " + "9" * 5000 + " ROWS",
        "PREVIEW orders LIMIT ²",
        "CREATE STREAM user AS SELECT user FROM clicks",
        "CREATE TABLE clicks AS SELECT 1",
        "SELECT DISTINCT ON user FROM clicks",
        "CREATE OR REPLACE STREAM clicks AS SELECT * FROM vip; SELECT * FROM vip; CREATE STREAM z AS SELECT user FROM vip",
        "SELECT x FROM a WHERE\rx\r=\r(\rGROUP\rBY",
        "EXPLAIN " * 2000 + "SELECT 1",
        "GROUP BY window(,, '5 minutes')ts user",
        "CREATE STREAM s (x AS) WITH WATERMARK ts DELAY OF INTERVAL 1 DAY AS SELECT 1",
        "SELECT percentile_approx(DISTINCT x, y) FILTER (",
        "SELECT * FROM sessionize(TABLE(clicks) PARTITION BY >)",
        "SELECT * FROM sessionize(TABLE(clicks) PARTITION BY user, output_mode => NULL 'update')",
        "SELECT COLUMNS(* EXCLUDE (n))?+1",
        "SELECT DISTINCT a: na?(*) OVER (v: n, , b: {'k': [1]}",
        "SELECT#1" + "9" * 5000,
        "SELECT 1 FROM 'a.csv.gz' (HEADER,, DELIMITER ';')",
        "SELECT (PARTITION BY ,session_window(SELECT, '5 minutes'() FROM JOIN 'a.csv' ( )",
    ],
    ids=lambda text: text[:25],
)
def test_statements_that_broke_it_once(text: str) -> None:
    assert Console().problems(text) == []
