"""A query is a folder with generations: one rename puts a new one in use, and the one before is kept."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

import os
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from conftest import notes_of
from failing_disk import Crash, Disk
from test_reopened import Open, opened  # noqa: F401  the fixture

from streamsql.connectors.base import Places
from streamsql.errors import EngineFault, StreamsqlError
from streamsql.runtime.checkpoints.hadoop_files import HadoopFiles
from streamsql.runtime.checkpoints.query_marker import Folder
from streamsql.runtime.embedded import durable_files
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.queries.start_steps import Step, run_steps
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace.generations import Generations, move_over
from streamsql.runtime.workspace.reopen import reopen
from streamsql.runtime.workspace.store import Store

ROOMS = ("streamsql/runtime/",)

OLD = Path(__file__).parent / "workspaces" / "format_1.tar.gz"
"""A workspace that a console has written before queries had generations, and the folder in which it was."""
MADE_IN = "/tmp/streamsql-format-3/w"
STREAM = "CREATE STREAM s (k STRING, n INT) USING values;"
TABLE = "CREATE LIVE TABLE t AS SELECT k, n FROM s;"


def test_each_new_beginning_is_a_new_generation(opened: Open, tmp_path: Path) -> None:
    console, folder = opened(), tmp_path / "w/run/queries/t"
    console.run(STREAM + TABLE + "INSERT INTO s VALUES ('a', 1); AWAIT QUERY t IDLE; STOP QUERY t;")
    assert os.readlink(folder / "current") == "1"
    assert {p.name for p in (folder / "1").iterdir()} == {
        ".streamsql.json",
        "checkpoint",
        "rows",
        "streamsql.json",
    }
    (started,) = console.run("START QUERY t FROM BEGINNING;")
    assert f"the old checkpoint is kept as {folder}/1/checkpoint" in notes_of(started)
    console.run("AWAIT QUERY t IDLE; STOP QUERY t; START QUERY t FROM NOW; STOP QUERY t;")
    assert os.readlink(folder / "current") == "3"
    assert sorted(p.name for p in folder.glob("[0-9]*")) == ["1", "2", "3"], "two that were left are kept"
    console.run("CREATE OR REPLACE LIVE TABLE t AS SELECT k FROM s; AWAIT QUERY t IDLE;")
    assert os.readlink(folder / "current") == "4"
    assert opened().rows("SELECT * FROM t;") == [("a",)]
    opened().run("DROP LIVE TABLE t;")
    assert not folder.exists()


def test_a_checkpoint_that_is_gone_is_not_said_to_be_kept(opened: Open, tmp_path: Path) -> None:
    console = opened()
    console.run(STREAM + TABLE + "INSERT INTO s VALUES ('a', 1); AWAIT QUERY t IDLE; STOP QUERY t;")
    shutil.rmtree(tmp_path / "w/run/queries/t/current/checkpoint")
    (started,) = console.run("START QUERY t FROM BEGINNING;")
    assert not any("the old checkpoint is kept" in note for note in notes_of(started))
    console.run("AWAIT QUERY t IDLE;")
    assert console.rows("SELECT * FROM t;") == [("a", 1)]


def test_a_start_that_fails_leaves_the_generation_in_use(opened: Open, tmp_path: Path) -> None:
    console, folder = opened(), tmp_path / "w/run/queries/t"
    console.run(STREAM + TABLE + "INSERT INTO s VALUES ('a', 1); AWAIT QUERY t IDLE;")
    with pytest.raises(StreamsqlError):
        console.run("CREATE OR REPLACE LIVE TABLE t AS SELECT nothing FROM s;")
    assert os.readlink(folder / "current") == "1"
    assert console.rows("SELECT * FROM t;") == [("a", 1)]
    assert sorted(p.name for p in folder.glob("[0-9]*")) == ["1"]


def test_the_generation_knows_its_query_before_the_checkpoint_does(opened: Open, tmp_path: Path) -> None:
    """A console may be killed when the query runs and its checkpoint has no record of it yet."""
    console, folder = opened(), tmp_path / "w/run/queries/t"
    console.run(STREAM + TABLE + "INSERT INTO s VALUES ('a', 1); AWAIT QUERY t IDLE; STOP QUERY t;")
    (folder / "1/checkpoint/streamsql.json").unlink()
    (started,) = console.run("START QUERY t;")
    assert notes_of(started) == ()
    console.run("STOP QUERY t;")
    (folder / "1/checkpoint/streamsql.json").unlink()
    record = folder / "1/streamsql.json"
    record.write_text(record.read_text().replace('"k"', '"n"').replace("SELECT k, n", "SELECT n, n"))
    again = opened()
    with pytest.raises(StreamsqlError) as refused:
        again.run("START QUERY t;")
    assert refused.value.code == "CHECKPOINT_CHANGED"
    again.run("START QUERY t FROM BEGINNING; AWAIT QUERY t IDLE;")
    assert again.rows("SELECT * FROM t;") == [("a", 1)]


def test_a_link_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    generations = Generations(tmp_path / "run/queries/t")
    first = generations.prepare()
    generations.publish(first)
    assert generations.current == first
    (tmp_path / "precious").mkdir()
    for target in ("../../../precious", str(tmp_path / "precious"), "7", "."):
        (generations.folder / "current").unlink()
        (generations.folder / "current").symlink_to(target)
        with pytest.raises(EngineFault, match="does not lead to a generation of the query"):
            _ = generations.current


def test_a_generation_that_was_put_in_use_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails when the rename is done and is to be synced."""
    generations = Generations(tmp_path / "run/queries/t")
    generations.publish(generations.prepare())
    second = generations.prepare()
    with monkeypatch.context() as patched:
        patched.setattr(durable_files, "sync_folder", lambda path: (_ for _ in ()).throw(OSError(5, "EIO")))
        with pytest.raises(OSError):
            generations.publish(second)
    generations.discard(second)
    assert generations.current == second
    third = generations.prepare()
    generations.discard(third)
    assert not third.exists()


