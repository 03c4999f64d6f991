"""A changed live table is built beside the one in use, compared with it, put in its place, and brought back."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from data_files import put_whole
from failing_disk import Crash, Disk
from test_reopened import Open, Opened, opened  # noqa: F401  the fixture

from streamsql.errors import Cancelled, StreamsqlError
from streamsql.output.live_frames import View, frame
from streamsql.results import Done, Live
from streamsql.runtime.embedded import durable_files
from streamsql.runtime.engine.cancel import CancelToken

ROOMS = ("streamsql/features/change/", "streamsql/runtime/")

STREAM = "CREATE STREAM s (k STRING, n INT) USING values;"
ROWS = "INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3);"
IDLE = "AWAIT QUERY ALL IDLE;"
TOTALS = "CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM s GROUP BY k;"
STAGED = "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT k, sum(n) AS total FROM s WHERE n > 1 GROUP BY k;"
BEFORE, AFTER = [("a", 4), ("b", 2)], [("a", 3), ("b", 2)]


def said(console: Any, text: str) -> str:
    done = console.run(text)[-1]
    assert isinstance(done, Done)
    return done.message


def refusal(console: Any, text: str) -> StreamsqlError:
    with pytest.raises(StreamsqlError) as raised:
        console.run(text)
    return raised.value


def test_from_staged_to_promoted_and_back(opened: Open) -> None:
    console = opened()
    console.run(STREAM + ROWS + TOTALS)
    console.run(STAGED + IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) == BEFORE, "it is not touched"
    assert sorted(console.rows("SELECT * FROM t$staged;")) == AFTER
    assert [row[0] for row in console.rows("SHOW LIVE TABLES;")] == ["t"]
    ((name, kind, status, batch, read, of, percent, rows, *_),) = console.rows("SHOW STAGED;")
    assert (name, kind, status) == ("t", "live table", "running")
    assert (batch, read, of, percent, rows) == (0, 3, 3, 100, 2)
    compared = console.run("COMPARE LIVE TABLE t;")[-1]
    assert notes_of(compared) == ("2 rows before, 2 after: 1 changed",)
    assert compared.rows == [("before", "total", "a", 4), ("after", "total", "a", 3)]  # type: ignore[attr-defined]
    promoted = "t is promoted: generation 2 is in use; ROLLBACK t; brings generation 1 back"
    assert said(console, "PROMOTE t;") == promoted
    assert sorted(console.rows("SELECT * FROM t;")) == AFTER
    assert console.rows("SHOW STAGED;") == []
    console.run("INSERT INTO s VALUES ('a', 10), ('z', 1);" + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 13), ("b", 2)], "its checkpoint goes on"
    back = "t is rolled back: generation 1 is in use; ROLLBACK t; brings generation 2 back"
    assert said(console, "ROLLBACK t;") == back
    console.run(IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 14), ("b", 2), ("z", 1)], "and caught up"
    generations = [row[:3] for row in console.rows("SHOW GENERATIONS;")]
    assert generations == [("t", 2, "left"), ("t", 1, "in use")]


CHANGES = {
    "a filter": ("SELECT k, sum(n) AS v FROM s GROUP BY k", "SELECT k, sum(n) AS v FROM s WHERE k <> 'b' GROUP BY k"),
    "a column": ("SELECT k, n FROM s", "SELECT k, n, n * 2 AS twice FROM s"),
    "another key": ("SELECT k, count(*) AS c FROM s GROUP BY k", "SELECT n, count(*) AS c FROM s GROUP BY n"),
    "a wider type": ("SELECT k, n FROM s", "SELECT k, CAST(n AS BIGINT) AS n FROM s"),
    "a text": ("SELECT k, n FROM s", "SELECT k, CAST(n AS STRING) AS n FROM s"),
    "a join": ("SELECT k, n FROM s", "SELECT s.k, s.n, r.name FROM s JOIN r ON s.k = r.k"),
    "into stages": (
        "SELECT k, sum(n) AS v FROM s GROUP BY k",
        "SELECT max(v) AS v FROM (SELECT k, sum(n) AS v FROM s GROUP BY k)",
    ),
    "out of stages": (
        "SELECT k, n, row_number() OVER (PARTITION BY k ORDER BY n DESC) AS r FROM s",
        "SELECT k, n, 1 AS r FROM s",
    ),
    "within stages": (
        "SELECT k, v, rank() OVER (ORDER BY v DESC) AS r FROM (SELECT k, sum(n) AS v FROM s GROUP BY k)",
        "SELECT k, v, rank() OVER (ORDER BY v) AS r FROM (SELECT k, max(n) AS v FROM s GROUP BY k)",
    ),
    "over a live table": ("SELECT max(n) AS n FROM base", "SELECT min(n) AS n FROM base"),
    "a stream to a live table": ("SELECT k, n FROM s", "SELECT k, n FROM base"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(*pair, id=name, marks=[] if name in ("a column", "within stages") else pytest.mark.slow)
        for name, pair in CHANGES.items()
    ],
)
def test_each_step_gives_the_rows_of_its_select(opened: Open, before: str, after: str) -> None:
    console = opened()
    console.run(
        STREAM + "CREATE TEMPORARY VIEW r AS SELECT * FROM VALUES ('a', 'A'), ('b', 'B') AS v(k, name);" + ROWS
        + "CREATE LIVE TABLE base AS SELECT k, n FROM s;"
        + f"CREATE LIVE TABLE t AS {before}; CREATE LIVE TABLE reader AS SELECT count(*) AS c FROM t;" + IDLE
    )  # fmt: skip

    def matches(select: str) -> None:
        console.run(IDLE)
        rows = sorted(console.rows("SELECT * FROM t;"), key=repr)
        assert rows == sorted(console.rows(select + ";"), key=repr)
        assert console.rows("SELECT c FROM reader;") == [(len(rows),)]

    matches(before)
    console.run(f"CREATE OR REPLACE LIVE TABLE t STAGED AS {after};" + IDLE)
    matches(before)
    console.run("COMPARE LIVE TABLE t;") if "'v'" not in after else None
    console.run("PROMOTE t;")
    matches(after)
    console.run("INSERT INTO s VALUES ('a', 7), ('q', 9);")
    matches(after)
    console.run("ROLLBACK t;")
    matches(before)
    console.run("INSERT INTO s VALUES ('b', 11);")
    matches(before)
    console.run("ROLLBACK t;")
    matches(after)


def test_compare_gives_the_difference_of_two_batches(console: Console) -> None:
    console.run(
        STREAM + "INSERT INTO s SELECT concat('k', id % 40), id FROM range(400);"
        "CREATE LIVE TABLE t AS SELECT k, count(*) AS c, avg(n) AS a FROM s WHERE n < 300 GROUP BY k;"
        "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT k, count(*) AS c, avg(n) AS a, max(n) AS m FROM s"
        " WHERE n % 7 <> 0 AND k <> 'k3' GROUP BY k;"
    )
    old = {
        k: (c, a) for k, c, a in console.rows("SELECT k, count(*), avg(n) FROM s WHERE n < 300 GROUP BY k;")
    }
    new = {
        k: (c, a)
        for k, c, a in console.rows(
            "SELECT k, count(*), avg(n) FROM s WHERE n % 7 <> 0 AND k <> 'k3' GROUP BY k;"
        )
    }
    compared = console.run("COMPARE LIVE TABLE t LIMIT 1000;")[-1]
    rows = compared.rows  # type: ignore[attr-defined]
    changed = {k for k in old.keys() & new.keys() if old[k] != new[k]}
    gone = old.keys() - new.keys()
    assert {row[2] for row in rows if row[0] == "only before"} == gone == {"k3"}
    for side, batch in (("before", old), ("after", new)):
        assert {row[2]: row[3:] for row in rows if row[0] == side} == {k: batch[k] for k in changed}
    assert "columns only after, not compared: m" in notes_of(compared)
    assert f"40 rows before, 39 after: 1 only before, {len(changed)} changed" in notes_of(compared)
    few = console.run("COMPARE LIVE TABLE t LIMIT 1;")[-1]
    assert len(few.rows) == 2 or few.rows[0][0] == "only before"  # type: ignore[attr-defined]
    assert notes_of(few)[-1].endswith("; the first 1 are shown: LIMIT")
    by_column = console.run("COMPARE LIVE TABLE t KEY (c);")[-1]
    assert "only" in notes_of(by_column)[-1]


def test_a_keyed_sink_and_a_log_of_changes_get_the_difference(console: Console, tmp_path: Path) -> None:
    """What reads the live table gets what PROMOTE changes, not everything."""
    console.run(
        STREAM + ROWS + TOTALS + f"CREATE SINK log USING json OPTIONS (path '{tmp_path}/log');"
        "INSERT INTO log AS QUERY q SELECT k, total FROM t;" + IDLE + STAGED + IDLE
    )
    read = f"SELECT _op, k, total FROM json.`{tmp_path}/log` WHERE k IS NOT NULL;"
    first = console.rows(read)
    assert sorted(first) == [("+I", "a", 4), ("+I", "b", 2)]
    console.run("PROMOTE t;" + IDLE)
    assert sorted(console.rows(read))[2:] == sorted([("+U", "a", 3), ("-U", "a", 4)]) or sorted(
        set(console.rows(read)) - set(first)
    ) == [("+U", "a", 3), ("-U", "a", 4)]
    assert len(console.rows(read)) == 4


def test_what_reads_it_takes_its_new_columns(opened: Open) -> None:
    console = opened()
    console.run(
        STREAM + ROWS + TOTALS + "CREATE LIVE TABLE whole AS SELECT * FROM t;"
        "CREATE LIVE TABLE ann AS SELECT * FROM whole WHERE k = 'a'; CREATE LIVE TABLE m AS SELECT max(total) AS m FROM t;"
        + IDLE
        + "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT k, sum(n) AS total, count(*) AS c FROM s GROUP BY k;"
    )
    (promoted,) = console.run("PROMOTE t;")
    assert notes_of(promoted) == ()
    assert sorted(console.rows("SELECT k, total, c FROM whole;")) == [("a", 4, 2), ("b", 2, 1)], "at once"
    assert console.rows("SELECT * FROM ann;") == [("a", 4, 2)]
    console.run("INSERT INTO s VALUES ('a', 5);" + IDLE)
    assert console.rows("SELECT * FROM ann;") == [("a", 9, 3)]
    (back,) = console.run("ROLLBACK t;")
    assert notes_of(back) == ()
    (idle,) = console.run(IDLE)
    assert not [note for note in notes_of(idle) if note.startswith("t:")], (
        "its account is that of its checkpoint"
    )
    assert console.rows("SELECT * FROM ann;") == [("a", 9)]
    console.run("CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT k, count(*) AS c FROM s GROUP BY k;")
    (note,) = notes_of(console.run("PROMOTE t;")[0])
    assert note.startswith("m does not run any more: m cannot be computed any more: there is no column total")
    assert console.rows("SELECT * FROM ann;") == [("a", 3)]
    assert console.rows("SELECT * FROM m;") == [(9,)], "its last rows can be read"
    console.run("ROLLBACK t; START QUERY m;" + IDLE)
    assert console.rows("SELECT * FROM m;") == [(9,)]


def test_preview_says_what_a_change_means(console: Console) -> None:
    console.run(STREAM + ROWS + TOTALS + "CREATE LIVE TABLE top AS SELECT max(total) AS m FROM t;" + IDLE)
    rows = console.rows(f"PREVIEW CHANGE {STAGED.replace(' STAGED', '')}")
    assert [name for name, _ in rows] == [
        "live table", "change", "computed anew", "read again", "takes about", "read by",
    ]  # fmt: skip
    told = dict(rows)
    assert told["change"] == "WHERE: n > 1 added"
    assert told["computed anew"].endswith("; the state of now: 2 rows of stateStoreSave")
    assert told["read again"].startswith("s: 3 rows so far, 1 file, ")
    assert told["takes about"].endswith(" per second as its micro-batches ran")
    assert told["read by"] == "top (computed again)"
    told = dict(
        console.rows("PREVIEW CHANGE CREATE OR REPLACE LIVE TABLE top AS SELECT min(total) AS m FROM t;")
    )
    assert (told["change"], told["read again"]) == (
        "SELECT: max(total) AS m → min(total) AS m",
        "t: 2 rows",
    )
    assert console.rows("SHOW STAGED;") == [] and sorted(console.rows("SELECT * FROM t;")) == BEFORE
    assert refusal(console, "PREVIEW CHANGE SELECT 1;").code == "WRONG_KIND"
    new = dict(console.rows("PREVIEW CHANGE CREATE OR REPLACE LIVE TABLE tt AS SELECT k FROM s;"))
    assert (new["live table"], new["change"]) == ("tt", "it is new: all of its rows")


BIG = "CREATE LIVE TABLE big AS SELECT k FROM t WHERE total > 3;"
BIG_STAGED = "CREATE OR REPLACE LIVE TABLE big STAGED AS SELECT k, total FROM t WHERE total > 2;"


def test_changes_of_several_tables_are_put_in_use_together(opened: Open) -> None:
    """A staged change reads the staged changes of what it names."""
    console = opened()
    console.run(STREAM + ROWS + TOTALS + BIG + STAGED + BIG_STAGED + IDLE)
    assert console.rows("SELECT * FROM big;") == [("a",)]
    assert console.rows("SELECT * FROM big$staged;") == [("a", 3)]
    assert notes_of(console.run("COMPARE LIVE TABLE big;")[0])[-1] == "1 row before, 1 after: no difference"
    again = opened()
    assert again.warnings == []
    again.run("START QUERY ALL; INSERT INTO s VALUES ('b', 9);" + IDLE)
    assert sorted(again.rows("SELECT * FROM big$staged;")) == [("a", 3), ("b", 11)]
    for statement in ("PROMOTE t;", "PROMOTE big;"):
        fault = refusal(again, statement)
        assert fault.code == "IN_USE"
        assert fault.hint in (
            "PROMOTE t, big; puts them in use together",
            "PROMOTE big, t; puts them in use together",
        )
    promoted = (
        "t, big are promoted: generations 2, 2 are in use; ROLLBACK t, big; brings the ones before back"
    )
    assert said(again, "PROMOTE big, t;") == promoted
    again.run("INSERT INTO s VALUES ('c', 4);" + IDLE)
    assert sorted(again.rows("SELECT * FROM big;")) == [("a", 3), ("b", 11), ("c", 4)]
    assert again.rows("SHOW STAGED;") == []
    third = opened()
    assert third.warnings == []
    third.run("START QUERY ALL; ROLLBACK t, big;" + IDLE)
    assert sorted(third.rows("SELECT * FROM big;")) == [("a",), ("b",), ("c",)]
    assert sorted(third.rows("SELECT * FROM t;")) == [("a", 4), ("b", 11), ("c", 4)]
    with pytest.raises(StreamsqlError, match="did not expect TO here|found TO"):
        third.run("ROLLBACK t, big TO GENERATION 1;")


def test_what_a_change_reads_is_staged_before_it(console: Console) -> None:
    console.run(STREAM + ROWS + TOTALS + BIG + BIG_STAGED + IDLE)
    assert console.rows("SELECT * FROM big$staged;") == [("a", 4)]
    fault = refusal(console, STAGED)
    assert (fault.code, fault.hint) == ("IN_USE", "DROP STAGED big; then stage t first, and big after it")
    console.run("DROP STAGED big;" + STAGED + BIG_STAGED + IDLE)
    assert console.rows("SELECT * FROM big$staged;") == [("a", 3)]
    assert refusal(console, "DROP STAGED t;").code == "IN_USE"
    console.run("PROMOTE t, big;" + IDLE)
    assert console.rows("SELECT * FROM big;") == [("a", 3)]


# ---- the next day


def test_a_staged_change_is_there_on_the_next_day(opened: Open) -> None:
    console = opened()
    console.run(STREAM + ROWS + TOTALS + STAGED + IDLE)
    again = opened()
    assert again.warnings == []
    assert sorted(again.rows("SELECT * FROM t$staged;")) == AFTER
    again.run("START QUERY ALL; INSERT INTO s VALUES ('a', 5);" + IDLE)
    assert said(again, "PROMOTE t;").startswith("t is promoted: generation 2")
    third = opened()
    assert third.warnings == []
    assert sorted(third.rows("SELECT * FROM t;")) == [("a", 8), ("b", 2)]
    assert "WHERE n > 1" in third.text("SHOW CREATE LIVE TABLE t;")
    third.run("START QUERY ALL;" + IDLE + "ROLLBACK t;" + IDLE)
    assert sorted(opened().rows("SELECT * FROM t;")) == [("a", 9), ("b", 2)]


def crashing(
    folder: Path,
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    *,
    disk_at: Callable[[int], Disk] = lambda at: Disk(at, Crash),
    by: int = 1,
) -> Iterator[Opened]:
    """The console that opens the workspace after a crash at each step of a statement that writes. by: of so many
    steps, one, unless STREAMSQL_CHANGE_KILLS is all.
    """
    by = 1 if os.environ.get("STREAMSQL_CHANGE_KILLS") == "all" else by
    made = folder / "made"
    shutil.copytree(folder / "w", made, symlinks=True)
    at, crashed = 0, True
    while crashed:
        at += by
        console = opened()
        console.run("START QUERY ALL;" + IDLE)
        disk = disk_at(at)
        monkeypatch.setattr(durable_files, "os", disk)
        try:
            console.run(statement)
        except (Crash, StreamsqlError, OSError):
            pass
        crashed = disk.failed
        # What a killed process would have left; the console that goes on here must not write any more.
        shutil.copytree(folder / "w", folder / "left", symlinks=True)
        monkeypatch.setattr(durable_files, "os", __import__("os"))
        console.session.close()
        shutil.rmtree(folder / "w")
        (folder / "left").rename(folder / "w")
        yield opened()
        opened().session.close()
        shutil.rmtree(folder / "w")
        shutil.copytree(made, folder / "w", symlinks=True)
    assert at > 5


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["PROMOTE t, big;", "ROLLBACK big, t;"])
def test_a_crash_leaves_one_set_or_the_other(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    console = opened()
    console.run(STREAM + ROWS + TOTALS + BIG + STAGED + BIG_STAGED + IDLE)
    if statement.startswith("ROLLBACK"):
        console.run("PROMOTE t, big;" + IDLE)
    console.session.close()
    seen = set()
    for console in crashing(tmp_path, opened, monkeypatch, statement):
        assert console.warnings == []
        after = "WHERE n > 1" in console.text("SHOW CREATE LIVE TABLE t;")
        assert after == ("total > 2" in console.text("SHOW CREATE LIVE TABLE big;"))
        staged = [row[0] for row in console.rows("SHOW STAGED;")]
        assert staged == (["t", "big"] if statement.startswith("PROMOTE") and not after else [])
        console.run("START QUERY ALL;" + IDLE + "VERIFY LIVE TABLE t;")
        assert sorted(console.rows("SELECT * FROM t;")) == (AFTER if after else BEFORE)
        assert console.rows("SELECT * FROM big;") == ([("a", 3)] if after else [("a",)])
        seen.add(after)
    assert seen == {False, True}


@pytest.mark.slow
@pytest.mark.parametrize("definition", ["WHERE n > 1", "in stages"])
@pytest.mark.parametrize("statement", ["PROMOTE t;", "ROLLBACK t;"])
def test_a_crash_leaves_one_or_the_other_whole(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, definition: str
) -> None:
    if definition == "in stages":
        tables = [
            f"CREATE {{}} AS SELECT k, v AS total, {rank} AS r FROM (SELECT k, {what}(n) AS v FROM s GROUP BY k);"
            for rank, what in (("rank() OVER (ORDER BY v)", "sum"), ("rank() OVER (ORDER BY v, k)", "max"))
        ]
        answers = [[("a", 4, 2), ("b", 2, 1)], [("a", 3, 2), ("b", 2, 1)]]
    else:
        tables = [f"CREATE {{}} AS SELECT k, sum(n) AS total FROM s {where} GROUP BY k;"
                  for where in ("", definition)]  # fmt: skip
        answers = [BEFORE, AFTER]
    console = opened()
    console.run(STREAM + ROWS + tables[0].format("LIVE TABLE t") + IDLE)
    console.run(tables[1].format("OR REPLACE LIVE TABLE t STAGED") + IDLE)
    if statement == "ROLLBACK t;":
        console.run("PROMOTE t;" + IDLE)
    console.session.close()
    seen = set()
    for console in crashing(tmp_path, opened, monkeypatch, statement):
        assert console.warnings == []
        rows = sorted(console.rows("SELECT * FROM t;"))
        after = (definition if definition != "in stages" else "max(n)") in console.text(
            "SHOW CREATE LIVE TABLE t;"
        )
        assert rows == answers[after], (after, rows)
        staged = bool(console.rows("SHOW STAGED;"))
        assert staged == (statement == "PROMOTE t;" and not after)
        console.run("START QUERY ALL;" + IDLE + ("" if definition == "in stages" else "VERIFY LIVE TABLE t;"))
        assert sorted(console.rows("SELECT * FROM t;")) == answers[after]
        console.run("INSERT INTO s VALUES ('a', 100), ('b', 100);" + IDLE)
        assert {row[0]: row[1] for row in console.rows("SELECT * FROM t;")} == (
            {"a": 104 if not after else 103, "b": 102} if definition != "in stages"
            else {"a": 104, "b": 102} if not after else {"a": 100, "b": 100}
        )  # fmt: skip
        seen.add(after)
    assert seen == {False, True}


# ---- how far a change is, and how fast


def test_a_limited_change_reads_so_many_files_in_a_second(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for n in range(6):
        put_whole(tmp_path / "in" / f"{n}.json", f'{{"k": "a", "n": {n}}}\n')
    console = opened()
    console.run(
        f"CREATE STREAM s (k STRING, n INT) USING json OPTIONS (path '{tmp_path}/in');" + TOTALS + IDLE
    )
    console.run("SET streamsql.staged_rate = 2;" + STAGED)
    table, percent = console.session.summary().staged
    assert table == "t" and percent < 100, "the toolbar shows it"
    [watched] = console.run("WATCH t;")
    assert isinstance(watched, Live)
    footer = frame(watched, View(120, 20)).footer[0]
    watched.close()
    assert re.search(r"staged change \d+ %", footer)
    console.run(IDLE)
    assert console.session.summary().staged is None
    assert console.rows("SHOW STAGED;")[0][10] == "6 files"
    batches = [row[5] for row in console.rows("SHOW BATCHES OF QUERY t$staged;")]
    assert batches == [2, 2, 2]
    begun = [datetime.fromisoformat(row[2]) for row in console.rows("SHOW BATCHES OF QUERY t$staged;")]
    assert begun[-1] - begun[0] >= timedelta(seconds=1), "shown in whole seconds"
    console.run("PROMOTE t;" + IDLE + "VERIFY LIVE TABLE t;")
    console.run("RESET streamsql.staged_rate;")
    assert "maxFilesPerTrigger" not in console.text("EXPLAIN PYSPARK QUERY t;")
    assert console.rows("SELECT * FROM t;") == [("a", 14)]


def test_a_limit_of_the_stream_stays_where_it_is_lower(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    console = opened()
    options = f"path '{tmp_path}/in', maxFilesPerTrigger 3"
    console.run(f"CREATE STREAM s (k STRING, n INT) USING json OPTIONS ({options});" + TOTALS)
    console.run("SET streamsql.staged_rate = 5;" + STAGED)
    assert '"maxFilesPerTrigger", "3"' in console.text("EXPLAIN PYSPARK QUERY t$staged;")
    console.run("SET streamsql.staged_rate = 2; STOP QUERY t$staged; START QUERY t$staged;")
    assert '"maxFilesPerTrigger", "2"' in console.text("EXPLAIN PYSPARK QUERY t$staged;")
    assert '"maxFilesPerTrigger", "3"' in console.text("EXPLAIN PYSPARK QUERY t;")
    assert "maxFilesPerTrigger '3'" in console.text("SHOW CREATE STREAM s;")


def test_show_staged_says_how_far_a_change_is(opened: Open) -> None:
    console = opened()
    console.run(STREAM + ROWS + TOTALS)
    console.run("CREATE LIVE TABLE ranks AS SELECT k, rank() OVER (ORDER BY n) AS r FROM s;" + IDLE)
    console.run(STAGED)
    console.run(
        "CREATE OR REPLACE LIVE TABLE ranks STAGED AS SELECT k, rank() OVER (ORDER BY n DESC) AS r FROM s;"
    )
    console.run(IDLE)
    far = {row[0]: row[4:7] for row in console.rows("SHOW STAGED;")}
    assert far == {"t": (3, 3, 100), "ranks": (3, 3, 100)}, "of the streams, also in stages"
    assert console.session.summary().staged is None, "it has read all"
    console.run(
        "CREATE OR REPLACE LIVE TABLE t STAGED FROM NOW AS SELECT k, max(n) AS m FROM s GROUP BY k;" + IDLE
    )
    assert {row[0]: row[4:7] for row in console.rows("SHOW STAGED;")}["t"] == (0, None, None), (
        "never all of them"
    )
    console.session.close()
    again = opened()
    again.run("START QUERY ALL;" + IDLE)
    assert {row[5:7] for row in again.rows("SHOW STAGED;")} == {(None, None)}, "where it began is not known"


# ---- what is refused, and what does no harm


def test_what_is_not_staged_is_not_promoted(opened: Open) -> None:
    console = opened()
    console.run(
        STREAM
        + ROWS
        + TOTALS
        + "CREATE SINK m USING memory; INSERT INTO m AS QUERY q SELECT k FROM s;"
        + IDLE
    )
    for statement in ("PROMOTE t;", "COMPARE LIVE TABLE t;", "DROP STAGED t;"):
        fault = refusal(console, statement)
        assert (fault.code, fault.message) == ("NOT_STAGED", "nothing is staged for t")
        assert fault.hint == "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT …"
    assert "did you mean t?" in refusal(console, "PROMOTE tt;").hint
    assert refusal(console, "ROLLBACK t;").message == "there is no earlier generation of t to go back to"
    fault = refusal(console, "CREATE LIVE TABLE t STAGED AS SELECT k FROM s;")
    assert fault.message == "STAGED changes the live table t: write CREATE OR REPLACE"
    fault = refusal(console, "CREATE OR REPLACE LIVE TABLE nothing STAGED AS SELECT k FROM s;")
    assert (fault.code, "leave out STAGED" in fault.hint) == ("UNKNOWN_LIVE_TABLE", True)
    assert refusal(console, "CREATE OR REPLACE LIVE TABLE m STAGED AS SELECT k FROM s;").code == "WRONG_KIND"
    assert (
        refusal(console, "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT * FROM t;").code
        == "CIRCULAR_DEFINITION"
    )
    assert refusal(console, "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT nothing FROM s;").code
    late = "CREATE OR REPLACE LIVE TABLE t STAGED ON LATE INTO m AS SELECT k FROM s;"
    assert "late rows twice" in refusal(console, late).message
    assert console.rows("SHOW STAGED;") == []
    console.run(STAGED)
    assert (
        refusal(console, "CREATE OR REPLACE LIVE TABLE t$staged STAGED AS SELECT k FROM s;").code
        == "WRONG_KIND"
    )
    assert refusal(console, "COMPARE LIVE TABLE t KEY (totl);").hint == "did you mean total?"
    assert sorted(console.rows("SELECT * FROM t;")) == BEFORE


def test_a_change_that_does_not_run_is_not_promoted(console: Console) -> None:
    console.run(STREAM + ROWS + TOTALS + STAGED + IDLE + "STOP QUERY t$staged;")
    for statement in ("PROMOTE t;", "COMPARE LIVE TABLE t;"):
        fault = refusal(console, statement)
        assert fault.code == "QUERY_NOT_RUNNING"
        assert "START QUERY" in fault.hint
    hint = refusal(console, "PROMOTE t;").hint
    console.run(hint + "PROMOTE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == AFTER
    failing = (
        "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT k, sum(n DIV (n - 1)) AS total FROM s GROUP BY k;"
    )
    console.run(failing)
    refusal(console, "AWAIT QUERY t$staged;")
    fault = refusal(console, "PROMOTE t;")
    assert fault.message == "the staged change of t has failed"
    assert console.run(fault.hint)
    console.run("DROP STAGED t;" + IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) == AFTER


def test_a_stream_that_never_rests_is_not_compared_and_is_promoted(console: Console) -> None:
    console.run(
        "CREATE STREAM r USING rate OPTIONS (rowsPerSecond 5); CREATE LIVE TABLE t AS SELECT count(*) AS c FROM r;"
        "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT count(*) AS c, max(value) AS m FROM r;"
    )
    assert refusal(console, "COMPARE LIVE TABLE t;").message == "t cannot be compared: r always has new rows"
    assert said(console, "PROMOTE t;").startswith("t is promoted")
    assert len(console.rows("SELECT c, m FROM t;")[0]) == 2


def test_dropped_and_staged_again(opened: Open, tmp_path: Path) -> None:
    console, folder = opened(), tmp_path / "w/run/queries/t"
    console.run(STREAM + ROWS + TOTALS + STAGED + IDLE)
    assert said(console, "DROP STAGED t;") == "staged change of t dropped"
    assert {p.name for p in folder.iterdir() if not p.name.startswith(".")} >= {"1", "current"}
    assert not (folder / "staged").is_symlink() and not (folder / "2").exists()
    console.run(
        STAGED + "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT k, max(n) AS total FROM s GROUP BY k;"
    )
    console.run(IDLE + "PROMOTE t;")
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 3), ("b", 2)]
    console.run(STAGED + IDLE + "DROP LIVE TABLE t;")
    assert not folder.exists()
    assert console.rows("SHOW QUERIES;") == []
    console.run(TOTALS + STAGED + IDLE + "DROP QUERY t;")
    assert console.rows("SHOW STAGED;") == []
    console.run("UNDROP; START QUERY ALL;" + IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) == BEFORE
    assert console.rows("SHOW STAGED;") == []
    assert opened().warnings == []


def test_a_reader_of_the_staged_name_keeps_it(console: Console) -> None:
    console.run(STREAM + ROWS + TOTALS + STAGED + "CREATE LIVE TABLE u AS SELECT * FROM t$staged;" + IDLE)
    for statement in ("PROMOTE t;", "DROP STAGED t;"):
        assert refusal(console, statement).code == "IN_USE"
    console.run("DROP LIVE TABLE u; PROMOTE t;")


def test_without_a_workspace_nothing_earlier_is_kept(console: Console) -> None:
    console.run(STREAM + ROWS + TOTALS + STAGED + IDLE + "PROMOTE t; INSERT INTO s VALUES ('a', 7);" + IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 10), ("b", 2)]
    fault = refusal(console, "ROLLBACK t;")
    assert fault.message == "no earlier generation of t is kept: this console has no workspace"


def test_generations_that_stay(opened: Open) -> None:
    console = opened()
    console.run(STREAM + ROWS + TOTALS + IDLE)

    def numbers() -> list[int]:
        return [row[1] for row in console.rows("SHOW GENERATIONS OF t;")]

    for column in ("x", "y", "z"):
        console.run(f"CREATE OR REPLACE LIVE TABLE t AS SELECT k, n AS {column} FROM s;" + IDLE)
    assert numbers() == [4, 3, 2]
    console.run("ROLLBACK t TO GENERATION 2;" + IDLE)
    assert console.run("SELECT x FROM t;")
    assert refusal(console, "ROLLBACK t TO GENERATION 1;").code == "NO_GENERATION"
    console.run("SET streamsql.generations = 0; CREATE OR REPLACE LIVE TABLE t AS SELECT n FROM s;" + IDLE)
    assert numbers() == [5]


def test_ctrl_c_leaves_both_as_they_were(console: Console) -> None:
    """While the change processes what there is."""
    console.run(STREAM + ROWS + TOTALS + STAGED + IDLE)
    cancel, session = CancelToken(), console.session
    slow = "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT k, java_method('java.lang.Thread', 'sleep', 1500L) AS total FROM s;"
    console.run(slow)
    running = session.parts.queries.all["t$staged"]

    def give_up() -> None:
        while running.status() == "running":
            pass
        cancel.cancel()

    waiting = threading.Thread(target=give_up)
    waiting.start()
    with pytest.raises(Cancelled):
        console.run("PROMOTE t;", cancel)
    waiting.join()
    console.run(IDLE)
    assert sorted(console.rows("SELECT * FROM t;")) == BEFORE
    assert [row[2] for row in console.rows("SHOW STAGED;")] == ["running"]
    console.run("DROP STAGED t;")


@pytest.mark.parametrize("damage", ["link", "record", "record of an earlier version"])
def test_a_damaged_folder_does_not_keep_a_workspace_from_opening(
    opened: Open, tmp_path: Path, damage: str
) -> None:
    console = opened()
    console.run(STREAM + ROWS + TOTALS + "CREATE LIVE TABLE other AS SELECT k FROM s;" + IDLE)
    console.session.close()
    folder = tmp_path / "w/run/queries/t"
    if damage == "link":
        (folder / "current").unlink()
        (folder / "current").symlink_to("../../elsewhere")
    elif damage == "record":
        (tmp_path / "w/run/exchange.json").write_text("{")
    else:
        (folder / "1/to_define.json").write_text("{")
    again, said_of = opened(), "t: its definition may be that of another generation"
    if damage == "record":
        said_of = (
            f"{tmp_path}/w/run/exchange.json cannot be read, so that PROMOTE or ROLLBACK is not completed"
        )
    assert [w for w in again.warnings if w.startswith(said_of)]
    again.run("START QUERY other;" + "AWAIT QUERY other IDLE;")
    assert len(again.rows("SELECT * FROM other;")) == 3


def test_a_query_that_goes_to_spark_as_text_reads_a_staged_change(console: Console) -> None:
    pivot = "FROM t PIVOT (sum(total) FOR k IN ('a', 'b'))"
    console.run(STREAM + ROWS + TOTALS + f"CREATE LIVE TABLE big AS SELECT * {pivot};" + IDLE + STAGED)
    console.run(f"CREATE OR REPLACE LIVE TABLE big STAGED AS SELECT *, 1 AS one {pivot};" + IDLE)
    assert console.rows("SELECT * FROM big;") == [(4, 2)]
    assert console.rows("SELECT * FROM big$staged;") == [(3, 2, 1)]
    console.run("PROMOTE t, big; INSERT INTO s VALUES ('b', 5);" + IDLE)
    assert console.rows("SELECT * FROM big;") == [(3, 7, 1)]
