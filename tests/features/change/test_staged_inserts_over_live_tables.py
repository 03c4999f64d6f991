"""A query that writes the changes of live tables into a sink is changed beside it, and put in its place."""

# ruff: noqa: F811  fixtures are arguments of the tests
from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from failing_disk import STEPS, Crash, Disk
from test_change import IDLE, crashing, refusal, said
from test_reopened import Open, opened  # noqa: F401  the fixture
from test_staged_inserts import keyed, table  # noqa: F401  the fixture

ROOMS = ("streamsql/features/change/", "streamsql/runtime/", "streamsql/plan/")

STREAM = "CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3);"
TOTALS = "CREATE LIVE TABLE totals AS SELECT k, sum(n) AS total, max(n) AS most FROM s GROUP BY k;"
OLD = "SELECT k, total FROM totals WHERE total > 1"
NEW = "SELECT upper(k) AS k, total + most AS total FROM totals WHERE k <> 'b'"

Rows = Callable[[], list[tuple[Any, ...]]]


def test_a_keyed_sink_gets_the_difference(opened: Open, table: Rows, tmp_path: Path) -> None:
    console = opened()
    console.run(STREAM + TOTALS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    assert table() == [("a", 4), ("b", 2)]
    console.run(f"INSERT INTO out STAGED AS QUERY q {NEW};" + IDLE)
    assert [row[:3] for row in console.rows("SHOW STAGED;")] == [("q", "query", "running")]
    compared = console.run("COMPARE QUERY q;")[-1]
    assert notes_of(compared) == ("2 rows before, 1 after: 2 only before, 1 only after",)
    console.run("INSERT INTO s VALUES ('c', 5), ('b', -9);" + IDLE)
    assert table() == [("a", 4), ("c", 5)], "the query in use goes on"
    assert said(console, "PROMOTE q;").startswith("q is promoted: generation 2 is in use; ROLLBACK q;")
    console.run(IDLE)
    assert table() == sorted(console.rows(f"{NEW};")) == [("A", 7), ("C", 10)]
    assert console.rows("SHOW STAGED;") == []
    console.run("INSERT INTO s VALUES ('c', 1), ('d', 1);" + IDLE)
    assert table() == sorted(console.rows(f"{NEW};"))
    again = opened()
    assert again.warnings == [] and again.notes == []
    again.run("START QUERY ALL; INSERT INTO s VALUES ('a', 2);" + IDLE)
    assert table() == sorted(again.rows(f"{NEW};"))
    again.run("ROLLBACK q;" + IDLE)
    assert table() == sorted(again.rows(f"{OLD};"))
    again.run("INSERT INTO s VALUES ('a', 2);" + IDLE)
    assert table() == sorted(again.rows(f"{OLD};"))
    again.run("ROLLBACK q;" + IDLE)
    assert table() == sorted(again.rows(f"{NEW};"))


SELECTS = {
    "jdbc": [
        OLD,
        NEW,
        "SELECT k, CAST(total AS SMALLINT) AS total FROM totals WHERE total % 2 = 0",
        "SELECT k, sum(total) AS total FROM (SELECT left(k, 1) AS k, total FROM totals) GROUP BY k",
        "SELECT t.k, rank() OVER (ORDER BY t.total) AS total FROM totals t",
        "SELECT a.k, a.most AS total FROM totals a LEFT ANTI JOIN totals b ON b.total = a.total + 1",
    ],
    "stages": [
        "SELECT k, CAST(rank() OVER (ORDER BY v) AS BIGINT) AS total FROM (SELECT k, sum(n) AS v FROM s GROUP BY k)",
        "SELECT 'x' AS k, max(v) AS total FROM (SELECT k, sum(n) AS v FROM s GROUP BY k)",
        "SELECT upper(k) AS k, v AS total FROM (SELECT k, sum(n) AS v FROM s GROUP BY k)"
        " WHERE v > (SELECT avg(n) FROM s)",
        "SELECT a.k, a.v * 10 AS total FROM (SELECT k, sum(n) AS v FROM s GROUP BY k) a"
        " LEFT ANTI JOIN (SELECT k, max(n) AS m FROM s GROUP BY k) b ON a.v = b.m",
    ],
    "json": [
        OLD,
        "SELECT k, total, most FROM totals WHERE total > most",
        "SELECT most FROM totals",
        "SELECT k, total % 3 AS total, 'x' AS txt FROM totals",
        "SELECT most, count(*) AS total FROM totals GROUP BY most",
    ],
}


class Replay:
    """The rows of a result, by the changes that a folder of files has so far. columns: those of the result;
    rows that were there before have them, too, from then on.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen = set[Path]()
        self.rows: list[dict[str, Any]] = []

    def now(self, columns: list[str]) -> Counter[tuple[Any, ...]]:
        def values(row: dict[str, Any]) -> tuple[Any, ...]:
            return tuple(row.get(column) for column in columns)

        self.rows = [dict(zip(columns, values(row), strict=True)) for row in self.rows]
        for file in sorted(self.folder.rglob("*.json"), key=lambda file: file.stat().st_mtime_ns):
            for line in () if file in self.seen else file.read_text().splitlines():
                change = json.loads(line)
                if change["_op"].startswith("-"):
                    self.rows.remove(next(row for row in self.rows if values(row) == values(change)))
                else:
                    self.rows.append(change)
            self.seen.add(file)
        return Counter(map(values, self.rows))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["jdbc", "stages"])
def test_whatever_is_changed_the_table_has_the_rows_of_the_select(
    opened: Open, table: Rows, tmp_path: Path, kind: str, seed: int
) -> None:
    """Rows come, groups grow, shrink and fall out; changes are promoted, rolled back, dropped, and consoles
    opened again.
    """
    rng, console, done = random.Random(seed), opened(), list[str]()
    now, before, inserted = SELECTS[kind][0], "", ["('a', 1)", "('b', 2)", "('a', 3)"]
    console.run(STREAM + TOTALS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {now};" + IDLE)

    def batch(select: str) -> list[tuple[str, ...]]:
        """What Spark gives for it over the rows that were inserted."""
        rows = f"(SELECT * FROM VALUES {', '.join(inserted)} AS v(k, n))"
        of_totals = TOTALS.partition(" AS ")[2].replace("FROM s", f"FROM {rows}").strip(";")
        select = select.replace("FROM s", f"FROM {rows} s").replace("FROM totals", f"FROM ({of_totals})")
        select = select.replace("JOIN totals", f"JOIN ({of_totals})")
        return sorted(tuple(map(str, row)) for row in console.rows(f"{select};"))

    for _ in range(14):
        way = rng.choice(("rows", "rows", "stage", "stage", "back", "open", "stop"))
        done.append(way)
        if way == "rows":
            rows = [f"('{rng.choice(('a', 'b', 'ab', 'c'))}', {rng.randint(-5, 9)})" for _ in range(4)]
            console.run(f"INSERT INTO s VALUES {', '.join(rows)};")
            inserted += rows
        elif way == "stage":
            new = rng.choice(SELECTS[kind])
            console.run(f"START QUERY ALL; INSERT INTO out STAGED AS QUERY q {new};" + IDLE)
            shown = console.rows("SELECT * FROM `q$before$staged`;")
            assert sorted(tuple(map(str, row)) for row in shown) == batch(now)
            if rng.random() < 0.2:
                console.run("DROP STAGED q;")
            else:
                console.run("PROMOTE q;")
                now, before = new, now
        elif way == "back" and before:
            console.run("ROLLBACK q;")
            now, before = before, now
        elif way == "open":
            console = opened()
            assert console.warnings == []
        elif way == "stop":
            console.run("STOP QUERY q;")
            continue
        console.run("START QUERY ALL; START QUERY q;" + IDLE)
        assert sorted(tuple(map(str, row)) for row in table()) == batch(now), (done, now)


@pytest.mark.slow
def test_changes_of_a_result_go_on_with_other_columns(opened: Open, tmp_path: Path) -> None:
    """A folder of files with the changes: what is replayed of them is the result, before and after."""
    console = opened()
    console.run(STREAM + TOTALS + f"CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');")
    console.run(f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    replay = Replay(tmp_path / "out")
    assert replay.now(["k", "total"]) == Counter(console.rows(f"{OLD};"))
    for select in (*SELECTS["json"], OLD):
        console.run(f"INSERT INTO out STAGED AS QUERY q {select};" + IDLE + "PROMOTE q;" + IDLE)
        columns = [row[0] for row in console.rows(f"DESCRIBE {select};")]
        assert replay.now(columns) == Counter(console.rows(f"{select};"))
        console.run("INSERT INTO s VALUES ('a', 2), ('b', -1), ('c', 3);" + IDLE)
        assert replay.now(columns) == Counter(console.rows(f"{select};"))
    console.run("INSERT INTO out STAGED AS QUERY q SELECT k, k AS total FROM totals;" + IDLE)
    fault = refusal(console, "PROMOTE q;")
    assert (fault.code, "do not fit the column total" in fault.message) == ("WRONG_TYPE", True)
    console.run("INSERT INTO s VALUES ('a', 2);" + IDLE)
    assert replay.now(["k", "total"]) == Counter(console.rows(f"{OLD};")), "it goes on"


def test_a_live_table_and_what_reads_it_are_promoted_together(
    opened: Open, table: Rows, tmp_path: Path
) -> None:
    console = opened()
    console.run(STREAM + TOTALS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    changed = TOTALS.replace("CREATE LIVE TABLE totals", "CREATE OR REPLACE LIVE TABLE totals STAGED")
    console.run(changed.replace("FROM s", "FROM s WHERE k <> 'a'").replace("AS most", "AS top"))
    console.run("INSERT INTO out STAGED AS QUERY q SELECT k, top AS total FROM totals;" + IDLE)
    assert refusal(console, "PROMOTE totals;").hint == "PROMOTE totals, q; puts them in use together"
    assert refusal(console, "PROMOTE q;").hint == "PROMOTE q, totals; puts them in use together"
    said(console, "PROMOTE totals, q;")
    console.run(IDLE)
    assert table() == [("b", 2)]
    console.run("ROLLBACK totals, q;" + IDLE)
    assert table() == [("a", 4), ("b", 2)]


def test_what_is_refused(opened: Open, table: Rows, tmp_path: Path) -> None:
    console = opened()
    console.run(STREAM + TOTALS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    cases = {
        f"INSERT INTO out STAGED AS QUERY q FROM NOW {NEW};": "CLAUSE_CONFLICT",
        "INSERT INTO out STAGED AS QUERY q SELECT k, n AS total FROM s;": "NOT_STAGEABLE",
    }
    assert {text: refusal(console, text).code for text in cases} == cases
    console.run("INSERT INTO out STAGED AS QUERY q SELECT 'x' AS k, total FROM totals;" + IDLE)
    fault = refusal(console, "PROMOTE q;")
    assert (fault.code, fault.detail) == ("ROWS_TWICE", "k x")
    console.run(f"INSERT INTO out STAGED AS QUERY q {NEW};" + IDLE)
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute(
            "CREATE TRIGGER guard BEFORE INSERT ON t WHEN new.k = 'c' BEGIN SELECT RAISE(ABORT, 'not now'); END"
        )
    console.run("INSERT INTO s VALUES ('c', 7); AWAIT QUERY totals IDLE; AWAIT QUERY q$staged IDLE;")
    assert "not now" in refusal(console, "AWAIT QUERY q IDLE;").message
    fault = refusal(console, "PROMOTE q;")
    assert (fault.code, fault.hint) == ("QUERY_NOT_RUNNING", "START QUERY q; writes them")
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("DROP TRIGGER guard")
    console.run("START QUERY q;" + IDLE + "PROMOTE q;" + IDLE)
    assert table() == sorted(console.rows(f"{NEW};"))


class DiskOfHandOver(Disk):
    """Fails at a step from when the record of what was written is handed over."""

    begun = False

    def __getattr__(self, name: str) -> Any:
        step, real = super().__getattr__(name), getattr(os, name)
        if name not in STEPS or self.begun:
            return step

        def until_it_begins(*arguments: Any) -> Any:
            self.begun = self.begun or "/written" in str(arguments[0])
            return (step if self.begun else real)(*arguments)

        return until_it_begins


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["jdbc", "stages"])
@pytest.mark.parametrize("statement", ["PROMOTE q;", "ROLLBACK q;"])
def test_a_crash_leaves_one_or_the_other_and_the_sink_follows(
    opened: Open, table: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, kind: str
) -> None:
    console = opened()
    before, after = (SELECTS[kind][0], next(select for select in SELECTS[kind] if "upper" in select))
    console.run(STREAM + TOTALS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {before};" + IDLE)
    console.run(f"INSERT INTO out STAGED AS QUERY q {after};" + IDLE)
    if statement == "ROLLBACK q;":
        console.run("PROMOTE q; INSERT INTO s VALUES ('e', 5);" + IDLE)
    console.session.close()
    shutil.copy(tmp_path / "x.db", tmp_path / "made.db")
    outcomes = []
    for console in crashing(
        tmp_path,
        opened,
        monkeypatch,
        statement,
        disk_at=lambda at: DiskOfHandOver(at, Crash),
        by=4 if kind == "jdbc" else 8,
    ):
        assert console.warnings == []
        (in_use,) = (row[-1] for row in console.rows("SHOW GENERATIONS OF q;") if row[2] == "in use")
        new = "upper" in in_use
        console.run("START QUERY ALL;" + IDLE)
        assert table() == sorted(console.rows(f"{after if new else before};"))
        console.run("INSERT INTO s VALUES ('a', 10), ('b', -9), ('d', 3);" + IDLE)
        assert table() == sorted(console.rows(f"{after if new else before};"))
        outcomes.append(new == (statement == "PROMOTE q;"))
        shutil.copy(tmp_path / "made.db", tmp_path / "x.db")
    assert set(outcomes) == {False, True}


def test_end_change_stages_an_insert_anew_behind_the_live_table_that_it_reads(
    console: Console, tmp_path: Path
) -> None:
    """It was staged before END CHANGE staged the live table, which reads a changed view."""
    console.run(
        f"""CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('a', 2), ('b', 3);
        CREATE TEMPORARY VIEW big AS SELECT k, n FROM s WHERE n > 1;
        CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM big GROUP BY k;
        CREATE SINK o USING json OPTIONS (path '{tmp_path}/out');
        INSERT INTO o AS QUERY q SELECT k, total FROM t;"""
        + IDLE
        + """BEGIN CHANGE c;
        INSERT INTO o AS QUERY q SELECT k, total * 10 AS total FROM t;
        CREATE OR REPLACE TEMPORARY VIEW big AS SELECT k, n FROM s WHERE n > 2;
        END CHANGE;"""
        + IDLE
    )
    assert {row[0]: row[-1] for row in console.rows("SHOW STAGED;")} == dict.fromkeys(("t", "q", "big"), "c")
    compared = {row[0]: row[1:] for row in console.rows("COMPARE CHANGE c;")}
    assert compared == {"t": (2, 1, 1, 0, 0), "q": (2, 1, 1, 0, 1)}
    console.run("PROMOTE CHANGE c;" + IDLE)
    assert console.rows("SELECT * FROM t;") == [("b", 3)]
    written: dict[tuple[str, int], int] = {}
    for file in (tmp_path / "out").rglob("*.json"):
        for row in map(json.loads, file.read_text().splitlines()):
            key = (row["k"], row["total"])
            written[key] = written.get(key, 0) + (-1 if row["_op"].startswith("-") else 1)
    assert {key for key, number in written.items() if number} == {("b", 30)}
