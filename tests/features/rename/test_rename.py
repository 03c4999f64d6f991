"""A stream, a sink, a live table and a query get another name, and go on with all that they have."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from data_files import put_whole
from failing_disk import Crash, Disk
from test_reopened import Open, opened, said  # noqa: F401  the fixture

from streamsql.errors import StreamsqlError
from streamsql.language.renamed_relations import with_names
from streamsql.runtime.embedded import durable_files

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
        put_whole(self.folder / f"{self.number}.json", f'{{"k": "{k}", "n": {n}}}\n')


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


def batches_of(console: Any, query: str) -> list[int]:
    return [row[0] for row in console.rows(f"SHOW BATCHES OF QUERY {query};")]


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
        assert "anew" not in repr(console.run(IDLE)[-1]), "it is the state of before"
        assert console.rows(f"SELECT * FROM {now['t']};") == [("a", total)]
        assert console.rows("SELECT * FROM reader;") == [(total,)]
        assert console.rows(f"SELECT * FROM {now['ranked']};") == [("a", total, 1)]
        written = console.rows(f"SELECT count(*), sum(n) FROM json.`{tmp_path}/out`;")
        assert written == [(batches, total)]

    answers(3, 2)
    files.add("a", 10)
    answers(13, 3)
    for name in (now["t"], now["q"]):
        assert batches_of(console, name)[:2] == [0, 1], "the micro-batches of before the rename"
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


BY_CRASH = {
    "ALTER LIVE TABLE t RENAME TO u;": ("t", "u"),
    "ALTER STREAM s RENAME TO r;": ("t", "t"),
    "ALTER QUERY q RENAME TO p;": ("t", "t"),
}


@pytest.mark.slow
@pytest.mark.parametrize("statement", BY_CRASH)
def test_a_crash_leaves_the_old_name_or_the_new_one(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    console = opened()
    console.run(
        "CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('b', 2);"
        "CREATE LIVE TABLE t AS SELECT k, sum(s.n) AS total FROM s GROUP BY k;"
        "CREATE LIVE TABLE reader AS SELECT sum(t.total) AS total FROM t;"
        f"CREATE SINK out USING json OPTIONS (path '{tmp_path}/w/run/out');"
        "INSERT INTO out AS QUERY q SELECT k, n FROM s;" + IDLE
    )
    console.session.close()
    made, left = tmp_path / "made", tmp_path / "left"
    shutil.copytree(tmp_path / "w", made, symlinks=True)
    at, crashed, seen = 0, True, set()
    old, new = statement.split()[-4], statement.split()[-1].strip(";")
    while crashed:
        at += 1
        console = opened()
        disk = Disk(at, Crash)
        monkeypatch.setattr(durable_files, "os", disk)
        try:
            console.run(statement)
        except (Crash, StreamsqlError, OSError):
            pass
        crashed = disk.failed
        shutil.copytree(tmp_path / "w", left, symlinks=True)
        monkeypatch.setattr(durable_files, "os", __import__("os"))
        console.session.close()
        shutil.rmtree(tmp_path / "w")
        left.rename(tmp_path / "w")
        console = opened()
        assert console.warnings == [] and console.notes == [], at
        catalog = console.session.parts.catalog
        names = [*catalog.streams, *catalog.queries]
        assert (old in names) != (new in names), at
        after = new in names
        seen.add(after)
        if at % 3 == 0 or not crashed:
            table = BY_CRASH[statement][after]
            stream = new if after and "STREAM" in statement else "s"
            console.run(f"START QUERY ALL; INSERT INTO {stream} VALUES ('a', 10);" + IDLE)
            console.run(f"VERIFY LIVE TABLE {table};")
            assert sorted(console.rows(f"SELECT * FROM {table};")) == [("a", 11), ("b", 2)], at
            assert console.rows("SELECT * FROM reader;") == [(13,)], at
            assert console.rows(f"SELECT count(*) FROM json.`{tmp_path}/w/run/out`;") == [(3,)], at
        console.session.close()
        shutil.rmtree(tmp_path / "w")
        shutil.copytree(made, tmp_path / "w", symlinks=True)
    assert seen == {False, True} and at > 8


REFUSED = {
    "ALTER STREAM words RENAME TO x;": ("UNKNOWN_STREAM", "there is no stream words", "words"),
    "ALTER STREAM s RENAME TO t;": ("ALREADY_EXISTS", "there is already a live table t", "t"),
    "ALTER LIVE TABLE t RENAME TO s;": ("ALREADY_EXISTS", "there is already a stream s", "s"),
    "ALTER QUERY q RENAME TO t;": ("ALREADY_EXISTS", "there is already a query t", "t"),
    "ALTER LIVE TABLE t RENAME TO u$staged;": ("BAD_NAME", "u$staged is a name of the console's own", "u$staged"),
    "ALTER LIVE TABLE big RENAME TO u;": ("IN_USE", "a change of big is staged", "big"),
    "ALTER STREAM s RENAME TO u;": ("IN_USE", "a change of big is staged", "s"),
}  # fmt: skip


@pytest.mark.slow
def test_what_is_refused_changes_nothing(opened: Open) -> None:
    console = opened()
    console.run(
        "CREATE STREAM s (k STRING, n INT) USING values; CREATE SINK out USING noop;"
        "CREATE LIVE TABLE t AS SELECT k FROM s; INSERT INTO out AS QUERY q SELECT k FROM s;"
        "CREATE LIVE TABLE big AS SELECT k FROM s; CREATE OR REPLACE LIVE TABLE big STAGED AS SELECT n FROM s;"
    )
    before = console.session.parts.catalog
    for statement, (code, message, place) in REFUSED.items():
        with pytest.raises(StreamsqlError) as raised:
            console.run(statement)
        fault = raised.value
        assert fault.code == code and message in fault.message and fault.hint, statement
        assert fault.span and statement[fault.span.start : fault.span.end] == place, statement
        assert console.session.parts.catalog == before
    console.run("DROP STAGED big; ALTER LIVE TABLE big RENAME TO small;" + IDLE + "SELECT * FROM small;")


@pytest.mark.slow
def test_a_failing_disk_leaves_all_as_it_was(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    console = opened()
    console.run(
        "CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1);"
        "CREATE LIVE TABLE t AS SELECT k, sum(n) AS n FROM s GROUP BY k;" + IDLE
    )
    moved = durable_files.os.replace

    def replace(old: Any, new: Any) -> None:
        if str(new).endswith("/queries/u"):
            raise OSError(28, "No space left on device")
        moved(old, new)

    with monkeypatch.context() as patch, pytest.raises((StreamsqlError, OSError)):
        patch.setattr(durable_files.os, "replace", replace)
        console.run("ALTER LIVE TABLE t RENAME TO u;")
    console.run("INSERT INTO s VALUES ('a', 2);" + IDLE + "VERIFY LIVE TABLE t;")
    assert console.rows("SELECT * FROM t;") == [("a", 3)], "it was started again"
    assert said(console, "ALTER LIVE TABLE t RENAME TO u;").startswith("live table t is named u now")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("SELECT * FROM t", "SELECT * FROM u"),
        ("SELECT t.k, T.n FROM `t` WHERE t.k > 1", "SELECT u.k, u.n FROM u WHERE u.k > 1"),
        ("SELECT t.k FROM t x JOIN t ON x.k = t.k", "SELECT u.k FROM u x JOIN u ON x.k = u.k"),
        ("SELECT t.u FROM t", "SELECT t.u FROM u AS t"),
        ("SELECT t.k FROM t JOIN v AS u ON t.k = u.k", "SELECT t.k FROM u AS t JOIN v AS u ON t.k = u.k"),
        ("SELECT x.t FROM t AS x", "SELECT x.t FROM u AS x"),
        ("WITH t AS (SELECT * FROM t) SELECT t.k FROM t", "WITH t AS (SELECT * FROM u AS t) SELECT t.k FROM t"),
        ("SELECT k FROM b WHERE k IN (SELECT t.k FROM t)", "SELECT k FROM b WHERE k IN (SELECT u.k FROM u)"),
        ("SELECT 't' AS `t k`, k AS t FROM t", "SELECT 't' AS `t k`, k AS t FROM u AS t"),
    ],
)  # fmt: skip
def test_a_query_follows_the_name_of_what_it_reads(text: str, after: str) -> None:
    assert with_names(text, {"t": "u"}, {}) == after
    assert with_names(after, {"t": "u"}, {}) == after, "a second time changes nothing"


@pytest.mark.slow
def test_views_and_generations_that_were_left_follow(opened: Open, spark: Any) -> None:
    console = opened()
    console.run("CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('a', 2);")
    console.run("CREATE LIVE TABLE t AS SELECT k, sum(n) AS v FROM s GROUP BY k;" + IDLE)
    console.run("CREATE OR REPLACE LIVE TABLE t AS SELECT k, max(n) AS v FROM s GROUP BY k;" + IDLE)
    console.run("CREATE TEMPORARY VIEW big AS SELECT t.k, v FROM t WHERE v > 1;")
    console.run("ALTER LIVE TABLE t RENAME TO u; ALTER STREAM s RENAME TO z;" + IDLE)
    assert console.rows("SELECT * FROM u;") == [("a", 2)]
    assert console.rows("SELECT * FROM big;") == [("a", 2)]
    console.session.close()
    spark.catalog.dropTempView("big")
    console = opened()
    console.run("START QUERY ALL; ROLLBACK u;" + IDLE + "VERIFY LIVE TABLE u;")
    assert console.rows("SELECT * FROM u;") == [("a", 3)]
    console.run("INSERT INTO z VALUES ('a', 10);" + IDLE + "VERIFY LIVE TABLE u;")
    assert console.rows("SELECT * FROM u;") == [("a", 13)], "its checkpoint goes on"


@pytest.mark.slow
def test_a_statement_set_follows(opened: Open) -> None:
    console = opened()
    console.run("CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1);")
    console.run("CREATE SINK one USING memory; CREATE SINK two USING memory;")
    inserts = "INSERT INTO one SELECT s.k FROM s; INSERT INTO two SELECT n FROM s;"
    console.run(f"EXECUTE STATEMENT SET BEGIN {inserts} END;" + IDLE)
    console.run(
        "ALTER SINK one RENAME TO first; ALTER STREAM s RENAME TO z; INSERT INTO z VALUES ('b', 2);" + IDLE
    )
    assert sorted(console.rows("SELECT * FROM first;")) == [("a",), ("b",)]
    assert sorted(console.rows("SELECT * FROM two;")) == [(1,), (2,)]
    console = opened()
    console.run("START QUERY ALL; INSERT INTO z VALUES ('c', 3);" + IDLE)
    assert sorted(console.rows("SELECT * FROM first;"))[-1] == ("c",)
    assert len(console.rows("SELECT * FROM two;")) == 3
