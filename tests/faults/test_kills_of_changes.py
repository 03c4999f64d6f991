"""PROMOTE and ROLLBACK are killed (SIGKILL) between two of their system calls that write. The next console has the
one or the other live table, whole: its definition, its rows, its checkpoint. Of a query into a table of a database,
it has the one or the other query, and the table has its rows.

Two kills of each are a part of the suite; one before each system call with
`STREAMSQL_CHANGE_KILLS=all python -m pytest tests/faults/test_kills_of_changes.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripts import command

ROOMS = ("streamsql/features/change/", "streamsql/runtime/workspace/", "streamsql/runtime/embedded/")

DYING = """
import os

at, count, names = int(os.environ["KILLED_AT"]), -1, ("replace", "fsync", "symlink", "unlink", "mkdir", "open")


def counted(name):
    real = getattr(os, name)

    def step(*arguments, **named):
        global count
        path = arguments[0]
        if name in ("open", "mkdir") and count < 0 and os.environ["KILLED_FROM"] in str(path):
            count = 0
        if count >= 0 and (name != "open" or arguments[1] & (os.O_CREAT | os.O_WRONLY)):
            count += 1
            if count == at:
                os.kill(os.getpid(), 9)
        return real(*arguments, **named)

    return step


for name in names:
    setattr(os, name, counted(name))
