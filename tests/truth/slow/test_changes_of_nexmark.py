"""Queries of Nexmark, changed in the ways in which people change queries: each change is staged beside the live
table while rows come, compared, promoted and rolled back. After each step the rows of both are those of Spark's
batch over all rows up to then, and COMPARE counts what differs between the two batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_reopened import Open, opened  # noqa: F401  the fixture
from truth.nexmark import TABLES, columns, expected, feed, live_tables

from streamsql.results import Rows

ROOMS = ("streamsql/features/change/", "streamsql/plan/", "streamsql/runtime/", "tests/truth/")

CHANGES: dict[str, tuple[str, Callable[[str], str]]] = {
    "another filter": ("q2", lambda q: q.replace("IN (1007, 1020, 2001, 2019, 2087)", "% 3 = 0")),
    "one more column": ("q1", lambda q: q.replace("date_time FROM", "date_time, channel FROM")),
    "one column less": ("q3", lambda q: q.replace("p.name, ", "")),
    "a longer window": ("q11", lambda q: q.replace("'10 seconds'", "'20 seconds'")),
    "windows that slide": ("q8", lambda q: q.replace("'10 seconds'", "'20 seconds', '10 seconds'")),
    "another key": ("q17", lambda q: q.replace("auction, date", "bidder, date").replace("SELECT auction", "SELECT bidder")),
    "a join added": ("q19", lambda q: f"SELECT t.*, p.name FROM ({q}) t LEFT JOIN person p ON t.bidder = p.id"),
    "a type widened": ("q18", lambda q: q.replace("bidder, price,", "bidder, CAST(price AS DECIMAL(30, 2)) AS price,")),
    "another aggregate": ("q4", lambda q: q.replace("max(b.price)", "min(b.price)")),
    "another order": ("q18", lambda q: q.replace("date_time DESC, extra", "date_time, extra")),
    "a UNION": ("q20", lambda q: f"{q} UNION ALL {q.replace('a.category = 10', 'a.category = 11')}"),
    "another window of the same rows": ("q5", lambda q: q.replace("'10 seconds', '2 seconds'", "'10 seconds', '5 seconds'")),
}  # fmt: skip


def differing(before: list[str], after: list[str]) -> int:
    """The rows that are only in one of two results."""
    old, new = Counter(before), Counter(after)
    return (old - new).total() + (new - old).total()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_query_is_staged_compared_promoted_and_rolled_back(
    opened: Open,  # noqa: F811
    spark: Any,
    tmp_path: Path,
    change: str,
) -> None:
    name, changed = CHANGES[change]
    before = live_tables()[name]
    after = changed(before)
    assert after != before
    console = opened()
    for table in TABLES:
        (tmp_path / table).mkdir()
        console.run(
            f"CREATE STREAM {table} ({columns(table)}) USING json OPTIONS (path '{tmp_path}/{table}');"
        )
    feed(tmp_path, 0)
    console.run(f"CREATE LIVE TABLE t AS {before}; AWAIT QUERY ALL IDLE;")

    def rows(table: str) -> list[str]:
        return sorted(map(repr, console.rows(f"SELECT * FROM {table};")))

    console.run(f"CREATE OR REPLACE LIVE TABLE t STAGED AS {after};")
    feed(tmp_path, 1)
    console.run("AWAIT QUERY ALL IDLE;")
    batches = [expected(spark, tmp_path, query) for query in (before, after)]
    assert [rows("t"), rows("t$staged")] == batches
    compared = console.run("COMPARE LIVE TABLE t LIMIT 100000;")[-1]
    assert isinstance(compared, Rows)
    common = ", ".join(compared.columns[2:])
    if change == "a type widened":
        assert list(compared.rows) == [], "the values are the same"
    else:
        batches_of_common = [
            expected(spark, tmp_path, f"SELECT {common} FROM ({query})") for query in (before, after)
        ]
        assert len(list(compared.rows)) == differing(*batches_of_common)
    console.run("PROMOTE t; AWAIT QUERY ALL IDLE;")
    assert rows("t") == batches[1]
    feed(tmp_path, 2)
    console.run("AWAIT QUERY ALL IDLE;")
    assert rows("t") == expected(spark, tmp_path, after)
    console.run("ROLLBACK t; AWAIT QUERY ALL IDLE;")
    assert rows("t") == expected(spark, tmp_path, before), "caught up from its own checkpoint"
