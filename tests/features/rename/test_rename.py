"""A stream, a sink, a live table and a query get another name, and go on with all that they have."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_reopened import Open, opened, said  # noqa: F401  the fixture

ROOMS = ("streamsql/features/rename/", "streamsql/language/", "streamsql/runtime/")

IDLE = "AWAIT QUERY ALL IDLE;"
DEFINED = """
CREATE STREAM files (k STRING, n INT) USING json OPTIONS (path '{0}/in');
CREATE STREAM s AS SELECT k, n FROM files WHERE files.n > 0;
CREATE LIVE TABLE t AS SELECT k, sum(s.n) AS total FROM s GROUP BY k;
CREATE LIVE TABLE reader AS SELECT max(t.total) AS most FROM t;
CREATE SINK out USING json OPTIONS (path '{0}/out');
INSERT INTO out AS QUERY q SELECT k, n FROM s;
CREATE LIVE TABLE ranked AS SELECT k, total, rank() OVER (ORDER BY total) AS r
  FROM (SELECT k, sum(n) AS total FROM s GROUP BY k);
"""


class Files:
    """The files that a stream reads; those that were read are removed, so that nobody can read them again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        folder.mkdir()

    def add(self, k: str, n: int) -> None:
        for file in self.folder.iterdir():
            file.unlink()
        self.number += 1
        (self.folder / f"{self.number}.json").write_text(f'{{"k": "{k}", "n": {n}}}\n')


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "in")


NAMES = {"files": "files", "s": "s", "t": "t", "out": "out", "q": "q", "ranked": "ranked"}
RENAMES = {
    "files": "ALTER STREAM files RENAME TO `the files`;",
    "s": "ALTER STREAM s RENAME TO r;",
    "t": "ALTER LIVE TABLE t RENAME TO u;",
    "out": "ALTER SINK out RENAME TO l;",
    "q": "ALTER QUERY q RENAME TO p;",
    "ranked": "ALTER LIVE TABLE ranked RENAME TO list;",
}


def last_batch(console: Any, query: str) -> int:
    return int(next(row[2] for row in console.rows("SHOW QUERIES;") if row[0] == query))


@pytest.mark.slow
@pytest.mark.parametrize("what", RENAMES)
def test_what_is_renamed_goes_on_with_its_state(
    opened: Open, tmp_path: Path, files: Files, what: str
) -> None:
    files.add("a", 1)
    console = opened()
    console.run(DEFINED.format(tmp_path) + IDLE)
    files.add("a", 2)
    console.run(IDLE)
    answer = said(console, RENAMES[what])
    assert " is named " in answer and "go" in answer
    now = NAMES | {what: RENAMES[what].split(" TO ")[1].strip(";")}

    def answers(total: int, batches: int) -> None:
        console.run(IDLE + f"VERIFY LIVE TABLE {now['t']};" if files.number < 2 else IDLE)
        assert console.rows(f"SELECT * FROM {now['t']};") == [("a", total)]
        assert console.rows("SELECT * FROM reader;") == [(total,)]
        assert console.rows(f"SELECT * FROM {now['ranked']};") == [("a", total, 1)]
        written = console.rows(f"SELECT count(*), sum(n) FROM json.`{tmp_path}/out`;")
        assert written == [(batches, total)]

    answers(3, 2)
    files.add("a", 10)
    answers(13, 3)
    before = {name: console.rows(f"SHOW PROGRESS OF {name};") for name in (now["t"], now["q"])}
    assert all(before.values())
    console = opened()
    assert console.warnings == [] and console.notes == []
    console.run("START QUERY ALL;")
    answers(13, 3)
    files.add("a", 100)
    answers(113, 4)
    console.session.close()
    assert not (tmp_path / "w" / "run" / "rename.json").exists()


@pytest.mark.slow
def test_rows_of_a_stream_of_values_are_read_once(opened: Open) -> None:
    console = opened()
    console.run(
        "CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('b', 2);"
        "CREATE LIVE TABLE t AS SELECT count(*) AS c FROM s; CREATE LIVE TABLE rows AS SELECT s.k FROM s;"
        + IDLE
    )
    console.run("ALTER STREAM s RENAME TO `a r`; INSERT INTO `a r` VALUES ('c', 3);" + IDLE)
    console.run("VERIFY LIVE TABLE t; VERIFY LIVE TABLE rows;")
    assert console.rows("SELECT * FROM t;") == [(3,)]
    console = opened()
    assert console.warnings == [] and console.notes == []
    console.run("START QUERY ALL; CREATE STREAM s (k STRING, n INT) USING values;")
    console.run("INSERT INTO s VALUES ('x', 1); INSERT INTO `a r` VALUES ('d', 3);" + IDLE)
    console.run("VERIFY LIVE TABLE t; VERIFY LIVE TABLE rows;")
    assert sorted(console.rows("SELECT * FROM rows;")) == [("a",), ("b",), ("c",), ("d",)]