"""
BEFORE, AFTER = {"a": 4, "b": 2}, {"a": 3, "b": 2}
STREAM = "CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3);"
TABLE = "CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM s GROUP BY k; AWAIT QUERY ALL IDLE;"
STAGED = "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT k, sum(n) AS total FROM s WHERE n > 1 GROUP BY k;"
VIEW = "CREATE TEMPORARY VIEW v AS SELECT 0 AS least;"
TABLE_OVER_VIEW = "CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM s JOIN v ON n > v.least GROUP BY k; AWAIT QUERY ALL IDLE;"
STAGED_VIEW = "CREATE OR REPLACE TEMPORARY VIEW v STAGED AS SELECT 1 AS least;"
CHANGES = {"t": (TABLE, STAGED, "WHERE n > 1"), "v": (TABLE_OVER_VIEW, STAGED_VIEW, '"least":1')}
"""What is created, how it is changed, and what the next console shows where the change is in use."""
GO_ON = """
SELECT k AS before, total FROM t; SHOW CREATE LIVE TABLE t; START QUERY ALL; AWAIT QUERY ALL IDLE; VERIFY LIVE TABLE t;
INSERT INTO s VALUES ('a', 10), ('c', 1); AWAIT QUERY ALL IDLE; VERIFY LIVE TABLE t; SELECT k AS later, total FROM t; SELECT least FROM v;
"""
MOST = 60
"""More system calls than either makes."""


def run(
    folder: Path, script: str, killed_at: int = 0, killed_from: str = "exchange.json.part"
) -> subprocess.CompletedProcess[str]:
    env = dict(os.environ)
    if killed_at:
        (folder / "sitecustomize.py").write_text(DYING)
        path = os.pathsep.join([str(folder), env.get("PYTHONPATH", "")])
        env |= {"PYTHONPATH": path, "KILLED_AT": str(killed_at), "KILLED_FROM": killed_from}
    line = command("-w", "w", "--format", "jsonl", "-e", script, cold=True)
    return subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, timeout=180)


def totals(out: str, column: str) -> dict[str, Any]:
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return {row[column]: row["total"] for row in rows if column in row}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("statement", ["PROMOTE", "ROLLBACK"])
def test_a_kill_leaves_one_or_the_other_whole(tmp_path: Path, statement: str, name: str) -> None:
    back, (created, staged, changed) = statement == "ROLLBACK", CHANGES[name]
    staged += "AWAIT QUERY ALL IDLE;" + (f"PROMOTE {name};" if back else "")
    done = run(tmp_path, STREAM + VIEW + created + staged)
    assert done.returncode == 0, done.stderr
    shutil.copytree(tmp_path / "w", tmp_path / "made", symlinks=True)
    every = os.environ.get("STREAMSQL_CHANGE_KILLS") == "all"
    outcomes = []
    for at in range(1, MOST) if every else (3, 9):
        shutil.rmtree(tmp_path / "w")
        shutil.copytree(tmp_path / "made", tmp_path / "w", symlinks=True)
        killed = run(tmp_path, f"START QUERY ALL; AWAIT QUERY ALL IDLE; {statement} {name};", at)
        if killed.returncode == 0:
            assert every, "it makes fewer system calls than this test thinks"
            break
        assert killed.returncode == -9, killed.stderr
        again = run(tmp_path, GO_ON)
        assert again.returncode == 0, (at, again.stderr)
        for word in ("warning", "error"):
            assert word not in again.stderr, (at, again.stderr)
        promoted = changed in again.stdout.replace('": ', '":')
        assert totals(again.stdout, "before") == (AFTER if promoted else BEFORE), at
        later = {"a": 13, "b": 2} if promoted else {"a": 14, "b": 2, "c": 1}
        assert totals(again.stdout, "later") == later, at
        outcomes.append(promoted != back)
    assert not every or set(outcomes) == {False, True}


SINK = "CREATE SINK out USING jdbc KEY (k) OPTIONS (url 'jdbc:sqlite:x.db', table 't');"
QUERY = "INSERT INTO out AS QUERY q SELECT k, sum(n) AS total FROM s GROUP BY k; AWAIT QUERY ALL IDLE;"
STAGED_QUERY = (
    "INSERT INTO out STAGED AS QUERY q SELECT k, sum(n) AS total FROM s WHERE n > 1 AND k <> 'b' GROUP BY k;"
)
GO_ON_WRITING = """
SHOW GENERATIONS OF q; START QUERY ALL; AWAIT QUERY ALL IDLE;
INSERT INTO s VALUES ('a', 10), ('c', 1); AWAIT QUERY ALL IDLE; STOP QUERY ALL;
"""


@pytest.mark.timeout(3600)
def test_a_kill_leaves_the_table_of_one_query_or_the_other(
    tmp_path: Path, packages: Callable[[str], None]
) -> None:
    packages("sqlite")
    made = run(tmp_path, STREAM + SINK + QUERY + STAGED_QUERY + "AWAIT QUERY ALL IDLE; STOP QUERY ALL;")
    assert made.returncode == 0, made.stderr
    shutil.copytree(tmp_path / "w", tmp_path / "made", symlinks=True)
    shutil.copy(tmp_path / "x.db", tmp_path / "made.db")
    every = os.environ.get("STREAMSQL_CHANGE_KILLS") == "all"
    outcomes = []
    for at in range(1, MOST) if every else (3, 14):
        shutil.rmtree(tmp_path / "w")
        shutil.copytree(tmp_path / "made", tmp_path / "w", symlinks=True)
        shutil.copy(tmp_path / "made.db", tmp_path / "x.db")
        again = "START QUERY ALL; AWAIT QUERY ALL IDLE;"
        killed = run(tmp_path, again + "PROMOTE q; STOP QUERY ALL;", at)
        if killed.returncode == 0:
            assert every, "it makes fewer system calls than this test thinks"
            break
        assert killed.returncode == -9, killed.stderr
        gone_on = run(tmp_path, GO_ON_WRITING)
        assert gone_on.returncode == 0, (at, gone_on.stderr)
        generations = [json.loads(line) for line in gone_on.stdout.splitlines() if '"generation"' in line]
        (in_use,) = (row["definition"] for row in generations if row["status"] == "in use")
        promoted = "n > 1" in in_use
        with sqlite3.connect(tmp_path / "x.db") as connection:
            rows = dict(connection.execute("SELECT k, total FROM t").fetchall())
        assert rows == ({"a": 13} if promoted else {"a": 14, "b": 2, "c": 1}), at
        outcomes.append(promoted)
    assert not every or set(outcomes) == {False, True}


LIVE = "CREATE LIVE TABLE sums AS SELECT k, sum(n) AS total FROM s GROUP BY k;"
OVER_LIVE = "INSERT INTO out AS QUERY q SELECT k, total FROM sums; AWAIT QUERY ALL IDLE;"
STAGED_OVER_LIVE = "INSERT INTO out STAGED AS QUERY q SELECT k, total * 10 AS total FROM sums WHERE k <> 'b';"


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("statement", ["PROMOTE q;", "ROLLBACK q;"])
def test_a_kill_leaves_the_table_of_one_query_over_live_tables_or_the_other(
    tmp_path: Path, packages: Callable[[str], None], statement: str
) -> None:
    """From the system call on with which it begins to hand over what was written."""
    packages("sqlite")
    back = statement == "ROLLBACK q;"
    script = STREAM + SINK + LIVE + OVER_LIVE + STAGED_OVER_LIVE + "AWAIT QUERY ALL IDLE;"
    made = run(tmp_path, script + ("PROMOTE q; AWAIT QUERY ALL IDLE;" if back else "") + "STOP QUERY ALL;")
    assert made.returncode == 0, made.stderr
    shutil.copytree(tmp_path / "w", tmp_path / "made", symlinks=True)
    shutil.copy(tmp_path / "x.db", tmp_path / "made.db")
    every = os.environ.get("STREAMSQL_CHANGE_KILLS") == "all"
    outcomes = []
    for at in range(1, MOST) if every else (5, 20):
        shutil.rmtree(tmp_path / "w")
        shutil.copytree(tmp_path / "made", tmp_path / "w", symlinks=True)
        shutil.copy(tmp_path / "made.db", tmp_path / "x.db")
        again = f"START QUERY ALL; AWAIT QUERY ALL IDLE; {statement} STOP QUERY ALL;"
        killed = run(tmp_path, again, at, "/written")
        if killed.returncode == 0:
            assert every, "it makes fewer system calls than this test thinks"
            break
        assert killed.returncode == -9, killed.stderr
        gone_on = run(tmp_path, GO_ON_WRITING)
        assert gone_on.returncode == 0, (at, gone_on.stderr)
        generations = [json.loads(line) for line in gone_on.stdout.splitlines() if '"generation"' in line]
        (in_use,) = (row["definition"] for row in generations if row["status"] == "in use")
        new = "total * 10" in in_use
        with sqlite3.connect(tmp_path / "x.db") as connection:
            rows = dict(connection.execute("SELECT k, total FROM t").fetchall())
        assert rows == ({"a": 140, "c": 10} if new else {"a": 14, "b": 2, "c": 1}), at
        outcomes.append(new != back)
    assert not every or set(outcomes) == {False, True}