def unpacked(folder: Path) -> None:
    """The old workspace in another folder: Spark records absolute paths of the files that it has read."""
    with tarfile.open(OLD) as packed:
        packed.extractall(folder, filter="data")
    for file in (folder / "w/run").rglob("*"):
        if file.is_file() and "/sources/" in str(file):
            if file.name.endswith(".crc"):
                file.unlink()
            else:
                file.write_text(re.sub(re.escape(MADE_IN), str(folder / "w"), file.read_text()))


@pytest.mark.slow
def test_an_older_workspace_is_moved_over_once_and_its_queries_go_on(opened: Open, tmp_path: Path) -> None:
    unpacked(tmp_path)
    console = opened()
    assert console.warnings == []
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 4), ("b", 2)]
    assert sorted(console.rows("SELECT * FROM whole;")) == [("a", 4), ("b", 2)]
    assert console.rows("SELECT * FROM best;") == [(4,)]
    assert len(console.rows("SELECT * FROM late;")) == 1
    changes = console.rows("SELECT * FROM log;")
    run = tmp_path / "w/run"
    assert not list((run / "live").iterdir())
    assert {os.readlink(link) for link in run.glob("queries/*/current")} == {"1"}
    console.run("START QUERY ALL; INSERT INTO s VALUES ('b', 5); AWAIT QUERY ALL IDLE;")
    console.run("VERIFY QUERY t; VERIFY QUERY whole;")
    again = opened()
    assert sorted(again.rows("SELECT * FROM t;")) == [("a", 4), ("b", 7)]
    assert sorted(again.rows("SELECT * FROM whole;")) == [("a", 4), ("b", 7)]
    assert again.rows("SELECT * FROM best;") == [(7,)]
    more = again.rows("SELECT * FROM log;")[len(changes) :]
    assert sorted(row[0] for row in more) == ["+U", "-U"], "only what has changed"


@pytest.mark.slow
def test_a_crash_while_it_is_moved_over_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at, done = 0, False
    while not done:
        at += 1
        folder = tmp_path / str(at)
        unpacked(folder)
        places = Places(str(folder / "w/run"))
        monkeypatch.setattr(durable_files, "os", Disk(at, Crash))
        try:
            move_over(places, "w", ("w", "late"))
            done = True
        except Crash:
            pass
        monkeypatch.setattr(durable_files, "os", os)
        move_over(places, "w", ("w", "late"))
        for place in (places.checkpoint("w"), places.rows("w", "w"), places.rows("late", "w")):
            assert Path(place).is_dir(), (at, place)
        assert list(Path(places.rows("late", "w")).glob("[0-9]*"))
        assert (folder / "w/run/queries/w/checkpoint/metadata").exists(), "where it was"
    assert at > 5


def test_a_read_only_console_says_that_an_older_workspace_is_not_moved_over(tmp_path: Path) -> None:
    unpacked(tmp_path)
    folder = tmp_path / "w"
    config = Config(
        Settings.make("local[2]", {}),
        tmp_path / "scratch",
        tmp_path / "log",
        tmp_path,
        store=Store(folder),
        read_only=True,
    )
    reader = Session(config, None)
    warnings = reopen(reader.parts).warnings
    assert warnings[0].startswith("the rows of live tables are not shown: an earlier version")
    assert not list(folder.glob("run/queries/*/current"))
    reader.close()


def test_a_record_is_replaced_on_any_file_system(spark: Any, tmp_path: Path) -> None:
    folder, hadoop = Folder(spark, str(tmp_path)), HadoopFiles(spark)
    for text in ("one", "two"):
        hadoop.write(f"file:{tmp_path}/record", text.encode())
        assert folder.read("record") == text
    folder.write("record", "three")
    assert folder.read("record") == "three"
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == ["record"]


# ---- the steps of a start


def test_a_step_that_fails_undoes_what_was_done_since_the_final_one() -> None:
    done: list[str] = []

    def fails() -> None:
        raise OSError("the disk is full")

    def step(name: str, *, final: bool = False) -> Step:
        return Step(lambda: done.append(name), lambda: done.append(f"not {name}"), final)

    run_steps((step("a"), step("b")))
    assert done == ["a", "b"]
    done.clear()
    failing = Step(fails, lambda: done.append("not d"))
    with pytest.raises(OSError, match="the disk is full"):
        run_steps((step("a"), step("b", final=True), step("c"), failing, step("e")))
    assert done == ["a", "b", "c", "not d", "not c"]
    done.clear()
    with pytest.raises(
        OSError, match="the disk is full"
    ):  # to undo one fails: the others are undone all the same
        run_steps((step("a"), Step(lambda: done.append("b"), fails), Step(fails)))
    assert done == ["a", "b", "not a"]
